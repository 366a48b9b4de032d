package vm

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/persistence"
)

// State is what the actor knows of its VM. What is not in it after a commit is
// forgotten by the next activation.
type State struct {
	VM   hcp.VM
	Jobs []hcp.Job // not final, in order; the first has the turn
	Last *hcp.Job  // the newest final job
	// Running is the work that is out at the provider's workers, or waits for its
	// timer; not durable.
	Running *Run
}

// exists reports whether there is a row.
func (s State) exists() bool { return s.VM.ID != "" }

// clone copies the state so that a decision can change the copy.
func (s State) clone() State {
	c := State{VM: s.VM.Clone(), Last: s.Last, Running: s.Running}
	for _, j := range s.Jobs {
		c.Jobs = append(c.Jobs, j.Clone())
	}
	return c
}

// Run is one piece of provider work: a step of the job that has the turn, and
// those joined to it.
type Run struct {
	Job   hcp.JobID
	Step  int
	Undo  bool
	Round int           // runs of this step since the last durable change
	Mode  hcp.StopMode  // of the job when the run began
	After time.Duration // pause before it begins
}

// Decision is the outcome of one message.
type Decision struct {
	State  State
	Commit *persistence.Commit // without actor, epoch and seq; nil: nothing durable changed
	Answer *hcp.Answer         // for the command, once the commit is on disk
	Run    *Run                // to begin after the commit
	WakeAt time.Time           // when to look at the waiting job again
	Done   []hcp.Job           // jobs that became final: for waiters and metrics
}

// Policy are the bounds of jobs. Every one is above zero.
type Policy struct {
	StepTimeout time.Duration
	JobTimeout  time.Duration
	UndoTimeout time.Duration
	UndoTries   int
	Queue       int // jobs behind the one that has the turn
	RetryFirst  time.Duration
	RetryMax    time.Duration
	KeyTTL      time.Duration
}

// DefaultPolicy is what holds without configuration.
func DefaultPolicy() Policy {
	return Policy{
		StepTimeout: 30 * time.Minute, JobTimeout: 2 * time.Hour, UndoTimeout: time.Hour, UndoTries: 10, Queue: 8,
		RetryFirst: 250 * time.Millisecond, RetryMax: 30 * time.Second, KeyTTL: 24 * time.Hour,
	}
}

// Core decides. It is pure but for NewID and Jitter, which come from outside.
type Core struct {
	Policy Policy
	Kinds  map[hcp.JobKind]saga.Definition
	NewID  func(hcp.IDKind) string
	// Jitter shortens a pause by a random part, so that many that fail together do not
	// come back together.
	Jitter func(time.Duration) time.Duration
	// Settle is how long an unknown create on this cluster may take to show.
	Settle func(hcp.ClusterID) time.Duration
}

// turn gathers what one decision makes durable.
type turn struct {
	*Core
	now    time.Time
	st     State
	old    hcp.VM
	commit persistence.Commit
	call   hcp.Call // who caused it
	wake   map[hcp.JobID]time.Time
	dirty  map[hcp.JobID]bool
	done   []hcp.Job
	run    *Run
	wakeAt time.Time
	answer *hcp.Answer
}

// hcpItself is the actor of what nobody asked for.
const hcpItself = "hcp"

func (c *Core) begin(st State, now time.Time) *turn {
	return &turn{Core: c, now: now, st: st.clone(), old: st.VM, call: hcp.Call{Actor: hcpItself},
		wake: map[hcp.JobID]time.Time{}, dirty: map[hcp.JobID]bool{}}
}

// settle brings the derived fields of the VM up to date.
func (t *turn) settle() {
	vm := &t.st.VM
	vm.UpdatedAt = t.now
	vm.Activity = ""
	if len(t.st.Jobs) > 0 {
		vm.Activity = t.st.Jobs[0].Kind
	}
}

// decision closes the turn.
func (t *turn) decision() Decision {
	t.settle()
	t.stateEvents()
	turn := persistence.Turn{}
	if head := t.head(); head != nil {
		turn = t.turnOf(head)
	}
	t.commit.Turn = &turn
	t.commit.Jobs = append(t.commit.Jobs, t.done...)
	for i := range t.st.Jobs {
		j := &t.st.Jobs[i]
		if !t.dirty[j.ID] {
			continue
		}
		t.commit.Jobs = append(t.commit.Jobs, j.Clone())
		at := t.now
		if j.State == hcp.JobWaiting && i == 0 {
			at = j.NextAttemptAt
		}
		t.wake[j.ID] = at
	}
	t.commit.Wake = t.wake
	t.st.Running = t.run
	commit := t.commit
	committed := t.st.VM.Clone()
	commit.VM = &committed
	return Decision{State: t.st, Commit: &commit, Answer: t.answer, Run: t.run, WakeAt: t.wakeAt, Done: t.done}
}

// head is the job that has the turn.
func (t *turn) head() *hcp.Job {
	if len(t.st.Jobs) == 0 {
		return nil
	}
	return &t.st.Jobs[0]
}

// turnOf is the intent under which provider calls for the job may go out.
func (t *turn) turnOf(j *hcp.Job) persistence.Turn {
	step := j.Current()
	if step == nil || j.State.Final() || j.State == hcp.JobQueued {
		return persistence.Turn{}
	}
	if j.Phase == hcp.PhaseUndo {
		return persistence.Turn{Job: j.ID, Step: "undo:" + step.Name, Attempt: step.UndoTries}
	}
	intent := &j.Steps[t.Kinds[j.Kind].IntentOf(j.Step)]
	return persistence.Turn{Job: j.ID, Step: intent.Name, Attempt: intent.Attempts}
}

// pauseBefore is the pause before try n+1, growing and jittered.
func (t *turn) pauseBefore(n int) time.Duration {
	d := t.Policy.RetryFirst << min(max(n-1, 0), 20)
	return t.Jitter(min(d, t.Policy.RetryMax))
}
