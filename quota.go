package hcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Resource is something a quota counts.
type Resource string

const (
	ResourceVMs       Resource = "vms"
	ResourceVCPUs     Resource = "vcpus"
	ResourceMemoryMiB Resource = "memory_mib"
)

// QuotaResources lists what is counted, in display order.
func QuotaResources() []Resource { return []Resource{ResourceVMs, ResourceVCPUs, ResourceMemoryMiB} }

// QuotaScope is one of the three levels that a hold counts against together.
type QuotaScope string

const (
	QuotaOrg     QuotaScope = "org"
	QuotaProject QuotaScope = "project"
	QuotaUser    QuotaScope = "user" // a user within one project
)

// QuotaSubject is one counter: an org, a project, or a user in a project.
type QuotaSubject struct {
	Scope QuotaScope `json:"scope"`
	ID    string     `json:"id"` // org id, project id, or project id "/" subject
}

// Limit is a count or unlimited. In JSON it is a number or the word "unlimited";
// null is refused, and 0 means none at all.
type Limit struct {
	Unlimited bool
	Max       int64
}

func LimitOf(n int64) Limit { return Limit{Max: n} }

// NoLimit is what a new subject has.
func NoLimit() Limit { return Limit{Unlimited: true} }

func (l Limit) String() string {
	if l.Unlimited {
		return "unlimited"
	}
	return strconv.FormatInt(l.Max, 10)
}

func (l Limit) MarshalJSON() ([]byte, error) {
	if l.Unlimited {
		return []byte(`"unlimited"`), nil
	}
	return []byte(strconv.FormatInt(l.Max, 10)), nil
}

func (l *Limit) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte(`"unlimited"`)) {
		*l = NoLimit()
		return nil
	}
	var n int64
	if bytes.Equal(b, []byte("null")) || json.Unmarshal(b, &n) != nil || n < 0 {
		return fmt.Errorf(`a limit is a whole number from 0 up, or "unlimited"`)
	}
	*l = LimitOf(n)
	return nil
}

// Allows reports whether used+more stays within the limit.
func (l Limit) Allows(used, more int64) bool { return l.Unlimited || used+more <= l.Max }

// QuotaLine is one resource of one subject.
type QuotaLine struct {
	Resource Resource `json:"resource"`
	Limit    Limit    `json:"limit"`
	Used     int64    `json:"used"`
}

// HoldsOf is what one VM counts as, in the order of QuotaResources.
func HoldsOf(f FlavorPin) map[Resource]int64 {
	return map[Resource]int64{ResourceVMs: 1, ResourceVCPUs: int64(f.VCPUs), ResourceMemoryMiB: int64(f.MemoryMiB)}
}

// SubjectsOf are the three counters a VM counts against: all together or none.
func SubjectsOf(org OrgID, project ProjectID, owner string) []QuotaSubject {
	return []QuotaSubject{{QuotaOrg, string(org)}, {QuotaProject, string(project)}, {QuotaUser, string(project) + "/" + owner}}
}

// QuotaRefusal is the error of a hold that does not fit.
func QuotaRefusal(s QuotaSubject, r Resource, limit Limit, used, requested int64) *Error {
	e := Errorf(CodeQuotaExceeded, "quota_exceeded", "the quota of the %s for %s does not allow this: %d of %s are used, and this asks for %d", s.Scope, r, used, limit, requested)
	e.Details = map[string]any{"scope": string(s.Scope), "resource": string(r), "limit": limit, "used": used, "requested": requested}
	return e
}
