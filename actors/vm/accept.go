package vm

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/lotuscloud/hcp"
)

// verbJobs maps the verbs that make a job to its kind.
var verbJobs = map[hcp.Verb]hcp.JobKind{
	hcp.VerbStart: hcp.JobStart, hcp.VerbStop: hcp.JobStop, hcp.VerbReboot: hcp.JobReboot,
	hcp.VerbRefresh: hcp.JobRefresh,
}

// Accept judges one command against the state after the jobs already queued. An
// error refuses it and changes nothing.
func (c *Core) Accept(st State, cmd hcp.Command, now time.Time) (Decision, error) {
	t := c.begin(st, now)
	t.call = cmd.Call
	if cmd.Verb == hcp.VerbCreate {
		return t.acceptCreate(cmd)
	}
	if !st.exists() || st.VM.Lifecycle == hcp.LifecycleDeleted {
		return Decision{}, hcp.NotFound("VM")
	}
	switch cmd.Verb {
	case hcp.VerbDelete:
		return t.acceptDelete(cmd)
	case hcp.VerbUpdate:
		return t.acceptUpdate(cmd)
	case hcp.VerbRetry:
		return t.acceptRetry(cmd)
	case hcp.VerbCancel:
		return t.acceptCancel(cmd)
	}
	kind, ok := verbJobs[cmd.Verb]
	if !ok {
		return Decision{}, hcp.Errorf(hcp.CodeInternal, "unknown_verb", "a VM does not know the verb %s", cmd.Verb)
	}
	return t.acceptVerb(cmd, kind)
}

func (t *turn) acceptCreate(cmd hcp.Command) (Decision, error) {
	if t.st.exists() {
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "exists", "the VM exists already")
	}
	vm := cmd.Create.VM
	vm.Lifecycle, vm.Power, vm.Generation, vm.CreatedAt = hcp.LifecycleCreating, hcp.PowerStopped, 1, t.now
	t.st.VM = vm
	t.hold(cmd.Create.Claim)
	job := t.enqueue(hcp.JobCreate, hcp.JobParams{StartAfter: cmd.Create.Start})
	return t.accepted(cmd, job)
}

// acceptRetry tries a failed create again, as a new job on the same VM.
func (t *turn) acceptRetry(cmd hcp.Command) (Decision, error) {
	vm := &t.st.VM
	last := t.st.Last
	switch {
	case len(t.st.Jobs) > 0:
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "job_running", "the VM has a job at work; only a failed create can be tried again")
	case last == nil || last.ID != cmd.Job && !onlyLooked(last.Kind):
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "not_last_job", "only the VM's last job can be tried again")
	case !t.st.mayRetry() || last.ID == cmd.Job && last.Kind != hcp.JobCreate:
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "not_retryable", "only a create that did not succeed can be tried again").
			WithHint("ask for the verb again instead")
	}
	next, err := vm.Lifecycle.Next(hcp.TriggerRetryAsked)
	if err != nil {
		return Decision{}, err
	}
	vm.Lifecycle = next
	vm.ClearCondition(createFailed)
	vm.ClearCondition("residue")
	vm.ClearCondition("leftover")
	t.hold(vm.Flavor.Sizes())
	params := hcp.JobParams{StartAfter: vm.Desired.Power == hcp.PowerRunning}
	if last.Kind == hcp.JobCreate {
		params = last.Params
	}
	job := t.enqueue(hcp.JobCreate, params)
	if last.State == hcp.JobNeedsAttention || vm.CreateIntent {
		// Something of the try before may be there: look before acting.
		job.Steps[1].Unknown = true
	}
	return t.accepted(cmd, job)
}

// createFailed is the condition of a VM whose create has not succeeded.
const createFailed = "create_failed"

// onlyLooked names the kinds of job that a failed create may be tried again
// after: they leave the VM as it is, and HCP itself asks for one of them.
func onlyLooked(kind hcp.JobKind) bool { return kind == hcp.JobRefresh || kind == hcp.JobCleanup }

// mayRetry reports whether the VM waits for its failed create to be tried again.
func (s State) mayRetry() bool {
	if s.Last == nil || len(s.Jobs) > 0 || s.VM.Lifecycle != hcp.LifecycleError {
		return false
	}
	if onlyLooked(s.Last.Kind) {
		return slices.ContainsFunc(s.VM.Conditions, func(c hcp.Condition) bool { return c.Type == createFailed })
	}
	return s.Last.Kind == hcp.JobCreate && s.Last.State != hcp.JobSucceeded
}

func (t *turn) acceptVerb(cmd hcp.Command, kind hcp.JobKind) (Decision, error) {
	vm := &t.st.VM
	if n := len(t.st.Jobs); n > 0 {
		if last := &t.st.Jobs[n-1]; last.Kind == kind && last.Cancel == nil && last.Phase == hcp.PhaseForward {
			if cmd.Stop != nil && cmd.Stop.Mode == hcp.StopForce && last.Params.StopMode != hcp.StopForce {
				// It joins, and what asked the guest so far cuts the power from its next round on.
				last.Params.StopMode = hcp.StopForce
				t.trail(last, "a later call asks for force")
			}
			return t.joined(cmd, last)
		}
	}
	if kind != hcp.JobRefresh {
		lifecycle, power := t.afterQueue()
		if err := hcp.JudgeVerb(kind, lifecycle, power); err != nil {
			return Decision{}, err
		}
	}
	if len(t.st.Jobs) > t.Policy.Queue {
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "queue_full", "the VM has %d jobs waiting already", t.Policy.Queue).
			WithHint("wait until some have ended, or cancel them")
	}
	params := hcp.JobParams{}
	if kind == hcp.JobStop || kind == hcp.JobReboot {
		params.StopMode = hcp.StopGraceful
		if cmd.Stop != nil {
			params.StopMode, params.StopTimeout = cmd.Stop.Mode, cmd.Stop.Timeout
		}
	}
	if power, changes := hcp.PowerAfter(kind); changes {
		vm.Desired.Power = power
	}
	return t.accepted(cmd, t.enqueue(kind, params))
}

// afterQueue is where the VM will stand when its jobs have succeeded.
func (t *turn) afterQueue() (hcp.Lifecycle, hcp.Power) {
	lifecycle, power := t.st.VM.Lifecycle, t.st.VM.Power
	for _, j := range t.st.Jobs {
		if j.Kind == hcp.JobCreate && j.Cancel == nil {
			lifecycle, power = hcp.LifecycleActive, hcp.PowerStopped
			if j.Params.StartAfter {
				power = hcp.PowerRunning
			}
		}
		if after, changes := hcp.PowerAfter(j.Kind); changes {
			power = after
		}
	}
	return lifecycle, power
}

// acceptDelete is always taken: it frees the name at once, cancels what is before
// it and waits for the turn.
func (t *turn) acceptDelete(cmd hcp.Command) (Decision, error) {
	vm := &t.st.VM
	if vm.DeletionProtection {
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "deletion_protected", "the VM is protected against deletion").
			WithHint("switch deletion_protection off first")
	}
	for i := range t.st.Jobs {
		if t.st.Jobs[i].Kind == hcp.JobDelete {
			return t.joined(cmd, &t.st.Jobs[i])
		}
	}
	next, err := vm.Lifecycle.Next(hcp.TriggerDeleteAsked)
	if err != nil {
		return Decision{}, err
	}
	vm.Lifecycle = next
	vm.Desired.Power = hcp.PowerStopped
	for len(t.st.Jobs) > 1 {
		t.finishQueued(1, "deleted")
	}
	if head := t.head(); head != nil {
		t.askCancel(head, "deleted")
	}
	job := t.enqueue(hcp.JobDelete, hcp.JobParams{StopMode: hcp.StopForce})
	return t.accepted(cmd, job)
}

func (t *turn) acceptUpdate(cmd hcp.Command) (Decision, error) {
	vm, u := &t.st.VM, cmd.Update
	if u.IfGeneration != 0 && u.IfGeneration != vm.Generation {
		return Decision{}, hcp.Errorf(hcp.CodePreconditionFailed, "generation_moved", "the VM has changed since it was read")
	}
	if vm.Lifecycle == hcp.LifecycleDeleting {
		return Decision{}, hcp.Errorf(hcp.CodeConflict, "wrong_lifecycle", "a VM that is deleting cannot be changed")
	}
	if u.Name != nil {
		vm.Name = *u.Name
		for i := range t.st.Jobs {
			t.st.Jobs[i].VMName = vm.Name
			t.dirty[t.st.Jobs[i].ID] = true
		}
	}
	if u.Labels != nil {
		vm.Labels = *u.Labels
	}
	if u.Description != nil {
		vm.Description = *u.Description
	}
	if u.DeletionProtection != nil {
		vm.DeletionProtection = *u.DeletionProtection
	}
	vm.Generation++
	t.event(hcp.EventResourceUpdated, nil, hcp.EventData{OldState: t.old.State(), NewState: vm.State()})
	t.keepRunning()
	return t.answered(cmd, nil, http.StatusOK)
}

// accepted answers a command that made a job.
func (t *turn) accepted(cmd hcp.Command, job *hcp.Job) (Decision, error) {
	if len(t.st.Jobs) == 1 {
		t.startHead()
	} else {
		t.keepRunning()
	}
	return t.answered(cmd, job, http.StatusAccepted)
}

// joined answers a command that asks for what a live job does already.
func (t *turn) joined(cmd hcp.Command, job *hcp.Job) (Decision, error) {
	job.Requests = append(job.Requests, t.request())
	t.dirty[job.ID] = true
	t.keepRunning()
	return t.answered(cmd, job, http.StatusAccepted)
}

// answered renders the answer and makes it durable with the turn.
func (t *turn) answered(cmd hcp.Command, job *hcp.Job, status int) (Decision, error) {
	var id hcp.JobID
	if job != nil {
		id = job.ID
	}
	result := "accepted"
	if status == http.StatusOK {
		result = "ok"
	}
	t.settle()
	body, err := t.body(job)
	if err != nil {
		return Decision{}, err
	}
	t.remember(cmd.Key, status, body, id)
	t.auditCall(id, result, status)
	t.answer = &hcp.Answer{Status: status, Body: body, VM: t.st.VM.ID, Job: id}
	return t.decision(), nil
}

// body is the 202 of a job, or the VM alone where there is none.
func (t *turn) body(job *hcp.Job) ([]byte, error) {
	known := hcp.Known{VM: t.st.VM}
	if job == nil {
		return json.Marshal(known.View())
	}
	return hcp.AcceptedBody(known, *job)
}

func (t *turn) request() hcp.Request {
	via := "api"
	if t.call.Actor == hcpItself {
		via = "reconcile"
	}
	return hcp.Request{Actor: t.call.Actor, Via: via, RequestID: t.call.RequestID, TraceID: t.call.TraceID, At: t.now}
}
