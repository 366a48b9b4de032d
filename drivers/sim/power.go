package sim

import (
	"context"
	"errors"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Start powers on.
func (d *Driver) Start(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return d.power(ctx, simapi.OpPowerOn, tok, ref, simapi.CodeAlreadyRunning, drivers.NoteAlreadyRunning)
}

// Stop asks the guest (graceful) or pulls the plug.
func (d *Driver) Stop(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, mode hcp.StopMode) (drivers.Task, error) {
	op := simapi.OpShutdown
	if mode == hcp.StopForce {
		op = simapi.OpPowerOff
	}
	return d.power(ctx, op, tok, ref, simapi.CodeAlreadyStopped, drivers.NoteAlreadyStopped)
}

// power sends one request; the code that says "it is so already" is success.
func (d *Driver) power(ctx context.Context, op simapi.Op, tok drivers.Token, ref hcp.ProviderRef, already, note string) (drivers.Task, error) {
	var a simapi.TaskAnswer
	err := d.api.call(ctx, op, ours(tok, ref), &a)
	if said(err, already) {
		return drivers.Finished(note), nil
	}
	if err != nil {
		return drivers.Task{}, classify(op, err)
	}
	return taskOf(a.Task)
}

// ours names the machine and the marker it must carry. A token without a VM must
// not switch the check off: then nothing is ours.
func ours(tok drivers.Token, ref hcp.ProviderRef) simapi.Target {
	marker := string(tok.VM)
	if marker == "" {
		marker = "nobody"
	}
	return simapi.Target{ID: ref.ID, ExpectMarker: marker}
}

// said reports whether the hypervisor answered with that code.
func said(err error, code string) bool {
	e, ok := errors.AsType[*simapi.Error](err)
	return ok && e.Code == code
}
