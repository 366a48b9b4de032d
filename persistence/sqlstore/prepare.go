package sqlstore

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Prepared is a commit with its bodies rendered. Preparing happens on the
// caller's time, so that the one writer only writes. It shares nothing that the
// caller may change afterwards, but for slices and maps the contract hands over.
type Prepared struct {
	persistence.Commit
	vm      hcp.VM // copy of *Commit.VM
	vmBody  string
	cluster hcp.Cluster
	clBody  string
	jobs    []jobRow
	events  []eventRow
	audit   []auditRow
}

type jobRow struct {
	hcp.Job
	body    string
	wake    int64
	hasWake bool
}

type eventRow struct {
	kind    hcp.EventType
	time    int64
	project hcp.ProjectID
	vm      hcp.VMID
	body    string
}

type auditRow struct {
	time      int64
	id        hcp.AuditID
	kind      hcp.AuditKind
	actor     string
	action    string
	project   hcp.ProjectID
	requestID hcp.RequestID
	body      string
}

// Inserts reports whether the commit brings its actor's row into being.
func (p *Prepared) Inserts() bool {
	return p.Actor.Kind != persistence.ActorNone && p.Epoch == 0 && p.Seq == 0
}

// Prepare checks the shape of a commit and renders it. An error means that the
// commit can never be applied.
func Prepare(c persistence.Commit) (*Prepared, error) {
	p := &Prepared{Commit: c}
	if err := p.checkShape(); err != nil {
		return nil, err
	}
	var err error
	if c.VM != nil {
		p.vm = *c.VM
		if p.vmBody, err = render(c.VM); err != nil {
			return nil, err
		}
	}
	if c.Cluster != nil {
		p.cluster = *c.Cluster
		if p.clBody, err = render(c.Cluster); err != nil {
			return nil, err
		}
	}
	for i := range c.Jobs {
		row := jobRow{Job: c.Jobs[i]}
		if row.body, err = render(&c.Jobs[i]); err != nil {
			return nil, err
		}
		if at, ok := c.Wake[row.ID]; ok {
			row.wake, row.hasWake = micros(at), true
		}
		p.jobs = append(p.jobs, row)
	}
	for i := range c.Events {
		e := c.Events[i]
		e.Seq, e.Pos = 0, 0
		row := eventRow{kind: e.Type, time: micros(e.Time), project: e.Project, vm: e.VM}
		if row.body, err = render(&e); err != nil {
			return nil, err
		}
		p.events = append(p.events, row)
	}
	for i := range c.Audit {
		a := &c.Audit[i]
		row := auditRow{micros(a.Time), a.ID, a.Kind, a.Actor, a.Action, a.Project, a.RequestID, ""}
		if row.body, err = render(a); err != nil {
			return nil, err
		}
		p.audit = append(p.audit, row)
	}
	p.Holds = slices.Clone(c.Holds)
	p.Claims = slices.Clone(c.Claims)
	if c.Key != nil {
		key := *c.Key
		p.Key = &key
	}
	return p, nil
}

func (p *Prepared) checkShape() error {
	switch p.Actor.Kind {
	case persistence.ActorVM:
		switch {
		case p.Actor.ID == "":
			return malformed("a commit of a VM names no VM")
		case p.VM != nil && string(p.VM.ID) != p.Actor.ID:
			return malformed("a commit of one VM carries another")
		case p.VM == nil && p.Inserts():
			return malformed("a VM is inserted without its row")
		case p.Cluster != nil:
			return malformed("a commit of a VM carries a cluster")
		}
	case persistence.ActorCluster:
		switch {
		case p.Actor.ID == "":
			return malformed("a commit of a cluster names no cluster")
		case p.Cluster != nil && string(p.Cluster.ID) != p.Actor.ID:
			return malformed("a commit of one cluster carries another")
		case p.Cluster == nil && p.Inserts():
			return malformed("a cluster is inserted without its row")
		case p.VM != nil || p.Turn != nil || len(p.Jobs) > 0:
			return malformed("a commit of a cluster carries a VM's rows")
		}
	case persistence.ActorNone:
		if p.VM != nil || p.Turn != nil || p.Cluster != nil || len(p.Jobs) > 0 || p.Claim || p.Epoch != 0 || p.Seq != 0 {
			return malformed("a commit of no actor carries an actor's rows")
		}
	default:
		return malformed("the kind of actor is not known")
	}
	if p.Epoch < 0 || p.Seq < 0 {
		return malformed("an epoch or a sequence is negative")
	}
	for i := range p.Jobs {
		if string(p.Jobs[i].VM) != p.Actor.ID || p.Jobs[i].ID == "" {
			return malformed("a job of a commit is not of the commit's VM")
		}
	}
	return p.checkLedgerShape()
}

func (p *Prepared) checkLedgerShape() error {
	for _, h := range p.Holds {
		if h.VM == "" {
			return malformed("a hold names no VM")
		}
		seen := map[hcp.QuotaScope]bool{}
		for _, s := range h.Subjects {
			if seen[s.Scope] || s.ID == "" || (s.Scope != hcp.QuotaOrg && s.Scope != hcp.QuotaProject && s.Scope != hcp.QuotaUser) {
				return malformed("a hold counts against a wrong set of subjects")
			}
			seen[s.Scope] = true
		}
		for r, n := range h.Amounts {
			if n < 0 || !slices.Contains(hcp.QuotaResources(), r) {
				return malformed("a hold has a negative amount or an unknown resource")
			}
		}
		if len(h.Amounts) > 0 && len(h.Subjects) == 0 {
			return malformed("a hold counts against nobody")
		}
	}
	for _, c := range p.Claims {
		if c.VM == "" || c.Cluster == "" || !(hcp.Sizes{}).Fits(c.Sizes) {
			return malformed("a claim names no VM, no cluster, or a negative size")
		}
	}
	for _, l := range p.Limits {
		if l.Subject.ID == "" || !l.Limit.Unlimited && l.Limit.Max < 0 {
			return malformed("a limit names no subject or is negative")
		}
	}
	return nil
}

func render(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", malformed("a row of the commit cannot be rendered").WithCause(err)
	}
	return string(b), nil
}

// wakeOf is when a job wants its actor: never once it is final.
func (j jobRow) wakeOf(fallback time.Time) int64 {
	switch {
	case j.State.Final():
		return 0
	case j.hasWake:
		return j.wake
	}
	return micros(fallback)
}
