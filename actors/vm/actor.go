package vm

import (
	"context"
	"log/slog"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/persistence"
)

// Messages that come from outside.
type (
	// Ask is a command; Reply is called exactly once, from any goroutine.
	Ask struct {
		Command hcp.Command
		Reply   func(hcp.Answer)
	}
	// Wake makes an actor look at its jobs: a scan found one due.
	Wake struct{}
	// ClusterUp says that the VM's provider answers again: a job that waits for it
	// need not wait any longer.
	ClusterUp struct{ Cluster hcp.ClusterID }
)

// Messages that the actor sends itself.
type (
	loaded struct {
		state persistence.VMState
		err   error
	}
	committed struct {
		seq int64
		err error
	}
	ran struct {
		run     Run
		id      int64
		results []saga.StepResult
	}
	due   struct{ id int64 } // a pause of the running work is over
	alarm struct{ at time.Time }
	again struct{} // the row is to be read anew
)

// Deps are what every VM actor shares.
type Deps struct {
	Core    *Core
	Store   persistence.Store
	Workers provider.Workers
	Sealer  persistence.Sealer
	Clock   clock.Clock
	Log     *slog.Logger
	Node    string
	// Incarnation of this node's member row.
	Incarnation int64
	// Committed is told of each commit that ended jobs or made events; it must not block.
	Committed func(done []hcp.Job, events bool)
	// Called counts provider calls.
	Called func(cluster hcp.ClusterID, op string, took time.Duration, err error)
}

// phase of the shell.
type phase int

const (
	cold       phase = iota // nothing read yet
	loading                 // the row is being read
	ready                   // free to decide
	committing              // a decision is on its way to disk
	left                    // retired: whoever asks is sent on
)

// Actor performs what Core decides for one VM.
type Actor struct {
	deps  *Deps
	self  *actors.Self
	log   *slog.Logger
	phase phase

	state   State
	epoch   int64
	seq     int64
	claimed bool // this activation has written

	// waiting holds messages that came while a commit or the first read was out.
	waiting []any
	// pending is the decision on its way to disk, and the message it answers.
	pending    Decision
	pendingMsg any
	out        *Run  // the work that is out, or waits for its pause
	runID      int64 // of the work that is out; results of older runs are dropped
	retries    int
	calls      provider.CallLog
	stopAlarm  func() bool
}

var _ actors.Behaviour = (*Actor)(nil)

// New makes the behaviour of one activation.
func New(deps *Deps, self *actors.Self) *Actor {
	return &Actor{deps: deps, self: self, log: deps.Log.With("vm", self.ID())}
}

// Receive handles one message. While a commit is on its way only its result is
// heard; everything else waits its turn, in order.
func (a *Actor) Receive(msg any) {
	switch m := msg.(type) {
	case loaded:
		a.onLoaded(m)
	case committed:
		a.onCommitted(m)
	case due:
		if a.phase != left && m.id == a.runID && a.state.Running != nil {
			a.submit(*a.state.Running)
		}
		return
	case again:
		a.load()
		return
	default:
		if a.phase == left {
			if ask, ok := msg.(Ask); ok {
				ask.Reply(moved())
			}
			return
		}
		if a.phase != ready && !a.opens(msg) {
			a.waiting = append(a.waiting, msg)
			return
		}
		a.handle(msg)
	}
	a.drain()
	a.markBusy()
}

// opens lets a create decide without reading first: its id is fresh, and the
// store refuses the insert of a row that exists.
func (a *Actor) opens(msg any) bool {
	if a.phase != cold {
		return false
	}
	if ask, ok := msg.(Ask); ok && ask.Command.Verb == hcp.VerbCreate {
		a.phase = ready
		return true
	}
	a.load()
	return false
}

// drain handles what waited, until something is on its way to disk again.
func (a *Actor) drain() {
	for a.phase == ready && len(a.waiting) > 0 {
		msg := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.handle(msg)
	}
}

func (a *Actor) markBusy() {
	a.self.SetBusy(a.phase == loading || a.phase == committing || len(a.state.Jobs) > 0 || len(a.waiting) > 0)
}

// handle decides one message; the actor is ready.
func (a *Actor) handle(msg any) {
	now := a.deps.Clock.Now()
	core := a.deps.Core
	switch m := msg.(type) {
	case Ask:
		a.onAsk(m, now)
	case ran:
		if m.id == a.runID && a.state.Running != nil {
			a.perform(msg, core.Advance(a.state, m.run, m.results, now))
		}
	case alarm:
		a.perform(msg, core.Due(a.state, now))
	case Wake:
		if a.state.Running == nil {
			a.perform(msg, core.Due(a.state, now))
		}
	case Notice:
		a.perform(msg, core.Observe(a.state, m, now))
	case ClusterUp:
		if m.Cluster == a.state.VM.Cluster && a.state.Running == nil {
			a.perform(msg, core.Hurry(a.state, now))
		}
	default:
		a.log.Error("an actor got a message it does not know", "message", msg)
	}
}

func (a *Actor) onAsk(m Ask, now time.Time) {
	if !m.Command.Deadline.IsZero() && now.After(m.Command.Deadline) {
		m.Reply(refuse(hcp.Errorf(hcp.CodeUnavailable, "deadline_passed", "the call waited longer than its caller")))
		return
	}
	if m.Command.Verb == hcp.VerbExplain {
		m.Reply(a.explain(now))
		return
	}
	d, err := a.deps.Core.Accept(a.state, m.Command, now)
	if err != nil {
		a.refuseOrReplay(m, err)
		a.leaveIfAbsent()
		return
	}
	a.perform(m, d)
}

// refuseOrReplay answers a command that cannot be taken as things stand. With a
// key it may repeat one that was accepted since its caller looked for a former
// answer, and stands as it does because of that one: it gets that one's answer.
func (a *Actor) refuseOrReplay(m Ask, why error) {
	key := m.Command.Key
	if key == nil {
		m.Reply(refuse(why))
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		record, err := a.deps.Store.FindKey(ctx, *key)
		switch {
		case err == nil:
			m.Reply(replayed(&record, key))
		case hcp.IsCode(err, hcp.CodeNotFound):
			m.Reply(refuse(why))
		default:
			m.Reply(refuse(err))
		}
	}()
}

// leaveIfAbsent ends an activation that has no row: nothing is here to keep.
func (a *Actor) leaveIfAbsent() {
	if !a.state.exists() {
		a.leave()
	}
}

func refuse(err error) hcp.Answer { return hcp.Answer{Fault: hcp.AsError(err).Wire()} }

// moved tells the router to ask again: another activation owns the VM.
func moved() hcp.Answer {
	return refuse(hcp.Errorf(hcp.CodeUnavailable, hcp.ReasonMoved, "the VM has moved to another owner"))
}

// Crashed answers whoever waits for a broken activation.
func (a *Actor) Crashed(msg any, why error) {
	if ask, ok := msg.(Ask); ok {
		ask.Reply(refuse(hcp.Errorf(hcp.CodeInternal, "actor_failed", "HCP met an error it did not expect").WithCause(why)))
	}
	for _, w := range a.waiting {
		if ask, ok := w.(Ask); ok {
			ask.Reply(moved())
		}
	}
	a.waiting = nil
	if ask, ok := a.pendingMsg.(Ask); ok {
		a.pendingMsg = nil
		ask.Reply(moved())
	}
}

// load reads the row outside of the mailbox.
func (a *Actor) load() {
	a.phase = loading
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		st, err := a.deps.Store.LoadVM(ctx, hcp.VMID(a.self.ID()))
		a.self.Tell(loaded{st, err})
	}()
}

const loadTimeout = 10 * time.Second

func (a *Actor) onLoaded(m loaded) {
	a.phase = ready
	switch {
	case hcp.IsCode(m.err, hcp.CodeNotFound):
		a.state = State{}
	case m.err != nil:
		a.log.Warn("the VM could not be read", "err", m.err)
		a.giveUp(refuse(m.err))
		return
	default:
		a.state = State{VM: m.state.VM, Jobs: m.state.Jobs, Last: m.state.Last}
		a.epoch, a.seq = m.state.Epoch, m.state.Seq
		a.perform(Wake{}, a.deps.Core.Resume(a.state, a.deps.Clock.Now()))
	}
}

// giveUp answers everybody who waits and ends this activation.
func (a *Actor) giveUp(answer hcp.Answer) {
	waiting := a.waiting
	a.waiting = nil
	if ask, ok := a.pendingMsg.(Ask); ok {
		ask.Reply(answer)
	}
	a.pendingMsg = nil
	for _, w := range waiting {
		if ask, ok := w.(Ask); ok {
			ask.Reply(answer)
		}
	}
	a.leave()
}

// leave ends this activation; messages still in its queue are sent on.
func (a *Actor) leave() {
	a.state, a.phase = State{}, left
	a.runID++
	if a.stopAlarm != nil {
		a.stopAlarm()
	}
	a.self.Retire()
}
