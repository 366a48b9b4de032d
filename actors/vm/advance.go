package vm

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
)

var zeroTime time.Time

// Advance takes what a run of provider work found out.
func (c *Core) Advance(st State, run Run, results []saga.StepResult, now time.Time) Decision {
	t := c.begin(st, now)
	t.st.Running = nil
	job := t.head()
	if job == nil || job.ID != run.Job || len(results) == 0 {
		return Decision{State: t.st} // the job is over; nothing of it is waited for
	}
	if run.Undo {
		return t.advanceUndo(job, run, results[0])
	}
	durable := false
	for _, r := range results {
		if r.Index != job.Step {
			t.enterJoined(job, r)
		}
		r.Change.Apply(&t.st.VM)
		step := job.Current()
		switch r.Outcome {
		case saga.Done:
			durable = true
			step.State, step.FinishedAt, step.Note = hcp.StepSucceeded, r.EndedAt, r.Note
			step.Error, step.Task, step.Unknown = nil, nil, false
		case saga.Journal:
			step.Task = r.Task
			t.repeat(job, Run{Job: job.ID, Step: job.Step, After: 20 * time.Millisecond}, true)
			return t.progressed(job)
		case saga.Again:
			if step.Deadline.Before(now) {
				t.failed(job, timeUp(step, r))
				return t.decision()
			}
			if t.cancelsHere(job) {
				t.beginUndo(job)
				return t.decision()
			}
			round := 1
			if !durable {
				round = run.Round + 1
			}
			if run.Mode != job.Params.StopMode {
				round, r.After = 0, 0 // asked to force meanwhile: the rounds so far were for something else
			}
			t.repeat(job, Run{Job: job.ID, Step: job.Step, Round: round, After: r.After, Mode: job.Params.StopMode}, durable)
			if durable {
				return t.progressed(job)
			}
			return Decision{State: t.st, Run: t.run}
		case saga.Failed:
			t.failed(job, r)
			return t.decision()
		}
	}
	t.passed(job)
	return t.decision()
}

// enterJoined notes that the run went on into a step that needs no intent of its own.
func (t *turn) enterJoined(job *hcp.Job, r saga.StepResult) {
	job.Step = r.Index
	step := job.Current()
	step.State = hcp.StepRunning
	step.Attempts++
	if step.StartedAt.IsZero() {
		step.StartedAt = r.StartedAt
		step.Deadline = earlier(r.StartedAt.Add(t.Policy.StepTimeout), job.Deadline)
	}
	t.dirty[job.ID] = true
}

// passed goes on after a step that is done.
func (t *turn) passed(job *hcp.Job) {
	t.dirty[job.ID] = true
	if job.Step == len(job.Steps)-1 {
		t.finish(hcp.JobSucceeded)
		return
	}
	if t.cancelsHere(job) {
		t.beginUndo(job)
		return
	}
	t.beginStep(job, job.Step+1)
	t.event(hcp.EventJobProgress, job, hcp.EventData{})
}

// progressed closes a turn in the middle of a step.
func (t *turn) progressed(job *hcp.Job) Decision {
	t.dirty[job.ID] = true
	return t.decision()
}

// repeat runs the same step again after a pause.
func (t *turn) repeat(job *hcp.Job, run Run, durable bool) {
	if durable {
		t.dirty[job.ID] = true
	}
	t.run, t.st.Running = &run, &run
}

// cancelsHere reports whether a wish to cancel takes effect at the current step.
func (t *turn) cancelsHere(job *hcp.Job) bool {
	return job.Cancel != nil && job.Phase == hcp.PhaseForward && job.Current().Cancellable
}

// failed decides what becomes of a step that failed: prepare again, try again
// later, or undo.
func (t *turn) failed(job *hcp.Job, r saga.StepResult) {
	step := job.Current()
	t.dirty[job.ID] = true
	if r.Err.Reason == "ref_taken" && len(job.TakenRefs) < maxTakenRefs && t.st.VM.Ref != nil {
		t.prepareAgain(job)
		return
	}
	step.Error = r.Err.Fault()
	job.Cause = causeOf(r.Err)
	if r.Err.Code == hcp.CodeOutcomeUnknown {
		step.Unknown = true
		step.LookUntil = t.now.Add(t.Settle(job.Cluster))
	}
	if r.TaskOver {
		step.Task = nil
	}
	pause := t.pauseBefore(step.Attempts)
	if r.Err.RetryAfter > pause {
		pause = r.Err.RetryAfter
	}
	mayRetry := !r.NoRetry && r.Err.Code.Entry().Retryable && !t.cancelsHere(job)
	if mayRetry && t.now.Add(pause).Before(step.Deadline) {
		step.State, job.State = hcp.StepWaiting, hcp.JobWaiting
		if job.Cancel != nil {
			job.State = hcp.JobCancelling
		}
		job.NextAttemptAt = t.now.Add(pause)
		t.wakeAt = job.NextAttemptAt
		t.trail(job, "%s failed with %s; the next attempt is in %s", step.Name, r.Err.Code, pause.Round(time.Millisecond))
		return
	}
	if mayRetry {
		r = outOfTime(step, r)
		step.Error = r.Err.Fault()
	}
	step.State, step.FinishedAt = hcp.StepFailed, t.now
	job.Error = step.Error
	t.trail(job, "%s failed with %s", step.Name, r.Err.Code)
	t.beginUndo(job)
}

// maxTakenRefs bounds how many foreign ids one job steps around.
const maxTakenRefs = 200

// prepareAgain takes another provider id: a stranger has ours.
func (t *turn) prepareAgain(job *hcp.Job) {
	job.TakenRefs = append(job.TakenRefs, t.st.VM.Ref.ID)
	t.st.VM.Ref, t.st.VM.CreateIntent = nil, false
	for i := 0; i <= job.Step; i++ {
		job.Steps[i].State, job.Steps[i].Task, job.Steps[i].Unknown = hcp.StepPending, nil, false
	}
	t.trail(job, "the provider id was taken by another machine; taking another one")
	t.beginStep(job, 0)
}

// RefTaken is Advance for a commit that was refused because another VM of the
// cluster holds the provider id that prepare chose.
func (c *Core) RefTaken(st State, refID string, now time.Time) Decision {
	t := c.begin(st, now)
	job := t.head()
	t.st.VM.Ref = &hcp.ProviderRef{ID: refID}
	t.prepareAgain(job)
	return t.decision()
}

// timeUp is the failure of a step that went round until its deadline.
func timeUp(step *hcp.Step, r saga.StepResult) saga.StepResult {
	r.Outcome, r.NoRetry = saga.Failed, true
	r.Err = hcp.Errorf(hcp.CodeProviderTimeout, "step_deadline", "the step %s did not end before its deadline", step.Name)
	r.Err = withCall(r.Err, step, r)
	return r
}

// outOfTime is the failure of a step that may be tried again but has no time
// left for it.
func outOfTime(step *hcp.Step, r saga.StepResult) saga.StepResult {
	if r.Err.Code == hcp.CodeOutcomeUnknown || r.Err.Code == hcp.CodeProviderTimeout {
		cause := r.Err
		r.Err = hcp.Errorf(hcp.CodeProviderTimeout, "step_deadline",
			"the hypervisor did not finish the step %s before its deadline", step.Name).WithCause(cause)
	}
	r.Err = withCall(r.Err, step, r)
	return r
}

// withCall names the call that took too long and when it began.
func withCall(e *hcp.Error, step *hcp.Step, r saga.StepResult) *hcp.Error {
	return e.WithDetail("step", step.Name).WithDetail("call_started_at", r.StartedAt.Format(time.RFC3339Nano))
}

func causeOf(e *hcp.Error) string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
