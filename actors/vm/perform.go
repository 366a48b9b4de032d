package vm

import (
	"slices"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// perform makes a decision durable, then lets it act. Without a commit it acts
// at once.
func (a *Actor) perform(msg any, d Decision) {
	if d.Commit == nil {
		a.state = d.State
		a.act(d)
		return
	}
	c := *d.Commit
	c.Actor = persistence.ActorRef{Kind: persistence.ActorVM, ID: a.self.ID()}
	c.Epoch, c.Seq = a.epoch, a.seq
	c.Claim = !a.claimed && a.seq > 0
	a.pending, a.pendingMsg, a.phase = d, msg, committing
	seq := a.seq
	a.deps.Store.Submit(c, func(err error) { a.self.Tell(committed{seq, err}) })
}

func (a *Actor) onCommitted(m committed) {
	if a.phase != committing || m.seq != a.seq {
		return
	}
	d, msg := a.pending, a.pendingMsg
	a.pending, a.pendingMsg, a.phase = Decision{}, nil, ready
	if m.err != nil {
		a.onRefused(m.err, d, msg)
		return
	}
	if a.seq == 0 {
		a.epoch = 1
	} else if !a.claimed {
		a.epoch++
	}
	a.claimed = true
	a.seq++
	a.retries = 0
	a.state = d.State
	if ask, ok := msg.(Ask); ok && d.Answer != nil {
		ask.Reply(*d.Answer)
	}
	a.deps.Committed(d.Done, len(d.Commit.Events) > 0)
	a.act(d)
}

// act begins what a decision asks for once it is durable.
func (a *Actor) act(d Decision) {
	if d.Run != nil && d.Run != a.started() {
		a.start(d.Run)
	}
	if !d.WakeAt.IsZero() {
		a.setAlarm(d.WakeAt)
	}
}

// started is the work that is out already; a decision that keeps it names it again.
func (a *Actor) started() *Run { return a.out }

// onRefused sorts out a commit that was not applied.
func (a *Actor) onRefused(err error, d Decision, msg any) {
	ask, asked := msg.(Ask)
	refusal, ok := persistence.RefusalOf(err)
	switch {
	case ok && refusal.Kind == persistence.RefusedFenced:
		a.log.Info("the activation is fenced and leaves", "seq", a.seq)
		if asked && ask.Command.Verb == hcp.VerbCreate && a.seq == 0 {
			ask.Reply(refuse(hcp.Errorf(hcp.CodeConflict, "exists", "the VM exists already")))
			asked = false
		}
		if asked {
			ask.Reply(moved())
		}
		a.giveUp(moved())
	case ok && refusal.Kind == persistence.RefusedKey && asked:
		ask.Reply(replayed(refusal.Record, ask.Command.Key))
		a.leaveIfAbsent()
	case ok && refusal.Kind == persistence.RefusedRef && !asked && d.State.VM.Ref != nil:
		a.perform(msg, a.deps.Core.RefTaken(a.state, d.State.VM.Ref.ID, a.deps.Clock.Now()))
	case ok && refusal.Kind == persistence.RefusedName && !asked && a.state.VM.Name != a.state.VM.ProviderName:
		a.state = renamed(a.state)
		a.log.Warn("the VM's name was taken while it was being deleted", "name", a.state.VM.Name)
		a.handle(msg)
	case ok && asked:
		ask.Reply(refuse(refusal.Err))
		a.leaveIfAbsent()
	case asked:
		// The store is in trouble, or cannot tell. The caller repeats with its key; what
		// the row says is read afresh.
		a.log.Error("a commit failed", "err", err)
		ask.Reply(unstored(err))
		a.giveUp(moved())
	default:
		// Work has ended and its outcome is not stored. Nothing further may be called
		// before it is: read the row afresh and take the job up from there.
		a.log.Error("the outcome of provider work could not be stored", "err", err)
		a.turnAway(unstored(err))
		a.reload()
	}
}

func unstored(err error) hcp.Answer {
	return refuse(hcp.Errorf(hcp.CodeUnavailable, "store_unavailable", "HCP could not store the request").
		WithRetryAfter(time.Second).WithCause(err))
}

// turnAway answers the commands that wait: how long the store is in trouble
// nobody knows, and their callers may repeat them.
func (a *Actor) turnAway(answer hcp.Answer) {
	a.waiting = slices.DeleteFunc(a.waiting, func(msg any) bool {
		ask, ok := msg.(Ask)
		if ok {
			ask.Reply(answer)
		}
		return ok
	})
}

// renamed is the state of a VM whose delete gave its name away and then failed,
// when somebody else has the name by now: it comes back under the one it bears on
// its provider, which nobody else can have.
func renamed(st State) State {
	st = st.clone()
	st.VM.Name = st.VM.ProviderName
	for i := range st.Jobs {
		st.Jobs[i].VMName = st.VM.Name
	}
	return st
}

// reload forgets what is in memory and reads the row again after a pause.
func (a *Actor) reload() {
	a.state, a.phase, a.claimed = State{}, loading, false
	a.runID++
	a.out = nil
	a.retries++
	pause := min(100*time.Millisecond<<min(a.retries, 6), 5*time.Second)
	a.deps.Clock.AfterFunc(pause, func() { a.self.Tell(again{}) })
}

// replayed answers a command whose key was used before.
func replayed(r *persistence.IdempotencyRecord, key *hcp.IdempotencyKey) hcp.Answer {
	if key == nil || r.Fingerprint != key.Fingerprint {
		return refuse(hcp.Errorf(hcp.CodeIdempotencyKeyReused, "key_reused", "the idempotency key was used for another request"))
	}
	return hcp.Answer{Status: r.Status, Body: r.Body, VM: r.VM, Job: r.Job, Replayed: true}
}

func (a *Actor) setAlarm(at time.Time) {
	if a.stopAlarm != nil {
		a.stopAlarm()
	}
	a.stopAlarm = a.deps.Clock.AfterFunc(at.Sub(a.deps.Clock.Now()), func() { a.self.Tell(alarm{at}) })
}
