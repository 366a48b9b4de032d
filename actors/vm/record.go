package vm

import (
	"fmt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// event appends one event of the VM to the commit.
func (t *turn) event(typ hcp.EventType, job *hcp.Job, data hcp.EventData) {
	vm := &t.st.VM
	sizes := vm.Flavor.Sizes()
	data.Name, data.Zone, data.Sizes = vm.Name, vm.ZoneName, &sizes
	e := hcp.Event{
		ID: hcp.EventID(t.NewID(hcp.KindEvent)), Type: typ, Subject: hcp.LRNOfVM(vm.Region, vm.Project, vm.ID),
		Actor: t.call.Actor, Time: t.now, TraceID: t.call.TraceID, Org: vm.Org, Project: vm.Project, Owner: vm.Owner,
		VM: vm.ID, Data: data,
	}
	if job != nil {
		e.Job, e.Data.JobKind, e.Data.JobState, e.Data.Progress = job.ID, job.Kind, job.State, job.Progress()
		if e.TraceID == "" {
			e.TraceID = job.TraceID
		}
		if step := job.Current(); step != nil && !job.State.Final() {
			e.Data.Step = step.Name
		}
		if job.Error != nil {
			e.Data.Code, e.Data.Reason = job.Error.Code, job.Error.Reason
		}
	}
	t.commit.Events = append(t.commit.Events, e)
}

// stateEvents tells what this turn changed of what a tenant sees.
func (t *turn) stateEvents() {
	vm := &t.st.VM
	oldState, newState := t.old.State(), vm.State()
	change := hcp.EventData{OldState: oldState, NewState: newState, OldPower: t.old.Power, NewPower: vm.Power}
	switch {
	case t.old.ID == "":
		change.OldState, change.OldPower = "", ""
		t.event(hcp.EventResourceCreated, nil, change)
		return
	case vm.Lifecycle == hcp.LifecycleDeleted && t.old.Lifecycle != hcp.LifecycleDeleted:
		t.event(hcp.EventResourceDeleted, nil, change)
		return
	case vm.Lifecycle == hcp.LifecycleError && t.old.Lifecycle != hcp.LifecycleError:
		t.event(hcp.EventVMFailed, nil, change)
		return
	}
	switch {
	case vm.Power == t.old.Power:
	case vm.Power == hcp.PowerRunning:
		t.event(hcp.EventVMStarted, nil, change)
	case vm.Power == hcp.PowerStopped:
		t.event(hcp.EventVMStopped, nil, change)
	}
}

// audit appends an audit row about a job.
func (t *turn) audit(kind hcp.AuditKind, job *hcp.Job, result string) {
	actor, trace := hcpItself, job.TraceID
	var request hcp.RequestID
	if len(job.Requests) > 0 {
		actor, request = job.Requests[0].Actor, job.Requests[0].RequestID
	}
	t.commit.Audit = append(t.commit.Audit, hcp.AuditRecord{
		ID: hcp.AuditID(t.NewID(hcp.KindAudit)), Kind: kind, Time: t.now, Actor: actor, Action: string(job.Kind),
		Target: hcp.LRNOfVM(job.Region, job.Project, job.VM), Org: job.Org, Project: job.Project, Result: result,
		RequestID: request, TraceID: trace, Job: job.ID,
	})
}

// auditCall appends the one row of kind call that an accepted command leaves.
func (t *turn) auditCall(job hcp.JobID, result string, status int) {
	vm, call := &t.st.VM, t.call
	t.commit.Audit = append(t.commit.Audit, hcp.AuditRecord{
		ID: hcp.AuditID(t.NewID(hcp.KindAudit)), Kind: hcp.AuditCall, Time: t.now, Actor: call.Actor, Scope: call.Scope,
		Action: call.Action, Target: hcp.LRNOfVM(vm.Region, vm.Project, vm.ID), Org: vm.Org, Project: vm.Project,
		Result: result, Status: status, RequestID: call.RequestID, TraceID: call.TraceID, Job: job,
		Source: call.Source, Method: call.Method, Path: call.Path,
	})
}

// remember stores the answer under the caller's idempotency key.
func (t *turn) remember(key *hcp.IdempotencyKey, status int, body []byte, job hcp.JobID) {
	if key == nil {
		return
	}
	t.commit.Key = &persistence.IdempotencyRecord{
		IdempotencyKey: *key, Status: status, Body: body, VM: t.st.VM.ID, Job: job,
		CreatedAt: t.now, ExpiresAt: t.now.Add(t.Policy.KeyTTL),
	}
}

// hold takes quota and room for the VM; release gives both back.
func (t *turn) hold(claim hcp.Sizes) {
	vm := &t.st.VM
	vm.Holding = true
	t.commit.Holds = append(t.commit.Holds, persistence.QuotaChange{
		VM: vm.ID, Subjects: hcp.SubjectsOf(vm.Org, vm.Project, vm.Owner), Amounts: hcp.HoldsOf(vm.Flavor)})
	t.commit.Claims = append(t.commit.Claims, persistence.CapacityChange{Cluster: vm.Cluster, VM: vm.ID, Sizes: claim})
}

func (t *turn) release() {
	vm := &t.st.VM
	vm.Holding = false
	t.commit.Holds = append(t.commit.Holds, persistence.QuotaChange{
		VM: vm.ID, Subjects: hcp.SubjectsOf(vm.Org, vm.Project, vm.Owner)})
	t.commit.Claims = append(t.commit.Claims, persistence.CapacityChange{Cluster: vm.Cluster, VM: vm.ID})
}

// trail notes a line in the job's reason trail.
func (t *turn) trail(j *hcp.Job, format string, args ...any) {
	j.AddTrail(t.now, fmt.Sprintf(format, args...))
	t.dirty[j.ID] = true
}
