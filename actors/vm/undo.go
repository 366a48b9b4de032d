package vm

import (
	"net/http"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
)

// acceptCancel asks a job to stop at the next point where it can.
func (t *turn) acceptCancel(cmd hcp.Command) (Decision, error) {
	for i := range t.st.Jobs {
		job := &t.st.Jobs[i]
		if job.ID != cmd.Job {
			continue
		}
		if job.Kind == hcp.JobDelete || job.Kind == hcp.JobCleanup {
			return Decision{}, hcp.Errorf(hcp.CodeConflict, "not_cancellable", "a %s cannot be cancelled", job.Kind.Word())
		}
		job.Requests = append(job.Requests, t.request())
		t.dirty[job.ID] = true
		if i > 0 {
			t.finishQueued(i, "asked")
			t.keepRunning()
			return t.answered(cmd, t.doneJob(cmd.Job), http.StatusAccepted)
		}
		t.keepRunning()
		t.askCancel(job, "asked")
		if d := t.doneJob(cmd.Job); d != nil {
			return t.answered(cmd, d, http.StatusAccepted)
		}
		return t.answered(cmd, t.head(), http.StatusAccepted)
	}
	return Decision{}, hcp.Errorf(hcp.CodeConflict, "job_over", "the job has ended already")
}

func (t *turn) doneJob(id hcp.JobID) *hcp.Job {
	for i := range t.done {
		if t.done[i].ID == id {
			return &t.done[i]
		}
	}
	return nil
}

// askCancel marks the job that has the turn. Work that is out at the provider
// is not torn away: its outcome decides. A job that only waits turns at once.
func (t *turn) askCancel(job *hcp.Job, reason string) {
	if job.Cancel != nil || job.Phase == hcp.PhaseUndo {
		t.keepRunning()
		return
	}
	job.Cancel = &hcp.CancelRequest{Actor: t.call.Actor, Reason: reason, At: t.now}
	t.trail(job, "asked to cancel (%s)", reason)
	if job.State == hcp.JobWaiting && t.cancelsHere(job) {
		job.Current().State = hcp.StepFailed
		t.beginUndo(job)
		return
	}
	job.State = hcp.JobCancelling
	t.keepRunning()
}

// beginUndo turns the job round at its current step, or ends it where there is
// nothing to undo.
func (t *turn) beginUndo(job *hcp.Job) {
	def := t.Kinds[job.Kind]
	if step := job.Current(); step.State == hcp.StepRunning || step.State == hcp.StepWaiting {
		step.State, step.FinishedAt = hcp.StepFailed, t.now
	}
	if job.Cancel != nil && job.Error == nil {
		job.Error = hcp.Errorf(hcp.CodeCancelled, job.Cancel.Reason, "the job was cancelled").Fault()
	}
	for i := job.Step; i >= 0; i-- {
		if def.Steps[i].Undo != nil && job.Steps[i].State != hcp.StepPending {
			job.Phase, job.Step = hcp.PhaseUndo, i
			job.UndoDeadline = t.now.Add(t.Policy.UndoTimeout)
			t.tryUndo(job)
			t.event(hcp.EventJobProgress, job, hcp.EventData{})
			return
		}
	}
	t.finish(t.endOf(job))
}

// endOf is how a job ends that did not reach its goal.
func (t *turn) endOf(job *hcp.Job) hcp.JobState {
	switch {
	case job.Cancel != nil:
		return hcp.JobCancelled
	case job.Kind == hcp.JobDelete || job.Kind == hcp.JobCleanup:
		// What should be gone may be there: a person must know.
		job.Residue = t.residue()
		return hcp.JobNeedsAttention
	}
	return hcp.JobFailed
}

// residue names what may be left on the provider.
func (t *turn) residue() []hcp.Residue {
	vm := &t.st.VM
	r := hcp.Residue{Kind: "vm", Name: vm.ProviderName}
	if vm.Ref != nil {
		r.Ref = vm.Ref.ID
	}
	return []hcp.Residue{r}
}

// tryUndo makes one try of the current step's undo durable and runs it.
func (t *turn) tryUndo(job *hcp.Job) {
	step := job.Current()
	step.State = hcp.StepUndoing
	step.UndoTries++
	job.State, job.NextAttemptAt = hcp.JobRunning, zeroTime
	if job.Cancel != nil {
		job.State = hcp.JobCancelling
	}
	t.dirty[job.ID] = true
	t.run = &Run{Job: job.ID, Step: job.Step, Undo: true}
}

func (t *turn) advanceUndo(job *hcp.Job, run Run, r saga.StepResult) Decision {
	r.Change.Apply(&t.st.VM)
	step := job.Current()
	switch r.Outcome {
	case saga.Again, saga.Journal:
		if t.now.Before(job.UndoDeadline) {
			next := Run{Job: job.ID, Step: job.Step, Undo: true, Round: run.Round + 1, After: r.After}
			t.st.Running = &next
			return Decision{State: t.st, Run: &next}
		}
		t.undoFailed(job, hcp.Errorf(hcp.CodeProviderTimeout, "undo_deadline", "the undo did not end before its deadline"), true)
	case saga.Failed:
		t.undoFailed(job, r.Err, r.NoRetry)
	case saga.Done:
		step.State, step.FinishedAt, step.Task = hcp.StepUndone, t.now, nil
		t.dirty[job.ID] = true
		t.undoNext(job)
	}
	return t.decision()
}

// undoNext goes to the step before that has something to undo, or ends the job.
func (t *turn) undoNext(job *hcp.Job) {
	def := t.Kinds[job.Kind]
	for i := job.Step - 1; i >= 0; i-- {
		if def.Steps[i].Undo != nil && job.Steps[i].State != hcp.StepPending {
			job.Step = i
			t.tryUndo(job)
			return
		}
	}
	t.finish(t.endOf(job))
}

// undoFailed tries again later, a bounded number of times; then the job ends
// needing a person, and names what is left.
func (t *turn) undoFailed(job *hcp.Job, e *hcp.Error, isOver bool) {
	step := job.Current()
	t.dirty[job.ID] = true
	step.Error = e.Fault()
	job.Cause = causeOf(e)
	pause := max(t.pauseBefore(step.UndoTries), e.RetryAfter)
	// A provider that is away was not even asked: only the deadline bounds that.
	mayTry := step.UndoTries < t.Policy.UndoTries || e.Code == hcp.CodeProviderUnavailable
	if !isOver && mayTry && t.now.Add(pause).Before(job.UndoDeadline) {
		job.State, job.NextAttemptAt = hcp.JobWaiting, t.now.Add(pause)
		t.wakeAt = job.NextAttemptAt
		t.trail(job, "undo of %s failed with %s; the next attempt is in %s", step.Name, e.Code, pause.Round(time.Millisecond))
		return
	}
	step.State = hcp.StepUndoFailed
	if job.Error == nil {
		job.Error = e.Fault()
	}
	job.Residue = t.residue()
	t.trail(job, "undo of %s failed %d times; a person must look", step.Name, step.UndoTries)
	t.finish(hcp.JobNeedsAttention)
}
