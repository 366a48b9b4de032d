package sim

import (
	"context"
	"slices"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Poll asks after a task. A deletion counts as done only when the machine is gone.
func (d *Driver) Poll(ctx context.Context, task hcp.TaskRef) (drivers.TaskStatus, error) {
	var a simapi.TaskAnswer
	err := d.api.call(ctx, simapi.OpTask, simapi.TaskRequest{ID: task.ID}, &a)
	if said(err, simapi.CodeNoTask) {
		return drivers.TaskStatus{State: drivers.TaskLost}, nil
	}
	if err != nil {
		return drivers.TaskStatus{}, classify(simapi.OpTask, err)
	}
	switch a.Task.State {
	case simapi.TaskFailed:
		return drivers.TaskStatus{State: drivers.TaskFailed, Err: taskError(a.Task)}, nil
	case simapi.TaskDone:
		if a.Task.Op == simapi.OpDelete {
			return d.pollGone(ctx, a.Task.Machine)
		}
		return drivers.TaskStatus{State: drivers.TaskDone, Progress: 100}, nil
	}
	return drivers.TaskStatus{State: drivers.TaskRunning}, nil
}

func (d *Driver) pollGone(ctx context.Context, id string) (drivers.TaskStatus, error) {
	err := d.gone(ctx, id)
	switch {
	case err == nil:
		return drivers.TaskStatus{State: drivers.TaskDone, Progress: 100}, nil
	case hcp.IsCode(err, hcp.CodeVerificationFailed):
		return drivers.TaskStatus{State: drivers.TaskFailed, Err: hcp.AsError(err)}, nil
	}
	// Asking again is harmless: the caller polls once more.
	return drivers.TaskStatus{}, hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer").WithCause(err)
}

// Get reads one machine.
func (d *Driver) Get(ctx context.Context, ref hcp.ProviderRef) (drivers.Observation, error) {
	m, err := d.get(ctx, ref)
	if err != nil {
		return drivers.Observation{}, err
	}
	return d.observe(m), nil
}

func (d *Driver) get(ctx context.Context, ref hcp.ProviderRef) (simapi.Machine, error) {
	var m simapi.Machine
	if err := d.api.call(ctx, simapi.OpGet, simapi.Target{ID: ref.ID}, &m); err != nil {
		return m, classify(simapi.OpGet, err)
	}
	return m, nil
}

// Find looks for the marker on all hosts. With a host away nothing found proves
// nothing, so that is an error and not an empty answer.
func (d *Driver) Find(ctx context.Context, vm hcp.VMID) ([]hcp.ProviderRef, error) {
	var a simapi.MachinesAnswer
	if err := d.api.call(ctx, simapi.OpFind, simapi.FindRequest{Marker: string(vm)}, &a); err != nil {
		return nil, classify(simapi.OpFind, err)
	}
	refs := make([]hcp.ProviderRef, 0, len(a.Machines))
	for _, m := range a.Machines {
		refs = append(refs, hcp.ProviderRef{ID: m.ID, Host: m.Host})
	}
	if len(refs) == 0 && len(a.Unreached) > 0 {
		return nil, hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "a host of the hypervisor does not answer")
	}
	return refs, nil
}

// Inventory yields every machine, a page at a time.
func (d *Driver) Inventory(ctx context.Context, yield func(drivers.Observation) error) (unreached []string, err error) {
	var req simapi.ListRequest
	for {
		var a simapi.MachinesAnswer
		if err := d.api.call(ctx, simapi.OpList, req, &a); err != nil {
			return unreached, classify(simapi.OpList, err)
		}
		for _, host := range a.Unreached { // away during one page is away
			if !slices.Contains(unreached, host) {
				unreached = append(unreached, host)
			}
		}
		for _, m := range a.Machines {
			if err := yield(d.observe(m)); err != nil {
				return unreached, err
			}
		}
		if a.Next == "" {
			return unreached, nil
		}
		req.After = a.Next
	}
}

func (d *Driver) observe(m simapi.Machine) drivers.Observation {
	o := drivers.Observation{
		Ref: hcp.ProviderRef{ID: m.ID, Host: m.Host}, VM: hcp.VMID(m.Marker), Name: m.Name, Power: hcp.PowerUnknown,
		VCPUs: m.VCPUs, MemoryMiB: m.MemoryMiB, DiskGiB: m.DiskGiB, Disks: 1 + len(m.Volumes), Locked: m.Lock != nil, At: d.time(),
	}
	switch m.Power {
	case simapi.Running:
		o.Power = hcp.PowerRunning
	case simapi.Stopped:
		o.Power = hcp.PowerStopped
	}
	for _, ip := range m.Addresses {
		o.Addresses = append(o.Addresses, hcp.Address{IP: ip, Source: "provider"})
	}
	return o
}
