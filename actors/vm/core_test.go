package vm

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/actors/steps"
)

// Decisions need no actor system, no store and no provider: state, message and
// time go in, state and effects come out.

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newCore() *Core {
	n := 0
	return &Core{Policy: DefaultPolicy(), Kinds: steps.Definitions(),
		NewID:  func(k hcp.IDKind) string { n++; return fmt.Sprintf("%s_%d", k, n) },
		Jitter: func(d time.Duration) time.Duration { return d },
		Settle: func(hcp.ClusterID) time.Duration { return 30 * time.Second }}
}

// at builds the state of a VM at rest.
func at(l hcp.Lifecycle, p hcp.Power) State {
	return State{VM: hcp.VM{ID: "vm_1", Name: "web", Lifecycle: l, Power: p, Cluster: "cl_1", Generation: 1, Holding: true,
		Ref: &hcp.ProviderRef{ID: "100"}, Flavor: hcp.FlavorPin{VCPUs: 1, MemoryMiB: 256}}}
}

func accept(t *testing.T, c *Core, st State, cmd hcp.Command) State {
	t.Helper()
	d, err := c.Accept(st, cmd, t0)
	if err != nil {
		t.Fatalf("%s is refused: %v", cmd.Verb, err)
	}
	if d.Commit == nil || d.Answer == nil {
		t.Fatalf("%s is accepted without a commit or an answer", cmd.Verb)
	}
	return d.State
}

func reason(t *testing.T, c *Core, st State, cmd hcp.Command) string {
	t.Helper()
	_, err := c.Accept(st, cmd, t0)
	if err == nil {
		t.Fatalf("%s is accepted", cmd.Verb)
	}
	return hcp.AsError(err).Reason
}

// run finishes the steps of the job that has the turn, one run at a time.
func run(t *testing.T, c *Core, st State) State {
	t.Helper()
	for i := 0; st.Running != nil && i < 20; i++ {
		r := *st.Running
		def := c.Kinds[st.Jobs[0].Kind]
		results := []saga.StepResult{{Index: r.Step, Result: saga.Finish("")}}
		for s := r.Step + 1; s < len(def.Steps) && (def.Steps[s].Follows || def.Steps[s].Reads) && !r.Undo; s++ {
			results = append(results, saga.StepResult{Index: s, Result: saga.Finish("")})
		}
		st = c.Advance(st, r, results, t0).State
	}
	return st
}

func TestTheSameVerbAsTheLastQueuedOneJoinsIt(t *testing.T) {
	c := newCore()
	st := accept(t, c, at(hcp.LifecycleActive, hcp.PowerStopped), hcp.Command{Verb: hcp.VerbStart})
	d, err := c.Accept(st, hcp.Command{Verb: hcp.VerbStart}, t0)
	if err != nil || len(d.State.Jobs) != 1 || d.Answer.Job != st.Jobs[0].ID || len(d.State.Jobs[0].Requests) != 2 {
		t.Fatalf("the second start made %d jobs (%v), want the first one with two requests", len(d.State.Jobs), err)
	}
	if d.Run != st.Running {
		t.Error("joining began the provider's work anew")
	}
}

func TestAVerbIsJudgedAgainstTheStateAfterTheQueue(t *testing.T) {
	c := newCore()
	st := at(hcp.LifecycleActive, hcp.PowerStopped)
	if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbStop}); got != "already_in_state" {
		t.Errorf("stop of a stopped VM: %s", got)
	}
	st = accept(t, c, st, hcp.Command{Verb: hcp.VerbStart})
	st = accept(t, c, st, hcp.Command{Verb: hcp.VerbStop}) // after the start it will be running
	if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbReboot}); got != "wrong_power" {
		t.Errorf("reboot behind a stop: %s", got)
	}
}

func TestTheQueueIsBoundedAndDeleteIsAlwaysTaken(t *testing.T) {
	c := newCore()
	st := at(hcp.LifecycleActive, hcp.PowerStopped)
	verbs := []hcp.Verb{hcp.VerbStart, hcp.VerbStop}
	for i := range c.Policy.Queue + 1 {
		st = accept(t, c, st, hcp.Command{Verb: verbs[i%2]})
	}
	if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbStop}); got != "queue_full" {
		t.Errorf("one more verb: %s", got)
	}
	d, err := c.Accept(st, hcp.Command{Verb: hcp.VerbDelete}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(d.State.Jobs); n != 2 || d.State.Jobs[1].Kind != hcp.JobDelete || d.State.Jobs[0].Cancel == nil {
		t.Errorf("after the delete %d jobs live, want the cancelled head and the delete", n)
	}
	if len(d.Done) != c.Policy.Queue || d.Done[0].State != hcp.JobCancelled {
		t.Errorf("%d queued jobs ended, want all %d cancelled", len(d.Done), c.Policy.Queue)
	}
	if d.State.VM.HoldsName() {
		t.Error("the name is not free from the commit that accepts the delete")
	}
	if again, err := c.Accept(d.State, hcp.Command{Verb: hcp.VerbDelete}, t0); err != nil || again.Answer.Job != d.Answer.Job {
		t.Errorf("a second delete does not join the first: %v", err)
	}
}

func TestACreateIsFourCommits(t *testing.T) {
	c := newCore()
	vm := at("", "").VM
	vm.Ref = nil
	d, err := c.Accept(State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: vm, Start: true}}, t0)
	if err != nil {
		t.Fatal(err)
	}
	commits, st := 1, d.State
	for st.Running != nil {
		r := *st.Running
		def := c.Kinds[hcp.JobCreate]
		results := []saga.StepResult{{Index: r.Step, Result: saga.Finish("")}}
		for s := r.Step + 1; s < len(def.Steps) && (def.Steps[s].Follows || def.Steps[s].Reads); s++ {
			results = append(results, saga.StepResult{Index: s, Result: saga.Finish("")})
		}
		d := c.Advance(st, r, results, t0)
		if d.Commit != nil {
			commits++
		}
		st = d.State
	}
	if commits != 4 || st.Last.State != hcp.JobSucceeded || st.VM.State() == hcp.StateCreating {
		t.Errorf("%d commits, job %s, want 4 and succeeded", commits, st.Last.State)
	}
}

func TestNoIntentNoCall(t *testing.T) {
	// Each commit carries the turn under which the next provider call may go out; a job
	// that waits or has ended carries none that an older call could use.
	c := newCore()
	d, _ := c.Accept(at(hcp.LifecycleActive, hcp.PowerStopped), hcp.Command{Verb: hcp.VerbStart}, t0)
	first := *d.Commit.Turn
	if first.Job != d.Answer.Job || first.Step != "start" || first.Attempt != 1 {
		t.Fatalf("turn %+v", first)
	}
	away := saga.StepResult{Index: 0, Result: saga.Fail(hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "away"))}
	w := c.Advance(d.State, *d.Run, []saga.StepResult{away}, t0)
	if w.State.Jobs[0].State != hcp.JobWaiting || w.WakeAt.IsZero() {
		t.Fatalf("after an unavailable provider the job is %s", w.State.Jobs[0].State)
	}
	again := c.Due(w.State, w.WakeAt)
	if turn := *again.Commit.Turn; turn.Attempt != 2 || turn == first {
		t.Errorf("the second attempt runs under the turn %+v", turn)
	}
	over := run(t, c, again.State)
	if over.Last == nil || over.Last.State != hcp.JobSucceeded {
		t.Fatalf("last job %+v", over.Last)
	}
}

func TestAnInterruptedCreateLooksBeforeItActs(t *testing.T) {
	// The process died between the intent and the answer: the outcome is unknown, and
	// absence proves nothing before the settle time is over.
	c := newCore()
	vm := at("", "").VM
	d, _ := c.Accept(State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: vm}}, t0)
	d = c.Advance(d.State, *d.Run, []saga.StepResult{{Index: 0, Result: saga.Finish("")}}, t0)
	if !d.State.VM.CreateIntent {
		t.Fatal("the begin of the create is not on record")
	}
	crashed := d.State
	crashed.Running = nil
	later := t0.Add(time.Minute)
	r := c.Resume(crashed, later)
	step := r.State.Jobs[0].Steps[1]
	if !step.Unknown || step.Attempts != 2 || !step.LookUntil.Equal(later.Add(30*time.Second)) {
		t.Errorf("step %+v", step)
	}
}

func TestAFailedCreateReleasesWhatItHeld(t *testing.T) {
	c := newCore()
	vm := at("", "").VM
	d, _ := c.Accept(State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: vm, Claim: vm.Flavor.Sizes()}}, t0)
	fail := saga.StepResult{Index: 0, Result: saga.Fail(hcp.Errorf(hcp.CodeNoCapacity, "no_room", "full"))}
	d = c.Advance(d.State, *d.Run, []saga.StepResult{fail}, t0)
	if d.State.Last.State != hcp.JobFailed || d.State.VM.State() != hcp.StateError || d.State.VM.Holding {
		t.Fatalf("job %s, VM %s, holding %v", d.State.Last.State, d.State.VM.State(), d.State.VM.Holding)
	}
	if h := d.Commit.Holds; len(h) != 1 || len(h[0].Amounts) != 0 || len(d.Commit.Claims) != 1 {
		t.Errorf("the commit that ends the job does not release: %+v %+v", h, d.Commit.Claims)
	}
	again := accept(t, c, d.State, hcp.Command{Verb: hcp.VerbRetry, Job: d.State.Last.ID})
	if again.VM.Lifecycle != hcp.LifecycleCreating || !again.VM.Holding || again.VM.ID != vm.ID {
		t.Errorf("a retry is %s on %s, holding %v", again.VM.Lifecycle, again.VM.ID, again.VM.Holding)
	}
}

func TestAForeignIDIsSteppedAround(t *testing.T) {
	c := newCore()
	vm := at("", "").VM
	d, _ := c.Accept(State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: vm}}, t0)
	d = c.Advance(d.State, *d.Run, []saga.StepResult{{Index: 0, Result: saga.Finish("")}}, t0)
	taken := saga.StepResult{Index: 1, Result: saga.Fail(hcp.Errorf(hcp.CodeConflict, "ref_taken", "a stranger has it"))}
	d = c.Advance(d.State, *d.Run, []saga.StepResult{taken}, t0)
	job := d.State.Jobs[0]
	if job.Step != 0 || d.State.VM.Ref != nil || len(job.TakenRefs) != 1 || job.TakenRefs[0] != "100" || d.State.VM.CreateIntent {
		t.Errorf("step %d, ref %v, taken %v", job.Step, d.State.VM.Ref, job.TakenRefs)
	}
}

func TestUpdateChangesOnlyWithTheRightGeneration(t *testing.T) {
	c := newCore()
	st := at(hcp.LifecycleActive, hcp.PowerRunning)
	name := "db"
	if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbUpdate, Update: &hcp.UpdateVM{IfGeneration: 7, Name: &name}}); got != "generation_moved" {
		t.Errorf("a stale update: %s", got)
	}
	st = accept(t, c, st, hcp.Command{Verb: hcp.VerbUpdate, Update: &hcp.UpdateVM{IfGeneration: 1, Name: &name}})
	if st.VM.Name != "db" || st.VM.Generation != 2 {
		t.Errorf("name %q generation %d", st.VM.Name, st.VM.Generation)
	}
}

func TestEveryAcceptedAnswerIsTheTenantsView(t *testing.T) {
	// The stored bytes of a 202 are what every replay returns: no provider id may be in them.
	c := newCore()
	d, _ := c.Accept(at(hcp.LifecycleActive, hcp.PowerStopped), hcp.Command{Verb: hcp.VerbStart, Key: &hcp.IdempotencyKey{Key: "k"}}, t0)
	var body struct {
		ResourceID hcp.VMID  `json:"resource_id"`
		JobID      hcp.JobID `json:"job_id"`
		Resource   map[string]any
	}
	if err := json.Unmarshal(d.Answer.Body, &body); err != nil || body.ResourceID != "vm_1" || body.JobID != d.Answer.Job {
		t.Fatalf("%v in %s", err, d.Answer.Body)
	}
	for _, secret := range []string{"ref", "cluster", "provider_name", "holding"} {
		if _, ok := body.Resource[secret]; ok {
			t.Errorf("the answer shows %s", secret)
		}
	}
	if string(d.Commit.Key.Body) != string(d.Answer.Body) {
		t.Error("the stored answer differs from the one that was given")
	}
}

func TestNothingRunsOnADeletedVM(t *testing.T) {
	// A refresh that was queued behind a delete ran, and told its events, after the VM's
	// resource.deleted.
	c := newCore()
	st := accept(t, c, at(hcp.LifecycleActive, hcp.PowerStopped), hcp.Command{Verb: hcp.VerbDelete})
	st = accept(t, c, st, hcp.Command{Verb: hcp.VerbRefresh})
	st = run(t, c, st)
	if st.VM.Lifecycle != hcp.LifecycleDeleted || len(st.Jobs) != 0 || st.Last.Kind != hcp.JobRefresh || st.Last.State != hcp.JobCancelled {
		t.Errorf("the VM is %s with %d jobs; the last, %s, ended %s", st.VM.Lifecycle, len(st.Jobs), st.Last.Kind, st.Last.State)
	}
}

func TestResidueThatCannotBeRemovedIsNotTriedAtEverySweep(t *testing.T) {
	// Each sweep that saw the residue made another cleanup, which failed as the one before:
	// a job, its events and its audit rows every ten seconds, for ever.
	c := newCore()
	st := at(hcp.LifecycleError, hcp.PowerStopped)
	st.VM.CreateIntent = true
	st.Last = &hcp.Job{ID: "job_0", Kind: hcp.JobCleanup, State: hcp.JobNeedsAttention, FinishedAt: t0}
	seen := Notice{Residue: true}
	if d := c.Observe(st, seen, t0.Add(10*time.Second)); d.Commit != nil {
		t.Error("the next sweep made another cleanup")
	}
	if d := c.Observe(st, seen, t0.Add(cleanupPause)); len(d.State.Jobs) != 1 || d.State.Jobs[0].Kind != hcp.JobCleanup {
		t.Error("the residue is never tried again")
	}
}

func TestAFailedCreateCanBeTriedAgainAfterALook(t *testing.T) {
	// A refresh, or HCP's own cleanup, took the place of the VM's last job, and the create
	// could never be tried again.
	c := newCore()
	st := at(hcp.LifecycleError, hcp.PowerStopped)
	st.VM.SetCondition(hcp.Condition{Type: createFailed})
	st.VM.Desired.Power = hcp.PowerRunning
	for _, kind := range []hcp.JobKind{hcp.JobRefresh, hcp.JobCleanup} {
		st.Last = &hcp.Job{ID: "job_2", Kind: kind, State: hcp.JobSucceeded}
		got := accept(t, c, st, hcp.Command{Verb: hcp.VerbRetry, Job: "job_1"})
		if len(got.Jobs) != 1 || got.Jobs[0].Kind != hcp.JobCreate || !got.Jobs[0].Params.StartAfter {
			t.Errorf("after a %s: %+v", kind, got.Jobs)
		}
		if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbRetry, Job: "job_2"}); got != "not_retryable" {
			t.Errorf("the %s itself: %s", kind, got)
		}
	}
	st.Last = &hcp.Job{ID: "job_2", Kind: hcp.JobDelete, State: hcp.JobNeedsAttention}
	if got := reason(t, c, st, hcp.Command{Verb: hcp.VerbRetry, Job: "job_1"}); got != "not_last_job" {
		t.Errorf("after a delete: %s", got)
	}
}

func TestAnUndoOutlastsAnOutage(t *testing.T) {
	// Each refusal of the open breaker counted as a try: an outage of two minutes used up
	// all ten, and the undo was given up with its machine left behind.
	c := newCore()
	st := accept(t, c, State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: at(hcp.LifecycleCreating, hcp.PowerStopped).VM}})
	st = c.Advance(st, *st.Running, []saga.StepResult{{Index: 0, Result: saga.Finish("")}}, t0).State
	st = c.Advance(st, *st.Running, []saga.StepResult{{Index: 1, Result: saga.Fail(hcp.Errorf(hcp.CodeInternal, "planted", "planted"))}}, t0).State
	away := saga.Fail(hcp.Errorf(hcp.CodeProviderUnavailable, "breaker_open", "planted"))
	now := t0
	for range 50 {
		st = c.Advance(st, *st.Running, []saga.StepResult{{Index: 1, Result: away}}, now).State
		if len(st.Jobs) == 0 {
			t.Fatalf("given up %s after the start: %s", now.Sub(t0), st.Last.State)
		}
		now = st.Jobs[0].NextAttemptAt
		st = c.Due(st, now).State
	}
	now = t0.Add(c.Policy.UndoTimeout)
	if st = c.Advance(st, *st.Running, []saga.StepResult{{Index: 1, Result: away}}, now).State; st.Last == nil || st.Last.State != hcp.JobNeedsAttention {
		t.Error("the undo has no end")
	}
}

func TestACreateThatNeverBeganHoldsNoProviderID(t *testing.T) {
	// A create cancelled right after its id was reserved kept the id: the VM's record named
	// a machine that never was.
	c := newCore()
	vm := at(hcp.LifecycleCreating, hcp.PowerStopped).VM
	vm.Ref = nil
	st := accept(t, c, State{}, hcp.Command{Verb: hcp.VerbCreate, Create: &hcp.CreateVM{VM: vm}})
	st = accept(t, c, st, hcp.Command{Verb: hcp.VerbCancel, Job: st.Jobs[0].ID})
	reserved := saga.Finish("").With(saga.Change{Ref: &hcp.ProviderRef{ID: "100"}})
	st = c.Advance(st, *st.Running, []saga.StepResult{{Index: 0, Result: reserved}}, t0).State
	if st.Last == nil || st.Last.State != hcp.JobCancelled || st.VM.Ref != nil || st.VM.Holding {
		t.Errorf("last job %+v, ref %v, holding %t", st.Last, st.VM.Ref, st.VM.Holding)
	}
}

func TestForceEscalatesAGracefulStop(t *testing.T) {
	// A stop with force joined a graceful one that was running, was accepted, and forced nothing.
	c := newCore()
	d, err := c.Accept(at(hcp.LifecycleActive, hcp.PowerRunning), hcp.Command{Verb: hcp.VerbStop, Stop: &hcp.StopVM{Mode: hcp.StopGraceful}}, t0)
	if err != nil {
		t.Fatal(err)
	}
	waits := c.Advance(d.State, Run{Job: d.Run.Job, Round: 20, Mode: hcp.StopGraceful}, []saga.StepResult{{Result: saga.Repeat(time.Second)}}, t0)
	forced := accept(t, c, waits.State, hcp.Command{Verb: hcp.VerbStop, Stop: &hcp.StopVM{Mode: hcp.StopForce}})
	if len(forced.Jobs) != 1 || forced.Jobs[0].Params.StopMode != hcp.StopForce {
		t.Fatalf("%d jobs, mode %s", len(forced.Jobs), forced.Jobs[0].Params.StopMode)
	}
	next := c.Advance(forced, *forced.Running, []saga.StepResult{{Result: saga.Repeat(time.Second)}}, t0)
	if next.Run == nil || next.Run.Round != 0 || next.Run.After != 0 {
		t.Errorf("the next round is %+v, want the first of force, at once", next.Run)
	}
}

func TestARunningVMMayBeMoreThanDeleted(t *testing.T) {
	// Explain told the owner of a healthy VM that all he may do is delete it.
	a := &Actor{state: at(hcp.LifecycleActive, hcp.PowerRunning)}
	_, may := a.atRest()
	if got := fmt.Sprint(may); got != "[stop the VM reboot the VM delete the VM]" {
		t.Errorf("may do: %s", got)
	}
}
