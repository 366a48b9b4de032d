package saga

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// Action is one try of a step. It is idempotent: the process may die after any
// call it makes, and it will be run again with what the journal knows.
type Action func(ctx context.Context, in Input) Result

// Step declares one step of a job.
type Step struct {
	Name string
	Do   Action
	// Undo takes back what Do may have done, wholly or in part; nil when there is
	// nothing to take back. It is as idempotent as Do.
	Undo Action
	// Reads marks a step that only reads the provider: it needs no intent on disk
	// before it runs, and runs together with the step before it.
	Reads bool
	// Follows marks a step that runs under the intent of the step before it: running
	// both again is as safe as running either again, so no commit stands between.
	Follows bool
	// Makes marks the step whose effect is the provider object itself: from its begin
	// until its outcome is known the VM has an open create intent.
	Makes bool
	// Cancellable says whether a cancel request ends the job at this step.
	Cancellable bool
}

// joined reports whether the step runs without a commit of its own before it.
func (s Step) joined() bool { return s.Reads || s.Follows }

// Definition is the declaration of a kind of job.
type Definition struct {
	Kind  hcp.JobKind
	Steps []Step
}

// IntentOf is the step whose begin was committed for step i: i itself, or the
// nearest step before it that is not joined to its predecessor.
func (d Definition) IntentOf(i int) int {
	for i > 0 && d.Steps[i].joined() {
		i--
	}
	return i
}

// Undoes reports whether any of the first n+1 steps has something to undo.
func (d Definition) Undoes(n int) bool {
	for i := 0; i <= n && i < len(d.Steps); i++ {
		if d.Steps[i].Undo != nil {
			return true
		}
	}
	return false
}

// Initial is the stored form of the steps of a new job.
func (d Definition) Initial() []hcp.Step {
	steps := make([]hcp.Step, len(d.Steps))
	for i, s := range d.Steps {
		steps[i] = hcp.Step{Name: s.Name, State: hcp.StepPending, Cancellable: s.Cancellable}
	}
	return steps
}

// Input is all an action may look at.
type Input struct {
	VM     hcp.VM
	Job    hcp.Job
	Step   hcp.Step // as stored, with the journalled task, and Unknown after a try without outcome
	Token  drivers.Token
	Driver drivers.Driver // fenced: it refuses a mutating call when the intent has moved
	// Spec opens what is sealed and builds the driver's spec; only a create needs it.
	Spec func() (drivers.Spec, error)
	// Settle is how long an object may take to show after an unknown create.
	Settle time.Duration
	Now    func() time.Time
	// Round counts the runs of this step without a durable change in between (polls,
	// repeated requests), from 0.
	Round int
}

// Outcome of one action.
type Outcome int

const (
	// Done: the step's goal is reached, and was read back where it can be.
	Done Outcome = iota
	// Again: nothing durable has changed; run the action again after Result.After.
	Again
	// Journal: store Result.Change and the task, then run again. Nothing may wait on a
	// provider task before it is journalled.
	Journal
	// Failed: Result.Err says why; the decision what to do is not the action's.
	Failed
)

// Result is what an action found out.
type Result struct {
	Outcome Outcome
	After   time.Duration
	Task    *hcp.TaskRef
	Note    string
	Err     *hcp.Error
	// TaskOver says that the journalled task has ended and must not be asked again.
	TaskOver bool
	// NoRetry says that trying again cannot help, whatever the code's entry says.
	NoRetry bool
	Change  Change
}

// Change is what a step learnt about the VM; nil fields leave things alone.
type Change struct {
	Ref          *hcp.ProviderRef // the provider's identity is now this
	Gone         bool             // verified absent: the VM has no provider object
	Power        hcp.Power        // read back at PowerAt
	PowerAt      time.Time
	CreateIntent *bool
	Observed     *drivers.Observation
	Residue      []hcp.Residue // what an undo could not remove
}

// Merge lays a later change over an earlier one.
func (c Change) Merge(later Change) Change {
	if later.Ref != nil {
		c.Ref, c.Gone = later.Ref, false
	}
	if later.Gone {
		c.Ref, c.Gone = nil, true
	}
	if later.Power != "" {
		c.Power, c.PowerAt = later.Power, later.PowerAt
	}
	if later.CreateIntent != nil {
		c.CreateIntent = later.CreateIntent
	}
	if later.Observed != nil {
		c.Observed = later.Observed
	}
	if later.Residue != nil {
		c.Residue = later.Residue
	}
	return c
}

// Apply lays the change on a VM.
func (c Change) Apply(vm *hcp.VM) {
	if c.Ref != nil {
		ref := *c.Ref
		vm.Ref = &ref
	}
	if c.Gone {
		vm.Ref, vm.CreateIntent, vm.Power = nil, false, hcp.PowerStopped
	}
	if c.Power != "" {
		vm.Power, vm.PowerAt = c.Power, c.PowerAt
	}
	if c.CreateIntent != nil {
		vm.CreateIntent = *c.CreateIntent
	}
}
