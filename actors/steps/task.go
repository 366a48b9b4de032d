package steps

import (
	"context"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/drivers"
)

// follow asks after the journalled task of the step. settled is false while
// there is nothing to follow or the task is lost, and the object must be looked
// at; otherwise the result stands: Again while it runs, Failed, or Done.
func follow(ctx context.Context, in saga.Input) (res saga.Result, settled bool) {
	if in.Step.Task == nil {
		return saga.Result{}, false
	}
	status, err := in.Driver.Poll(ctx, *in.Step.Task)
	if err != nil {
		return saga.Fail(err), true
	}
	switch status.State {
	case drivers.TaskRunning:
		return saga.Repeat(pause(in.Round)), true
	case drivers.TaskDone:
		return saga.Finish(""), true
	case drivers.TaskFailed:
		if status.Err == nil {
			status.Err = hcp.Errorf(hcp.CodeInternal, "task_failed", "the hypervisor reported a failed task without a reason")
		}
		res := saga.Fail(status.Err)
		res.TaskOver = true
		return res, true
	}
	return saga.Result{}, false // lost
}

// await turns the provider's promise into a result: a task that runs on is
// journalled before anything waits on it.
func await(task drivers.Task, err error) saga.Result {
	switch {
	case err != nil:
		return saga.Fail(err)
	case task.Done:
		return saga.Finish(task.Note)
	}
	ref := task.Ref
	return saga.Result{Outcome: saga.Journal, Task: &ref}
}

// foreign is the answer when another machine, or a stranger's, sits under our provider id.
func foreign() *hcp.Error {
	return hcp.Errorf(hcp.CodeConflict, "foreign_object", "the hypervisor has another machine under this VM's id; nothing was done to it").
		WithHint("ask the operator to look at the cluster")
}

// seen is what one reading tells about the VM.
func seen(in saga.Input, obs drivers.Observation) saga.Change {
	return saga.Change{Power: obs.Power, PowerAt: in.Now(), Observed: &obs}
}
