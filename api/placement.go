package api

import (
	"context"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// infraTTL is how old the picture of clusters may be on which a create is placed.
// The owner claims the room in its commit, and a refusal is placed again on a
// fresh picture, so that an old one never refuses and never overbooks.
const infraTTL = 500 * time.Millisecond

// picture is the read model of all clusters.
type picture struct {
	clusters map[hcp.ClusterID]hcp.Cluster
	reach    map[hcp.ClusterID]hcp.Reachability
	capacity map[hcp.ClusterID]persistence.Capacity
}

type infra struct {
	store persistence.Store
	now   func() time.Time

	mu    sync.Mutex
	until time.Time
	last  *picture
}

// get is the picture, at most infraTTL old; fresh reads it now.
func (i *infra) get(ctx context.Context, fresh bool) (*picture, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if !fresh && i.last != nil && now.Before(i.until) {
		return i.last, nil
	}
	states, err := i.store.ListClusters(ctx)
	if err != nil {
		return nil, err
	}
	p := &picture{clusters: make(map[hcp.ClusterID]hcp.Cluster, len(states))}
	for _, st := range states {
		p.clusters[st.Cluster.ID] = st.Cluster
	}
	if p.reach, err = i.store.Reachability(ctx); err != nil {
		return nil, err
	}
	if p.capacity, err = i.store.ClusterCapacity(ctx); err != nil {
		return nil, err
	}
	i.last, i.until = p, now.Add(infraTTL)
	return p, nil
}

func (i *infra) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = nil
}

// candidates are the clusters of the zones.
func (p *picture) candidates(zones []hcp.Zone) []hcp.Candidate {
	var out []hcp.Candidate
	for _, z := range zones {
		for _, m := range z.Members {
			cl, known := p.clusters[m.Cluster]
			if !known || cl.Deleted {
				continue
			}
			room := p.capacity[cl.ID]
			cand := hcp.Candidate{Cluster: cl.ID, Name: cl.Name, Zone: z, Member: m, Reachable: p.reach[cl.ID].Reachable,
				Maintenance: cl.Maintenance, Limit: room.Limit, Claimed: room.Claimed}
			if cl.Info != nil {
				cand.Capabilities = cl.Info.Capabilities
			}
			out = append(out, cand)
		}
	}
	return out
}

// view renders a cluster for operators.
func (p *picture) view(cl hcp.Cluster) hcp.ClusterView {
	var reach *hcp.Reachability
	if r, known := p.reach[cl.ID]; known {
		reach = &r
	}
	var limit, claimed *hcp.Sizes
	if room, known := p.capacity[cl.ID]; known {
		limit, claimed = &room.Limit, &room.Claimed
	}
	return cl.View(reach, limit, claimed)
}

// zoneCapabilities is what at least one cluster of the zone can do, and whether
// one takes new VMs now.
func (p *picture) zoneCapabilities(z hcp.Zone) (caps hcp.Capabilities, available bool) {
	caps = hcp.Capabilities{}
	for _, c := range p.candidates([]hcp.Zone{z}) {
		available = available || c.Reachable && !c.Maintenance
		for k, state := range c.Capabilities {
			if !caps[k].Supported {
				caps[k] = state
			}
		}
	}
	return caps, available
}
