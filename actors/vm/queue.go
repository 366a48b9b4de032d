package vm

import (
	"github.com/lotuscloud/hcp"
)

// enqueue appends a new job behind those that live.
func (t *turn) enqueue(kind hcp.JobKind, params hcp.JobParams) *hcp.Job {
	vm := &t.st.VM
	var order int64 = 1
	if t.st.Last != nil {
		order = t.st.Last.Queue + 1
	}
	if n := len(t.st.Jobs); n > 0 {
		order = t.st.Jobs[n-1].Queue + 1
	}
	job := hcp.Job{
		ID: hcp.JobID(t.NewID(hcp.KindJob)), Kind: kind, State: hcp.JobQueued, VM: vm.ID, VMName: vm.Name,
		Region: vm.Region, Zone: vm.Zone, Cluster: vm.Cluster, Org: vm.Org, Project: vm.Project, Owner: vm.Owner,
		Params: params, Requests: []hcp.Request{t.request()}, Phase: hcp.PhaseForward, Steps: t.Kinds[kind].Initial(),
		Queue: order, CreatedAt: t.now, Deadline: t.now.Add(t.Policy.JobTimeout), TraceID: t.call.TraceID,
	}
	t.st.Jobs = append(t.st.Jobs, job)
	t.dirty[job.ID] = true
	queued := &t.st.Jobs[len(t.st.Jobs)-1]
	if len(t.st.Jobs) > 1 { // alone it starts in the same commit, and job.started tells
		t.event(hcp.EventJobQueued, queued, hcp.EventData{})
	}
	return queued
}

// startHead gives the first job the turn.
func (t *turn) startHead() {
	job := t.head()
	job.State, job.StartedAt, job.Step = hcp.JobRunning, t.now, 0
	t.audit(hcp.AuditJobStarted, job, string(hcp.JobRunning))
	t.beginStep(job, 0)
	t.event(hcp.EventJobStarted, job, hcp.EventData{})
}

// beginStep makes the intent of step i durable and lets it run after the commit.
func (t *turn) beginStep(job *hcp.Job, i int) {
	step := &job.Steps[i]
	job.Step = i
	job.State = hcp.JobRunning
	if job.Cancel != nil {
		job.State = hcp.JobCancelling
	}
	job.NextAttemptAt = zeroTime
	step.State = hcp.StepRunning
	step.Attempts++
	if step.StartedAt.IsZero() {
		step.StartedAt = t.now
		step.Deadline = earlier(t.now.Add(t.Policy.StepTimeout), job.Deadline)
	}
	if t.Kinds[job.Kind].Steps[i].Makes {
		t.st.VM.CreateIntent = true
		if step.Unknown && step.LookUntil.IsZero() {
			step.LookUntil = t.now.Add(t.Settle(job.Cluster))
		}
	}
	t.dirty[job.ID] = true
	t.run = &Run{Job: job.ID, Step: i, Mode: job.Params.StopMode}
}

// keepRunning leaves the work that is out at the workers alone.
func (t *turn) keepRunning() {
	if t.run == nil {
		t.run = t.st.Running
	}
}

// finish ends the job that has the turn and gives the turn to the next.
func (t *turn) finish(state hcp.JobState) {
	job := t.head()
	job.State, job.FinishedAt, job.NextAttemptAt = state, t.now, zeroTime
	t.settleVM(job)
	t.ended(*job)
	t.st.Jobs = t.st.Jobs[1:]
	t.run = nil
	t.nextJob()
}

// nextJob starts the next job, or ends it where the VM can no longer take it.
func (t *turn) nextJob() {
	for len(t.st.Jobs) > 0 {
		switch {
		case t.st.VM.Lifecycle == hcp.LifecycleDeleted:
			t.finishQueued(0, "deleted")
		case t.st.VM.Lifecycle == hcp.LifecycleError && t.st.Jobs[0].Kind != hcp.JobDelete:
			t.finishQueued(0, "create_failed")
		default:
			t.startHead()
			return
		}
	}
}

// finishQueued cancels a job that has not begun.
func (t *turn) finishQueued(i int, reason string) {
	job := &t.st.Jobs[i]
	job.State, job.FinishedAt = hcp.JobCancelled, t.now
	job.Cancel = &hcp.CancelRequest{Actor: t.call.Actor, Reason: reason, At: t.now}
	job.Error = hcp.Errorf(hcp.CodeCancelled, reason, "the job was cancelled before it began").Fault()
	for s := range job.Steps {
		job.Steps[s].State = hcp.StepSkipped
	}
	t.ended(*job)
	t.st.Jobs = append(t.st.Jobs[:i:i], t.st.Jobs[i+1:]...)
}

// ended records the end of a job.
func (t *turn) ended(job hcp.Job) {
	last := job.Clone()
	t.st.Last = &last
	t.st.VM.LastJob = &hcp.LastJob{ID: job.ID, Kind: job.Kind, State: job.State, Error: job.Error, FinishedAt: job.FinishedAt}
	t.done = append(t.done, last)
	delete(t.dirty, job.ID)
	event, audit := hcp.EventJobFailed, hcp.AuditJobFailed
	switch job.State {
	case hcp.JobSucceeded:
		event, audit = hcp.EventJobSucceeded, hcp.AuditJobSucceeded
	case hcp.JobCancelled:
		event = hcp.EventJobCancelled
	case hcp.JobNeedsAttention:
		event = hcp.EventJobAttention
	}
	t.event(event, &job, hcp.EventData{})
	t.audit(audit, &job, string(job.State))
}

// settleVM draws from a job's end what it means for the VM: lifecycle, quota,
// capacity, conditions.
func (t *turn) settleVM(job *hcp.Job) {
	vm := &t.st.VM
	ok := job.State == hcp.JobSucceeded
	left := job.State == hcp.JobNeedsAttention
	if left {
		kind := "leftover"
		if vm.Holding {
			kind = "residue" // named residue keeps its quota and room until it is gone
		}
		vm.SetCondition(hcp.Condition{Type: kind, Reason: string(faultCode(job)), Since: t.now,
			Message: "something of the VM may be left on the hypervisor; see the job for what"})
	}
	switch job.Kind {
	case hcp.JobCreate:
		if ok {
			t.move(hcp.TriggerCreated)
			return
		}
		t.move(hcp.TriggerCreateFailed)
		if vm.Lifecycle == hcp.LifecycleError {
			vm.SetCondition(hcp.Condition{Type: createFailed, Reason: string(faultCode(job)), Message: faultText(job), Since: t.now})
		}
		if !left {
			vm.Ref = nil // undone, or no more than reserved
			t.release()
		}
	case hcp.JobDelete:
		if !ok {
			t.move(hcp.TriggerDeleteFailed)
			return
		}
		t.move(hcp.TriggerDeleted)
		vm.DeletedAt, vm.Power, vm.Conditions = t.now, hcp.PowerStopped, nil
		t.release()
		t.commit.DropObserved = append(t.commit.DropObserved, vm.ID)
	case hcp.JobCleanup:
		if ok {
			vm.ClearCondition("residue")
			vm.ClearCondition("leftover")
			t.release()
		}
	case hcp.JobRefresh:
		if ok {
			vm.ClearCondition("missing")
		} else if job.Error != nil && job.Error.Reason == "missing" {
			t.missing()
		}
	}
}

// missing notes that a healthy provider does not know the machine any more.
func (t *turn) missing() {
	t.st.VM.SetCondition(hcp.Condition{Type: "missing", Reason: "not_found", Since: t.now,
		Message: "the hypervisor has no such machine any more; it was removed outside of HCP"})
}

// move takes a lifecycle edge; the table has all that can happen here.
func (t *turn) move(on hcp.Trigger) {
	next, err := t.st.VM.Lifecycle.Next(on)
	if err != nil {
		panic("lifecycle table lacks an edge: " + err.Error())
	}
	t.st.VM.Lifecycle = next
}

func faultCode(j *hcp.Job) hcp.Code {
	if j.Error == nil {
		return hcp.CodeCancelled
	}
	return j.Error.Code
}

func faultText(j *hcp.Job) string {
	if j.Error == nil {
		return "the create was cancelled"
	}
	return j.Error.Message
}
