package steps

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/drivers"
)

// prepare reserves the provider id. It has no effect at the provider; the id is
// committed before any call uses it. A VM that was prepared keeps its id, unless
// it turned out to be taken.
func prepare(ctx context.Context, in saga.Input) saga.Result {
	if in.VM.Ref != nil {
		return saga.Finish("")
	}
	spec, err := in.Spec()
	if err != nil {
		return saga.Fail(err)
	}
	ref, err := in.Driver.Prepare(ctx, in.Token, spec, in.Job.TakenRefs)
	if err != nil {
		return saga.Fail(err)
	}
	return saga.Finish("").With(saga.Change{Ref: &ref})
}

// create brings the machine into being, once. Every try after the first looks
// for our marker before it acts: the try before may have worked.
func create(ctx context.Context, in saga.Input) saga.Result {
	if res, settled := follow(ctx, in); settled {
		if res.Outcome == saga.Done {
			return res.With(exists(nil))
		}
		return res
	}
	mayExist := in.Token.Attempt > 1 || in.Step.Unknown || in.Step.Task != nil
	if mayExist {
		refs, err := in.Driver.Find(ctx, in.VM.ID)
		switch {
		case err != nil:
			return saga.Fail(err)
		case len(refs) > 1:
			return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: duplicate(len(refs))}
		case len(refs) == 1:
			return stillWorking(ctx, in, refs[0])
		case in.Now().Before(in.Step.LookUntil):
			// Absence proves nothing yet: the object may take this long to show.
			return saga.Repeat(min(time.Second, in.Step.LookUntil.Sub(in.Now())))
		}
	}
	spec, err := in.Spec()
	if err != nil {
		return saga.Fail(err)
	}
	res := await(in.Driver.Create(ctx, in.Token, *in.VM.Ref, spec))
	if res.Outcome == saga.Done {
		return res.With(exists(nil))
	}
	return res
}

// stillWorking takes over a machine that an earlier try made, once the provider
// has let go of it.
func stillWorking(ctx context.Context, in saga.Input, ref hcp.ProviderRef) saga.Result {
	obs, err := in.Driver.Get(ctx, ref)
	switch {
	case err != nil:
		return saga.Fail(err)
	case obs.Locked:
		return saga.Repeat(pause(in.Round))
	}
	return saga.Finish(drivers.NoteAlreadyThere).With(exists(&ref))
}

// exists says that the create's outcome is known.
func exists(ref *hcp.ProviderRef) saga.Change {
	settled := false
	return saga.Change{Ref: ref, CreateIntent: &settled}
}

func duplicate(n int) *hcp.Error {
	return hcp.Errorf(hcp.CodeConflict, "duplicate", "the cluster has %d machines for this VM; HCP touches none of them", n).
		WithHint("ask the operator to remove the wrong ones")
}

// configure sets sizes, disks, seed and nics, as often as the driver asks.
func configure(ctx context.Context, in saga.Input) saga.Result {
	if res, settled := follow(ctx, in); settled && res.Outcome != saga.Done {
		return res
	}
	spec, err := in.Spec()
	if err != nil {
		return saga.Fail(err)
	}
	task, more, err := in.Driver.Configure(ctx, in.Token, *in.VM.Ref, spec)
	res := await(task, err)
	if res.Outcome == saga.Done && more {
		return saga.Repeat(0)
	}
	return res
}

// startIfAsked powers a new machine on, if the caller wanted that.
func startIfAsked(ctx context.Context, in saga.Input) saga.Result {
	if !in.Job.Params.StartAfter {
		return saga.Finish("not_asked")
	}
	return start(ctx, in)
}

// verifyMade reads the new machine back: success is what the provider shows, not
// what it answered.
func verifyMade(ctx context.Context, in saga.Input) saga.Result {
	want := hcp.PowerStopped
	if in.Job.Params.StartAfter {
		want = hcp.PowerRunning
	}
	return verifyPower(ctx, in, want)
}

// remove takes a machine away wholly: it finds whatever carries our marker,
// forces it off and deletes it. It undoes a create and cleans up residue.
func remove(ctx context.Context, in saga.Input) saga.Result {
	if in.Step.Task != nil && in.Job.Phase == hcp.PhaseUndo {
		// The create's own task may still be at work; follow it to its end first.
		status, err := in.Driver.Poll(ctx, *in.Step.Task)
		if err != nil {
			return saga.Fail(err)
		}
		if status.State == drivers.TaskRunning {
			return saga.Repeat(pause(in.Round))
		}
	}
	refs, err := in.Driver.Find(ctx, in.VM.ID)
	if err != nil {
		return saga.Fail(err)
	}
	if len(refs) == 0 {
		if in.Now().Before(in.Step.LookUntil) {
			return saga.Repeat(min(time.Second, in.Step.LookUntil.Sub(in.Now())))
		}
		late := in.Step.Unknown
		// A create whose outcome nobody knows may still come true. The intent stays on
		// record, so that the sweep knows such a late machine for residue.
		return saga.Finish("").With(saga.Change{Gone: true}).With(saga.Change{CreateIntent: &late})
	}
	if len(refs) > 1 {
		// One of them may be somebody's copy, marker and all. A person decides.
		return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: duplicate(len(refs))}
	}
	if res := removeOne(ctx, in, refs[0]); res.Outcome != saga.Done {
		return res
	}
	return saga.Repeat(0) // look once more: only absence ends it
}

func removeOne(ctx context.Context, in saga.Input, ref hcp.ProviderRef) saga.Result {
	obs, err := in.Driver.Get(ctx, ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return saga.Finish(drivers.NoteAlreadyAbsent)
	case err != nil:
		return saga.Fail(err)
	case obs.Locked:
		return saga.Repeat(pause(in.Round))
	}
	if obs.Power != hcp.PowerStopped {
		if task, err := in.Driver.Stop(ctx, in.Token, ref, hcp.StopForce); err != nil {
			return saga.Fail(err)
		} else if !task.Done {
			return saga.Repeat(pause(in.Round))
		}
	}
	if in.Round > verifyRounds {
		return saga.Fail(stillThere())
	}
	task, err := in.Driver.Delete(ctx, in.Token, ref)
	switch {
	case err != nil:
		return saga.Fail(err)
	case !task.Done:
		return saga.Repeat(pause(in.Round))
	}
	return saga.Finish(task.Note)
}
