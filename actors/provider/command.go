package provider

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/persistence"
)

// keyTTL is how long the answer to a cluster command is remembered.
const keyTTL = 24 * time.Hour

func (a *Actor) onAsk(m Ask) {
	cmd := m.Command
	if cmd.Verb == hcp.VerbClusterPut {
		a.put(m)
		return
	}
	if a.cluster.ID == "" || a.cluster.Deleted {
		m.Reply(refuse(hcp.NotFound("cluster")))
		return
	}
	switch cmd.Verb {
	case hcp.VerbClusterMaintenance:
		a.change(m, http.StatusOK, persistence.Commit{}, func(c *hcp.Cluster) { c.Maintenance = cmd.Enable }, nil)
	case hcp.VerbClusterProbe:
		a.nextProbe = a.deps.Clock.Now()
		a.probe(&waiter{
			then: func() { a.change(m, http.StatusOK, persistence.Commit{}, func(*hcp.Cluster) {}, nil) },
			lost: func() { m.Reply(refuse(gone())) },
		})
	case hcp.VerbClusterCredentials:
		if err := a.judgeRecord(a.cluster, cmd.Put.Credentials); err != nil {
			m.Reply(refuse(err))
			return
		}
		a.change(m, http.StatusOK, persistence.Commit{Secrets: []persistence.SecretChange{{
			Name: hcp.CredentialContext(a.id), Sealed: cmd.Put.Credentials}}}, func(*hcp.Cluster) {}, a.reopen)
	case hcp.VerbClusterDelete:
		a.remove(m)
	case hcp.VerbClusterOrphans:
		a.orphans(m)
	default:
		m.Reply(refuse(hcp.Errorf(hcp.CodeInternal, "unknown_verb", "a cluster does not know the verb %s", cmd.Verb)))
	}
}

// put registers the cluster, or changes it.
func (a *Actor) put(m Ask) {
	given := m.Command.Put.Cluster
	if _, ok := a.deps.Openers[given.Driver]; !ok {
		e := hcp.Errorf(hcp.CodeInvalidRequest, "unknown_driver", "there is no such driver in this build")
		e.Fields = []hcp.FieldError{{Pointer: "/driver", Reason: "unknown_driver",
			Detail: "this build has: " + strings.Join(slices.Sorted(maps.Keys(a.deps.Openers)), ", ")}}
		m.Reply(refuse(e))
		return
	}
	if err := a.judgeRecord(given, m.Command.Put.Credentials); err != nil {
		m.Reply(refuse(err))
		return
	}
	status := http.StatusOK
	if a.cluster.ID == "" {
		status = http.StatusCreated
	}
	var c persistence.Commit
	if m.Command.Put.Credentials != nil {
		c.Secrets = []persistence.SecretChange{{Name: hcp.CredentialContext(a.id), Sealed: m.Command.Put.Credentials}}
	}
	a.change(m, status, c, func(c *hcp.Cluster) {
		// What a caller read before may be old by now: maintenance has a verb of its own.
		created, info, maintenance := c.CreatedAt, c.Info, c.Maintenance
		*c = given
		c.CreatedAt, c.Info, c.Maintenance, c.Deleted = created, info, maintenance, false
		a.isShut, a.limit = false, nil
		if created.IsZero() {
			c.CreatedAt = a.deps.Clock.Now()
		}
	}, a.reopen)
}

// reopen makes a driver for the record as it is now, and probes at once.
func (a *Actor) reopen() {
	a.openDriver()
	a.nextProbe = time.Time{}
	if !a.isTicking {
		a.isTicking = true
		a.onTick()
	}
}

// remove unregisters a cluster that no VM lives on. It looks twice: once as
// things stand, and once more when no VM can be placed there any more.
func (a *Actor) remove(m Ask) {
	a.lookFor(m, false)
}

func (a *Actor) lookFor(m Ask, isShut bool) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		rows, err := a.deps.Store.ListVMs(ctx, persistence.VMFilter{Cluster: a.id, Page: persistence.Page{Limit: 1}})
		a.self.Tell(emptied{m, isShut, len(rows) == 0, err})
	}()
}

// emptied says whether the cluster may go.
type emptied struct {
	ask     Ask
	isShut  bool // no VM could be placed here when it was looked
	isEmpty bool
	err     error
}

func (a *Actor) onEmptied(m emptied) {
	switch {
	case m.err != nil || !m.isEmpty:
		if m.isShut {
			a.isShut, a.limit, a.nextSweep = false, nil, time.Time{} // the next sweep gives it room again
		}
		err := m.err
		if err == nil {
			err = hcp.Errorf(hcp.CodeConflict, "in_use", "VMs live on the cluster").
				WithHint("set it to maintenance, delete its VMs, then delete the cluster")
		}
		m.ask.Reply(refuse(err))
	case !m.isShut:
		a.isShut = true
		a.commit(persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: a.id}}}, nil, func(err error) {
			if err != nil {
				a.isShut = false
				m.ask.Reply(refusedBy(err, nil))
				return
			}
			a.lookFor(m.ask, true)
		})
	default:
		a.change(m.ask, http.StatusOK, persistence.Commit{Secrets: []persistence.SecretChange{{Name: hcp.CredentialContext(a.id)}}},
			func(c *hcp.Cluster) { c.Deleted = true }, a.closeDriver)
	}
}

// change makes a command durable with its answer, audit row and event.
func (a *Actor) change(m Ask, status int, c persistence.Commit, change func(*hcp.Cluster), then func()) {
	now := a.deps.Clock.Now()
	call := m.Command.Call
	var body []byte
	c.Events = append(c.Events, a.event(hcp.EventClusterChanged, now))
	c.Events[len(c.Events)-1].Actor, c.Events[len(c.Events)-1].TraceID = call.Actor, call.TraceID
	c.Audit = append(c.Audit, hcp.AuditRecord{
		ID: hcp.AuditID(a.deps.NewID(hcp.KindAudit)), Kind: hcp.AuditCall, Time: now, Actor: call.Actor, Scope: call.Scope,
		Action: call.Action, Target: hcp.LRNOf("cluster", string(a.id)), Result: "ok", Status: status,
		RequestID: call.RequestID, TraceID: call.TraceID, Source: call.Source, Method: call.Method, Path: call.Path,
	})
	a.queueCommit(pendingCommit{
		commit: c, change: change, ask: &m,
		complete: func(c *persistence.Commit, record hcp.Cluster) {
			body = a.body(record)
			if key := m.Command.Key; key != nil {
				c.Key = &persistence.IdempotencyRecord{IdempotencyKey: *key, Status: status, Body: body,
					CreatedAt: now, ExpiresAt: now.Add(keyTTL)}
			}
		},
		then: func(err error) {
			if err != nil {
				m.Reply(refusedBy(err, m.Command.Key))
				return
			}
			m.Reply(hcp.Answer{Status: status, Body: body})
			if then != nil {
				then()
			}
		},
	})
}

// refusedBy answers a command whose commit was refused.
func refusedBy(err error, key *hcp.IdempotencyKey) hcp.Answer {
	refusal, ok := persistence.RefusalOf(err)
	switch {
	case !ok:
		return refuse(hcp.Errorf(hcp.CodeUnavailable, "store_unavailable", "HCP could not store the request").WithCause(err))
	case refusal.Kind == persistence.RefusedKey && key != nil && refusal.Record.Fingerprint == key.Fingerprint:
		return hcp.Answer{Status: refusal.Record.Status, Body: refusal.Record.Body, Replayed: true}
	case refusal.Kind == persistence.RefusedKey:
		return refuse(hcp.Errorf(hcp.CodeIdempotencyKeyReused, "key_reused", "the idempotency key was used for another request"))
	case refusal.Kind == persistence.RefusedFenced:
		return refuse(hcp.Errorf(hcp.CodeUnavailable, hcp.ReasonMoved, "the cluster has moved to another owner"))
	}
	return refuse(refusal.Err)
}

func (a *Actor) body(record hcp.Cluster) []byte {
	var reach *hcp.Reachability
	if !a.reach.ChangedAt.IsZero() {
		r := a.reach
		reach = &r
	}
	body, err := json.Marshal(record.View(reach, a.limit, nil))
	if err != nil {
		return []byte("{}")
	}
	return body
}

// orphans lists machines that no VM record accounts for, as the cluster is now.
func (a *Actor) orphans(m Ask) {
	if a.driver == nil {
		m.Reply(refuse(a.notOpen()))
		return
	}
	d, id, store := a.driver, a.id, a.deps.Store
	timeout := a.deps.Policy.CallTimeout
	now := a.deps.Clock.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		var seen []drivers.Observation
		unreached, err := d.Inventory(ctx, func(o drivers.Observation) error {
			seen = append(seen, o)
			return nil
		})
		var known map[hcp.VMID]hcp.Known
		if err == nil {
			known, err = rowsOf(ctx, store, id, seen)
		}
		if err != nil {
			m.Reply(refuse(err))
			return
		}
		list := hcp.OrphanList{Items: []hcp.Orphan{}, Unreached: unreached}
		if list.Unreached == nil {
			list.Unreached = []string{}
		}
		for _, o := range seen {
			k, ok := known[o.VM]
			// A deleted VM's machine is no orphan while its own residue is being removed.
			accounted := ok && (k.VM.Lifecycle != hcp.LifecycleDeleted || k.VM.CreateIntent)
			if !accounted {
				list.Items = append(list.Items, hcp.Orphan{Ref: o.Ref, Name: o.Name, Marker: o.VM, Power: o.Power, SeenAt: now})
			}
		}
		body, err := json.Marshal(list)
		if err != nil {
			m.Reply(refuse(err))
			return
		}
		m.Reply(hcp.Answer{Status: http.StatusOK, Body: body})
	}()
}
