package auth

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// BindingTTL is how long a binding may go on to count after it was removed on
// another node. On the node that removed it, it ends at once.
const BindingTTL = 2 * time.Second

// maxSubjects bounds the cache; what is over is read from the store each time a
// place is needed.
const maxSubjects = 4096

// Bindings reads role bindings, a subject's at a time.
type Bindings struct {
	store persistence.Catalogue
	now   func() time.Time

	mu    sync.Mutex
	known map[string]known
}

type known struct {
	grants Grants
	until  time.Time
}

// NewBindings reads from the store; now is the clock.
func NewBindings(store persistence.Catalogue, now func() time.Time) *Bindings {
	return &Bindings{store: store, now: now, known: map[string]known{}}
}

// BindingRecord is the catalogue row of a binding. Its parent is the subject, so
// that one subject's bindings are one read; its name makes the same binding twice
// a refusal.
func BindingRecord(b hcp.RoleBinding) (persistence.Record, error) {
	body, err := json.Marshal(b)
	if err != nil {
		return persistence.Record{}, err
	}
	return persistence.Record{Kind: persistence.RecordBinding, ID: b.ID, Parent: b.Subject, Body: body,
		Name: b.Subject + "|" + b.Role + "|" + string(b.Org) + "|" + string(b.Project)}, nil
}

// Of returns what the subject was granted, at most BindingTTL old.
func (b *Bindings) Of(ctx context.Context, subject string) (Grants, error) {
	now := b.now()
	b.mu.Lock()
	k, ok := b.known[subject]
	b.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.grants, nil
	}
	records, err := b.store.ListRecords(ctx, persistence.RecordBinding, subject)
	if err != nil {
		return nil, err
	}
	grants := make(Grants, 0, len(records))
	for _, r := range records {
		var binding hcp.RoleBinding
		if err := json.Unmarshal(r.Body, &binding); err != nil {
			return nil, hcp.Errorf(hcp.CodeInternal, "bad_record", "a role binding cannot be read").WithCause(err)
		}
		role, known := RoleNamed(binding.Role)
		if !known || role.Scope != binding.Scope || binding.Subject != subject {
			continue // what is not understood grants nothing
		}
		grants = append(grants, Grant{role, binding.Org, binding.Project})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= maxSubjects {
		for s := range b.known {
			if delete(b.known, s); len(b.known) < maxSubjects/2 {
				break
			}
		}
	}
	b.known[subject] = known{grants, now.Add(BindingTTL)}
	return grants, nil
}

// Forget makes the next Of read the store.
func (b *Bindings) Forget(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, subject)
}

// Grant is one role where it holds: a project, an org, or everywhere at ops scope.
type Grant struct {
	Role    Role
	Org     hcp.OrgID
	Project hcp.ProjectID
}

// Grants are all roles of one subject.
type Grants []Grant

// In keeps the grants that hold in the project. None: the project does not
// exist for the subject.
func (g Grants) In(p hcp.Project) Grants {
	var out Grants
	for _, grant := range g {
		if grant.Role.Scope == hcp.ScopeTenant && (grant.Project == p.ID && p.ID != "" || grant.Project == "" && grant.Org == p.Org && p.Org != "") {
			out = append(out, grant)
		}
	}
	return out
}

// Ops keeps the grants at ops scope.
func (g Grants) Ops() Grants {
	var out Grants
	for _, grant := range g {
		if grant.Role.Scope == hcp.ScopeOps {
			out = append(out, grant)
		}
	}
	return out
}

// Allow reports whether any of the grants has the action.
func (g Grants) Allow(a Action) bool {
	return slices.ContainsFunc(g, func(grant Grant) bool { return grant.Role.Allows(a) })
}

// Names of the roles, sorted, each once.
func (g Grants) Names() []string {
	out := make([]string, 0, len(g))
	for _, grant := range g {
		out = append(out, grant.Role.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Actions of all roles together, sorted, each once.
func (g Grants) Actions() []string {
	out := []string{}
	for _, grant := range g {
		out = append(out, grant.Role.Actions()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
