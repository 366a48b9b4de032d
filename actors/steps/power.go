package steps

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/drivers"
)

// noMachine is the answer of a power verb on a VM without a machine.
func noMachine() saga.Result {
	return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeConflict, "missing",
		"the VM has no machine on the hypervisor any more").WithHint("refresh the VM; delete it if the machine is gone for good")}
}

func start(ctx context.Context, in saga.Input) saga.Result {
	if in.VM.Ref == nil {
		return noMachine()
	}
	if res, settled := follow(ctx, in); settled {
		return res
	}
	task, err := in.Driver.Start(ctx, in.Token, *in.VM.Ref)
	if hcp.IsCode(err, hcp.CodeNotFound) {
		return noMachine()
	}
	return await(task, err)
}

func verifyRunning(ctx context.Context, in saga.Input) saga.Result {
	return verifyPower(ctx, in, hcp.PowerRunning)
}

// verifyPower reads the machine until it is in the wished power, a bounded
// number of times.
func verifyPower(ctx context.Context, in saga.Input, want hcp.Power) saga.Result {
	if in.VM.Ref == nil {
		return noMachine()
	}
	obs, err := in.Driver.Get(ctx, *in.VM.Ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeVerificationFailed, "missing",
			"the hypervisor said done, but the machine is not there")}
	case err != nil:
		return saga.Fail(err)
	case !obs.Marked(in.VM.ID):
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: foreign()}
	case obs.Power == want:
		return saga.Finish("").With(seen(in, obs))
	case in.Round >= verifyRounds:
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeVerificationFailed, "wrong_power",
			"the hypervisor said done, but the machine is %s and not %s", obs.Power, want)}.With(seen(in, obs))
	}
	return saga.Repeat(pause(in.Round))
}

// stop asks the guest to shut down until it is off or the caller's time is over,
// or cuts the power at once. It holds no goroutine while it waits: each round is
// a run of its own, and a restart goes on with the time that remains.
func stop(ctx context.Context, in saga.Input) saga.Result {
	if in.Job.Params.StopMode == hcp.StopForce {
		return forceOff(ctx, in)
	}
	if in.VM.Ref == nil {
		return noMachine()
	}
	timeout := in.Job.Params.StopTimeout
	if timeout <= 0 {
		timeout = DefaultStopTimeout
	}
	if in.Round == 0 || in.Round%resendEvery == 0 {
		// A request that comes before the guest listens is lost without a word: repeat it.
		task, err := in.Driver.Stop(ctx, in.Token, *in.VM.Ref, hcp.StopGraceful)
		if hcp.IsCode(err, hcp.CodeNotFound) {
			return noMachine()
		}
		if err != nil {
			return saga.Fail(err)
		}
		if task.Note == drivers.NoteAlreadyStopped && in.Round == 0 && in.Token.Attempt == 1 {
			return offNow(ctx, in, task.Note)
		}
	}
	res := offNow(ctx, in, "")
	if res.Outcome == saga.Again && in.Now().Sub(in.Step.StartedAt) >= timeout {
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeProviderTimeout, "stop_timeout",
			"the guest did not shut down within %s", timeout).
			WithHint("stop it with mode force, or give it more time")}
	}
	return res
}

// resendEvery is how many rounds pass between two requests to the guest: with
// the pauses below about every three seconds.
const resendEvery = 6

// offNow reads whether the machine is off.
func offNow(ctx context.Context, in saga.Input, note string) saga.Result {
	obs, err := in.Driver.Get(ctx, *in.VM.Ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return noMachine()
	case err != nil:
		return saga.Fail(err)
	case obs.Power == hcp.PowerStopped:
		return saga.Finish(note).With(seen(in, obs))
	}
	return saga.Repeat(min(pause(in.Round), 500*time.Millisecond))
}

// forceOff cuts the power. A machine that is not there is as good as off: this is
// the first step of a delete, too.
func forceOff(ctx context.Context, in saga.Input) saga.Result {
	isDelete := in.Job.Kind == hcp.JobDelete || in.Job.Phase == hcp.PhaseUndo
	if in.VM.Ref == nil {
		if isDelete {
			return saga.Finish(drivers.NoteAlreadyAbsent)
		}
		return noMachine()
	}
	obs, err := in.Driver.Get(ctx, *in.VM.Ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound) && isDelete:
		return saga.Finish(drivers.NoteAlreadyAbsent)
	case hcp.IsCode(err, hcp.CodeNotFound):
		return noMachine()
	case err != nil:
		return saga.Fail(err)
	case !obs.Marked(in.VM.ID) && isDelete:
		return saga.Finish("") // a stranger sits there; the delete step sorts it out
	case obs.Power == hcp.PowerStopped && in.Round == 0 && in.Token.Attempt == 1:
		return saga.Finish(drivers.NoteAlreadyStopped).With(seen(in, obs))
	case obs.Power == hcp.PowerStopped:
		return saga.Finish("").With(seen(in, obs))
	case in.Round >= verifyRounds:
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeVerificationFailed, "wrong_power",
			"the hypervisor said stopped, but the machine is %s", obs.Power)}.With(seen(in, obs))
	}
	task, err := in.Driver.Stop(ctx, in.Token, *in.VM.Ref, hcp.StopForce)
	if err != nil {
		return saga.Fail(err)
	}
	if task.Done {
		return saga.Repeat(0) // read back at once
	}
	return saga.Repeat(pause(in.Round))
}

// read looks at the machine and changes nothing.
func read(ctx context.Context, in saga.Input) saga.Result {
	if in.VM.Ref == nil {
		return saga.Finish("no_machine")
	}
	obs, err := in.Driver.Get(ctx, *in.VM.Ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: hcp.Errorf(hcp.CodeNotFound, "missing",
			"the hypervisor has no such machine any more").WithHint("delete the VM, or ask the operator what became of it")}
	case err != nil:
		return saga.Fail(err)
	case !obs.Marked(in.VM.ID):
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: foreign()}
	}
	return saga.Finish("").With(seen(in, obs))
}
