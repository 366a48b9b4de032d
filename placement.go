package hcp

import (
	"cmp"
	"slices"
)

// PlaceRequest is what a create needs of a cluster.
type PlaceRequest struct {
	Zone     ZoneID
	Sizes    Sizes
	Image    Image
	Requires []Capability
}

// Candidate is one cluster of a zone as the read model knows it.
type Candidate struct {
	Cluster   ClusterID
	Name      string
	Zone      Zone
	Member    ZoneCluster
	Reachable bool
	// Maintenance takes no new VM.
	Maintenance  bool
	Capabilities Capabilities
	Limit        Sizes // capacity x ratio - what is used by machines that are not ours
	Claimed      Sizes
}

// Free is what the candidate still has to give.
func (c Candidate) Free() Sizes { return c.Limit.Minus(c.Claimed) }

// Rejection says why a candidate was not taken. Operators see the cluster;
// tenants see the reason and the count.
type Rejection struct {
	Cluster ClusterID
	Zone    string
	Reason  string // no_artefact, maintenance, unreachable, capability, no_room
}

// filters run in this order; the first that refuses gives the reason.
var filters = []struct {
	reason string
	keeps  func(PlaceRequest, Candidate) bool
}{
	{"maintenance", func(_ PlaceRequest, c Candidate) bool { return !c.Maintenance }},
	{"no_artefact", func(r PlaceRequest, c Candidate) bool { return r.Image.Artefacts[c.Cluster] != "" }},
	{"capability", func(r PlaceRequest, c Candidate) bool {
		for _, need := range r.Requires {
			if !c.Capabilities.Has(need) {
				return false
			}
		}
		return true
	}},
	{"unreachable", func(_ PlaceRequest, c Candidate) bool { return c.Reachable }},
	{"no_room", func(r PlaceRequest, c Candidate) bool { return r.Sizes.Fits(c.Free()) }},
}

// Place ranks the candidates that can take the request, best first, and says of
// each other why not. Best is the largest share of free memory times weight;
// ties go by cluster id, so that the answer is the same everywhere.
func Place(r PlaceRequest, candidates []Candidate) (ranked []Candidate, rejected []Rejection) {
candidate:
	for _, c := range candidates {
		for _, f := range filters {
			if !f.keeps(r, c) {
				rejected = append(rejected, Rejection{c.Cluster, c.Zone.Name, f.reason})
				continue candidate
			}
		}
		ranked = append(ranked, c)
	}
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.Cluster, b.Cluster))
	})
	return ranked, rejected
}

func score(c Candidate) float64 {
	weight := float64(max(c.Member.Weight, 1))
	if c.Limit.MemoryMiB <= 0 {
		return 0
	}
	return weight * float64(c.Free().MemoryMiB) / float64(c.Limit.MemoryMiB)
}

// PlaceRefusal turns rejections into the tenant's error. A capability that no
// cluster of the zone has is FEATURE_NOT_SUPPORTED: waiting does not help.
func PlaceRefusal(rejected []Rejection) *Error {
	counts := map[string]int{}
	for _, r := range rejected {
		counts[r.Reason]++
	}
	total := len(rejected)
	var e *Error
	switch {
	case total == 0:
		e = Errorf(CodeNoCapacity, "empty_zone", "no cluster serves this zone").WithHint("choose another zone, or ask the operator")
	case counts["capability"] == total:
		e = Errorf(CodeFeatureNotSupported, "capability", "no cluster of the zone can do what the image or request needs")
	case counts["no_artefact"]+counts["capability"] == total:
		e = Errorf(CodeFeatureNotSupported, "no_artefact", "the image is not available in this zone").WithHint("choose another zone or image")
	default:
		reason := "no_room"
		for r, n := range counts {
			if n == total {
				reason = r // one cause for all: maintenance, unreachable
			}
		}
		e = Errorf(CodeNoCapacity, reason, "no cluster of the zone can take this VM now")
	}
	if total > 0 {
		e.Details = map[string]any{"reasons": counts}
	}
	return e
}

// LimitOfCluster is what HCP may claim: capacity x ratio - use by machines that are not ours.
func LimitOfCluster(capacity, foreign Sizes, m ZoneCluster) Sizes {
	ratio := func(n int64, r float64) int64 {
		if r <= 0 {
			r = 1
		}
		return int64(float64(n) * r)
	}
	return Sizes{ratio(capacity.VCPUs, m.CPURatio), ratio(capacity.MemoryMiB, m.MemoryRatio), capacity.DiskGiB}.Minus(foreign)
}
