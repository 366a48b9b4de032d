package sqlstore

import (
	"context"
	"slices"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// write makes an accepted commit rows. Nothing here is refused any more: an error
// is trouble of the engine, and rolls the transaction back.
func (g *Group) write(ctx context.Context, p *Prepared, pl *plan) error {
	for _, step := range []func(context.Context, *Prepared, *plan) error{
		g.writeHead, g.writeLabels, g.writeJobs, g.writeEvents, g.writeBooks, g.writeKey, g.writeAudit, g.writeRecords, g.writeSecrets, g.dropObserved,
	} {
		if err := step(ctx, p, pl); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) writeHead(ctx context.Context, p *Prepared, pl *plan) error {
	epoch, seq := p.Epoch, p.Seq+1
	if p.Claim || p.Inserts() {
		epoch++
	}
	eventSeq := pl.head.eventSeq + int64(len(p.events))
	switch {
	case p.Actor.Kind == persistence.ActorNone:
		return nil
	case p.Actor.Kind == persistence.ActorCluster:
		return g.writeCluster(ctx, p, epoch, seq, eventSeq)
	case p.Inserts():
		return g.insertVM(ctx, p, pl, eventSeq)
	}
	turn := pl.head.turn
	if p.Turn != nil {
		turn = *p.Turn
	}
	if p.VM == nil {
		return g.one(g.q.Exec(ctx, `update vms set epoch = $1, seq = $2, event_seq = $3, turn_job = $4, turn_step = $5, turn_attempt = $6 where id = $7`,
			epoch, seq, eventSeq, turn.Job, turn.Step, turn.Attempt, p.Actor.ID))
	}
	return g.updateVM(ctx, p, pl, []any{epoch, seq, eventSeq, turn.Job, turn.Step, turn.Attempt})
}

// one turns "changed no row" into an error: the checks saw the row in this
// transaction, so it must be there.
func (g *Group) one(n int64, err error) error {
	if err == nil && n != 1 {
		return hcp.Errorf(hcp.CodeInternal, "lost_row", "a row vanished between its check and its write")
	}
	return err
}

func (g *Group) insertVM(ctx context.Context, p *Prepared, pl *plan, eventSeq int64) error {
	v := &p.vm
	var turn persistence.Turn
	if p.Turn != nil {
		turn = *p.Turn
	}
	return g.one(g.q.Exec(ctx, `insert into vms (id, epoch, seq, event_seq, org, project, owner, zone, cluster, name, holds_name, lifecycle, activity,
		power, power_at, state, state_cut, gone, has_ref, ref_id, quota_class, vcpus, memory_mib, disk_gib, turn_job, turn_step, turn_attempt,
		labels, created_at, body)
		values ($1, 1, 1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)`,
		v.ID, eventSeq, v.Org, v.Project, v.Owner, v.Zone, v.Cluster, v.Name, flag(v.HoldsName()), v.Lifecycle, v.Activity,
		v.Power, micros(v.PowerAt), pl.state, pl.stateCut, flag(isGone(v)), flag(v.Ref != nil), refID(v), quotaClass(v),
		v.Flavor.VCPUs, v.Flavor.MemoryMiB, v.Flavor.DiskGiB, turn.Job, turn.Step, turn.Attempt,
		labelsText(v.Labels), micros(v.CreatedAt), p.vmBody))
}

func isGone(v *hcp.VM) bool { return v.Lifecycle == hcp.LifecycleDeleted }

// Three updates of one row: the fewer indexed columns a statement names, the
// fewer indexes the engine touches, and most turns change none of them.
const (
	setVM = `update vms set epoch = $1, seq = $2, event_seq = $3, turn_job = $4, turn_step = $5, turn_attempt = $6, owner = $7, zone = $8,
		lifecycle = $9, activity = $10, power = $11, power_at = $12, state_cut = $13, has_ref = $14, quota_class = $15, vcpus = $16,
		memory_mib = $17, disk_gib = $18, labels = $19, body = $20`
	updateVMPlain   = setVM + ` where id = $21`
	updateVMState   = setVM + `, state = $21 where id = $22`
	updateVMIndexed = setVM + `, state = $21, name = $22, holds_name = $23, cluster = $24, ref_id = $25, gone = $26 where id = $27`
)

func (g *Group) updateVM(ctx context.Context, p *Prepared, pl *plan, args []any) error {
	v, h := &p.vm, &pl.head
	args = append(args, v.Owner, v.Zone, v.Lifecycle, v.Activity, v.Power, micros(v.PowerAt), pl.stateCut, flag(v.Ref != nil), quotaClass(v),
		v.Flavor.VCPUs, v.Flavor.MemoryMiB, v.Flavor.DiskGiB, labelsText(v.Labels), p.vmBody)
	switch {
	case h.name != v.Name || h.holdsName != v.HoldsName() || h.cluster != string(v.Cluster) || h.refID != refID(v) || h.gone != isGone(v):
		return g.one(g.q.Exec(ctx, updateVMIndexed, append(args, pl.state, v.Name, flag(v.HoldsName()), v.Cluster, refID(v), flag(isGone(v)), v.ID)...))
	case h.state != string(pl.state):
		return g.one(g.q.Exec(ctx, updateVMState, append(args, pl.state, v.ID)...))
	}
	return g.one(g.q.Exec(ctx, updateVMPlain, append(args, v.ID)...))
}

func (g *Group) writeCluster(ctx context.Context, p *Prepared, epoch, seq, eventSeq int64) error {
	c := &p.cluster
	switch {
	case p.Inserts():
		return g.one(g.q.Exec(ctx, `insert into clusters (id, name, epoch, seq, event_seq, deleted, body) values ($1, $2, $3, $4, $5, $6, $7)`,
			c.ID, c.Name, epoch, seq, eventSeq, flag(c.Deleted), p.clBody))
	case p.Cluster == nil:
		return g.one(g.q.Exec(ctx, `update clusters set epoch = $1, seq = $2, event_seq = $3 where id = $4`, epoch, seq, eventSeq, p.Actor.ID))
	}
	return g.one(g.q.Exec(ctx, `update clusters set epoch = $1, seq = $2, event_seq = $3, name = $4, deleted = $5, body = $6 where id = $7`,
		epoch, seq, eventSeq, c.Name, flag(c.Deleted), p.clBody, c.ID))
}

// writeLabels keeps the indexed rows in step with the VM.
func (g *Group) writeLabels(ctx context.Context, p *Prepared, pl *plan) error {
	if p.VM == nil {
		return nil
	}
	v, h := &p.vm, &pl.head
	if h.found {
		if h.labels == labelsText(v.Labels) && h.gone == isGone(v) {
			return nil
		}
		if _, err := g.q.Exec(ctx, `delete from vm_labels where vm = $1`, v.ID); err != nil {
			return err
		}
	}
	for k, value := range v.Labels {
		if _, err := g.q.Exec(ctx, `insert into vm_labels (vm, label, value, project, gone, created_at) values ($1, $2, $3, $4, $5, $6)`,
			v.ID, k, value, v.Project, flag(isGone(v)), micros(v.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) writeJobs(ctx context.Context, p *Prepared, _ *plan) error {
	for i := range p.jobs {
		if err := g.writeJob(ctx, &p.jobs[i], p.Inserts()); err != nil {
			return err
		}
	}
	return nil
}

// writeJob first tries the cheap update of a live job. A live job whose commit
// says nothing of its wake-up keeps the one it has; a new one is due at once, so
// that nothing accepted can be forgotten.
func (g *Group) writeJob(ctx context.Context, j *jobRow, isNew bool) error {
	if !isNew && !j.State.Final() {
		var wake any
		if j.hasWake {
			wake = j.wake
		}
		n, err := g.q.Exec(ctx, `update jobs set state = $1, wake_at = coalesce($2, wake_at), body = $3 where id = $4 and vm = $5 and queue = $6 and final = 0`,
			j.State, wake, j.body, j.ID, j.VM, j.Queue)
		if err != nil || n == 1 {
			return err
		}
	}
	n, err := g.q.Exec(ctx, `insert into jobs (id, vm, cluster, org, project, kind, state, final, queue, wake_at, created_at, finished_at, body)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		on conflict (id) do update set state = excluded.state, final = excluded.final, queue = excluded.queue, wake_at = excluded.wake_at,
		finished_at = excluded.finished_at, body = excluded.body where jobs.vm = excluded.vm`,
		j.ID, j.VM, j.Cluster, j.Org, j.Project, j.Kind, j.State, flag(j.State.Final()), j.Queue, j.wakeOf(j.CreatedAt), micros(j.CreatedAt),
		micros(j.FinishedAt), j.body)
	if err == nil && n != 1 {
		return malformed("a job of another VM has this id")
	}
	return err
}

// eventRows is how many events one statement inserts: engines bound the number of
// parameters, and every number of rows is a statement of its own.
const eventRows = 8

func (g *Group) writeEvents(ctx context.Context, p *Prepared, pl *plan) error {
	seq := pl.head.eventSeq
	for rows := range slices.Chunk(p.events, eventRows) {
		args := make([]any, 0, 8*len(rows))
		for i := range rows {
			e := &rows[i]
			if seq++; p.Actor.Kind == persistence.ActorNone {
				seq = g.nextEvent
			}
			args = append(args, g.nextEvent, p.Actor.ID, seq, e.kind, e.time, e.project, e.vm, e.body)
			g.nextEvent++
		}
		if _, err := g.q.Exec(ctx, insertRows("events", "n, actor, seq, type, time, project, vm, body", 8, len(rows)), args...); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) writeBooks(ctx context.Context, _ *Prepared, pl *plan) error {
	if pl.draft == nil {
		return nil
	}
	return g.writeDraft(ctx, pl.draft)
}

func (g *Group) writeKey(ctx context.Context, p *Prepared, _ *plan) error {
	if p.Key == nil {
		return nil
	}
	k := p.Key
	_, err := g.q.Exec(ctx, `insert into idempotency (principal, project, method, path, key, fingerprint, status, vm, job, created_at, expires_at, body)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		k.Principal, k.Project, k.Method, k.Path, k.Key, k.Fingerprint, k.Status, k.VM, k.Job, micros(k.CreatedAt), micros(k.ExpiresAt), k.Body)
	return err
}

func (g *Group) writeAudit(ctx context.Context, p *Prepared, _ *plan) error {
	for i := range p.audit {
		a := &p.audit[i]
		if _, err := g.q.Exec(ctx, `insert into audit (time, id, kind, actor, action, project, request_id, body) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
			a.time, a.id, a.kind, a.actor, a.action, a.project, a.requestID, a.body); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) writeSecrets(ctx context.Context, p *Prepared, _ *plan) error {
	for _, s := range p.Secrets {
		var err error
		if s.Sealed == nil {
			_, err = g.q.Exec(ctx, `delete from secrets where name = $1`, s.Name)
		} else {
			_, err = g.q.Exec(ctx, `insert into secrets (name, sealed) values ($1, $2) on conflict (name) do update set sealed = excluded.sealed`, s.Name, []byte(s.Sealed))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) dropObserved(ctx context.Context, p *Prepared, _ *plan) error {
	for _, vm := range p.DropObserved {
		if _, err := g.q.Exec(ctx, `delete from observed where vm = $1`, vm); err != nil {
			return err
		}
		if p.VM != nil && vm == p.vm.ID {
			continue // judged with this turn already
		}
		if err := refreshState(ctx, g.q, vm, nil); err != nil {
			return err
		}
	}
	return nil
}
