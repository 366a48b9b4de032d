package sim

import (
	"context"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Delete removes the machine with its disks, and looks that it is gone.
func (d *Driver) Delete(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	var a simapi.TaskAnswer
	err := d.api.call(ctx, simapi.OpDelete, ours(tok, ref), &a)
	if said(err, simapi.CodeNotFound) {
		return drivers.Finished(drivers.NoteAlreadyAbsent), nil
	}
	if err != nil {
		return drivers.Task{}, classify(simapi.OpDelete, err)
	}
	task, err := taskOf(a.Task)
	if err != nil || !task.Done {
		return task, err
	}
	if err := d.gone(ctx, ref.ID); err != nil {
		return drivers.Task{}, err
	}
	return task, nil
}

// gone proves that nothing is under the id any more. Without an answer the
// deletion is unknown, not failed.
func (d *Driver) gone(ctx context.Context, id string) error {
	_, err := d.get(ctx, hcp.ProviderRef{ID: id})
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return nil
	case err == nil:
		return hcp.Errorf(hcp.CodeVerificationFailed, "still_there", "the hypervisor said that the machine was deleted, but it is still there")
	}
	return hcp.Errorf(hcp.CodeOutcomeUnknown, "no_answer", "the machine was deleted, but the hypervisor does not answer whether it is gone").WithCause(err)
}
