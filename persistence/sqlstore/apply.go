package sqlstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Group applies the members of one transaction one after the other. It belongs
// to one writer; it is thrown away with its transaction.
type Group struct {
	q         Querier
	ledger    *ledger
	seen      map[hcp.QuotaSubject]bool
	nextEvent int64
}

// NewGroup starts a group in an open transaction. nextEvent is the number of the
// next event row; NextEvent tells it again after the last member.
func NewGroup(q Querier, nextEvent int64) *Group {
	return &Group{q: q, ledger: newLedger(), seen: map[hcp.QuotaSubject]bool{}, nextEvent: nextEvent}
}

// NextEvent is the number of the next event row.
func (g *Group) NextEvent() int64 { return g.nextEvent }

// Apply makes one commit part of the transaction. A *persistence.Refusal means
// that nothing of it was written and the group goes on; any other error means
// that the transaction must be rolled back.
func (g *Group) Apply(ctx context.Context, p *Prepared) error {
	plan, refusal, err := g.check(ctx, p)
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return g.write(ctx, p, plan)
}

// plan is what the checks found out and the writes need.
type plan struct {
	head     head
	state    hcp.State
	stateCut hcp.State
	draft    *draft
}

// head is an actor's row before the commit.
type head struct {
	found                  bool
	epoch, seq, eventSeq   int64
	name                   string
	holdsName, gone        bool
	cluster, refID, labels string
	state                  string
	project                string
	createdAt              int64
	turn                   persistence.Turn
}

// check only reads. The order is part of the contract: a fenced actor hears that
// it is fenced, a repeated command hears of its first run, before anything else.
func (g *Group) check(ctx context.Context, p *Prepared) (*plan, *persistence.Refusal, error) {
	pl := &plan{}
	for _, step := range []func(context.Context, *Prepared, *plan) (*persistence.Refusal, error){
		g.checkFence, g.checkKey, g.checkNames, g.checkRecords, g.checkBooks, g.judgeState,
	} {
		if refusal, err := step(ctx, p, pl); refusal != nil || err != nil {
			return nil, refusal, err
		}
	}
	return pl, nil, nil
}

func (g *Group) checkFence(ctx context.Context, p *Prepared, pl *plan) (*persistence.Refusal, error) {
	var err error
	h := &pl.head
	switch p.Actor.Kind {
	case persistence.ActorNone:
		return nil, nil
	case persistence.ActorVM:
		err = g.q.QueryRow(ctx, `select epoch, seq, event_seq, name, holds_name, gone, cluster, ref_id, labels, state, project, created_at,
			turn_job, turn_step, turn_attempt from vms where id = $1`, p.Actor.ID).
			Scan(&h.epoch, &h.seq, &h.eventSeq, &h.name, &h.holdsName, &h.gone, &h.cluster, &h.refID, &h.labels, &h.state, &h.project, &h.createdAt,
				(*string)(&h.turn.Job), &h.turn.Step, &h.turn.Attempt)
	case persistence.ActorCluster:
		err = g.q.QueryRow(ctx, `select epoch, seq, event_seq, name, deleted from clusters where id = $1`, p.Actor.ID).
			Scan(&h.epoch, &h.seq, &h.eventSeq, &h.name, &h.gone)
	}
	if err != nil && err != ErrNoRows {
		return nil, err
	}
	h.found = err == nil
	if h.found == p.Inserts() || h.epoch != p.Epoch || h.seq != p.Seq {
		return fenced("another owner has taken over what this commit changes"), nil
	}
	if p.VM != nil && h.found && (h.project != string(p.vm.Project) || h.createdAt != micros(p.vm.CreatedAt)) {
		return nil, malformed("a VM changes its project or its time of creation")
	}
	return nil, nil
}

func fenced(message string) *persistence.Refusal {
	return &persistence.Refusal{Kind: persistence.RefusedFenced, Err: hcp.Errorf(hcp.CodeUnavailable, "fenced", "%s", message)}
}

func (g *Group) checkKey(ctx context.Context, p *Prepared, _ *plan) (*persistence.Refusal, error) {
	if p.Key == nil {
		return nil, nil
	}
	record, err := findKey(ctx, g.q, p.Key.IdempotencyKey)
	switch {
	case err == ErrNoRows:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &persistence.Refusal{Kind: persistence.RefusedKey, Record: &record,
		Err: hcp.Errorf(hcp.CodeConflict, "duplicate_key", "a command with this idempotency key was accepted already")}, nil
}

// What admission asks before a write. Each must be answered by an index of its
// own: it is asked for every VM that is made.
const (
	clusterNameTaken = `select 1 from clusters where name = $1 and deleted = 0 and id <> $2`
	vmNameTaken      = `select 1 from vms where project = $1 and name = $2 and holds_name = 1 and id <> $3`
	// The engine takes the partial index only when the query repeats its condition.
	refTaken = `select 1 from vms where cluster = $1 and ref_id = $2 and ref_id <> '' and id <> $3`
)

// AdmissionQueries maps each question to the index that must answer it, for the
// engines' tests.
func AdmissionQueries() map[string]string {
	return map[string]string{vmNameTaken: "vms_name", refTaken: "vms_ref"}
}

// checkNames sees to what must be unique: the name of a live VM in its project,
// a provider id in its cluster, the name of a cluster.
func (g *Group) checkNames(ctx context.Context, p *Prepared, pl *plan) (*persistence.Refusal, error) {
	h := &pl.head
	if p.Cluster != nil && !p.cluster.Deleted && (!h.found || h.gone || h.name != p.cluster.Name) {
		taken, err := g.exists(ctx, clusterNameTaken, p.cluster.Name, p.cluster.ID)
		if taken || err != nil {
			return nameTaken("another cluster has this name"), err
		}
	}
	if p.VM == nil {
		return nil, nil
	}
	v := &p.vm
	if v.HoldsName() && (!h.holdsName || h.name != v.Name) {
		taken, err := g.exists(ctx, vmNameTaken, v.Project, v.Name, v.ID)
		if taken || err != nil {
			return nameTaken("another VM of the project has this name"), err
		}
	}
	if ref := refID(v); ref != "" && (h.refID != ref || h.cluster != string(v.Cluster)) {
		taken, err := g.exists(ctx, refTaken, v.Cluster, ref, v.ID)
		if err != nil {
			return nil, err
		}
		if taken {
			return &persistence.Refusal{Kind: persistence.RefusedRef,
				Err: hcp.Errorf(hcp.CodeConflict, "ref_taken", "another VM of the cluster has this provider id")}, nil
		}
	}
	return nil, nil
}

func nameTaken(message string) *persistence.Refusal {
	return &persistence.Refusal{Kind: persistence.RefusedName,
		Err: hcp.Errorf(hcp.CodeConflict, "name_taken", "%s", message).WithHint("choose another name")}
}

func refID(v *hcp.VM) string {
	if v.Ref == nil {
		return ""
	}
	return v.Ref.ID
}

func (g *Group) exists(ctx context.Context, query string, args ...any) (bool, error) {
	var one int64
	switch err := g.q.QueryRow(ctx, query, args...).Scan(&one); err {
	case nil:
		return true, nil
	case ErrNoRows:
		return false, nil
	default:
		return false, err
	}
}

func (g *Group) checkBooks(ctx context.Context, p *Prepared, pl *plan) (*persistence.Refusal, error) {
	d, refusal, err := g.draftOf(ctx, p)
	pl.draft = d
	return refusal, err
}

// judgeState derives the two words a list filters by, from the VM after this
// commit and what its provider shows.
func (g *Group) judgeState(ctx context.Context, p *Prepared, pl *plan) (*persistence.Refusal, error) {
	if p.VM == nil {
		return nil, nil
	}
	var obs *hcp.Observed
	if pl.head.found && !contains(p.DropObserved, p.vm.ID) {
		var err error
		if obs, err = shownPower(ctx, g.q, p.vm.ID); err != nil {
			return nil, err
		}
	}
	pl.state, pl.stateCut = statesOf(p.vm, obs)
	return nil, nil
}

func contains(ids []hcp.VMID, id hcp.VMID) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}

// insertRows builds an insert of n rows of width columns each.
func insertRows(table, columns string, width, n int) string {
	var b strings.Builder
	b.WriteString("insert into " + table + " (" + columns + ") values ")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for j := range width {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(i*width + j + 1))
		}
		b.WriteByte(')')
	}
	return b.String()
}
