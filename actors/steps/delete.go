package steps

import (
	"context"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/drivers"
)

// deleteMachine removes the machine and its disks. Without a provider id it
// looks for our marker: a create that nobody heard of again may have worked.
func deleteMachine(ctx context.Context, in saga.Input) saga.Result {
	if res, settled := follow(ctx, in); settled {
		return res
	}
	ref := in.VM.Ref
	if ref == nil {
		refs, err := in.Driver.Find(ctx, in.VM.ID)
		switch {
		case err != nil:
			return saga.Fail(err)
		case len(refs) == 0:
			return saga.Finish(drivers.NoteAlreadyAbsent).With(goneFor(in))
		case len(refs) > 1:
			return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: duplicate(len(refs))}
		}
		ref = &refs[0]
		if res := removeOne(ctx, in, *ref); res.Outcome != saga.Done {
			return res
		}
		return saga.Finish("").With(saga.Change{Ref: ref})
	}
	task, err := in.Driver.Delete(ctx, in.Token, *ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return saga.Finish(drivers.NoteAlreadyAbsent)
	case isStranger(err):
		// Our id was given to somebody else: ours is gone, theirs is not touched.
		return saga.Finish(drivers.NoteAlreadyAbsent)
	case isNotStopped(err):
		return removeOne(ctx, in, *ref)
	}
	return await(task, err)
}

func isStranger(err error) bool {
	return hcp.IsCode(err, hcp.CodeConflict) && hcp.AsError(err).Reason == "foreign_object"
}

func isNotStopped(err error) bool {
	return hcp.IsCode(err, hcp.CodeConflict) && hcp.AsError(err).Reason == "not_stopped"
}

// verifyGone asks the provider directly; only its "not found" ends a delete.
func verifyGone(ctx context.Context, in saga.Input) saga.Result {
	gone := goneFor(in)
	if in.VM.Ref == nil {
		return saga.Finish("").With(gone)
	}
	obs, err := in.Driver.Get(ctx, *in.VM.Ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return saga.Finish("").With(gone)
	case err != nil:
		return saga.Fail(err)
	case !obs.Marked(in.VM.ID):
		return saga.Finish("").With(gone)
	case obs.Locked:
		return saga.Repeat(pause(in.Round))
	}
	return saga.Result{Outcome: saga.Failed, NoRetry: true, Err: stillThere()}.With(seen(in, obs))
}

// goneFor says that the VM has no machine. A create whose outcome nobody knows
// may still come true: its intent stays on record, so that the sweep knows such
// a late machine for residue.
func goneFor(in saga.Input) saga.Change {
	open := in.VM.CreateIntent
	return saga.Change{Gone: true, CreateIntent: &open}
}

func stillThere() *hcp.Error {
	return hcp.Errorf(hcp.CodeVerificationFailed, "still_there", "the hypervisor said deleted, but the machine is still there").
		WithHint("delete it again; if that does not help, ask the operator to look at the cluster")
}
