package libvirt

import (
	"context"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// The states and reasons of a domain that are told apart here.
const (
	stateRunning     = 1
	stateBlocked     = 2
	statePaused      = 3
	stateShutdown    = 4 // on its way down, still running
	stateShutoff     = 5
	statePMSuspended = 7

	shutoffSaved = 5 // its memory is kept in a file
)

func powerOf(state, reason int32) hcp.Power {
	switch state {
	case stateRunning, stateBlocked, stateShutdown:
		return hcp.PowerRunning
	case statePaused:
		return hcp.PowerPaused
	case stateShutoff:
		if reason == shutoffSaved {
			return hcp.PowerSuspended
		}
		return hcp.PowerStopped
	case statePMSuspended:
		return hcp.PowerSuspended
	}
	return hcp.PowerUnknown
}

func domainState(ctx context.Context, p *place) (state, reason int32, err error) {
	pair, err := call(ctx, p.host, func(lv *golibvirt.Libvirt) ([2]int32, error) {
		s, r, err := lv.DomainGetState(p.dom, 0)
		return [2]int32{s, r}, err
	})
	return pair[0], pair[1], err
}

// Start powers on. It first notes the leases that are there: only a newer one
// is an address of this boot.
func (d *Driver) Start(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	p, ctx, end, err := d.begin(ctx, tok, ref)
	if err != nil {
		return drivers.Task{}, err
	}
	defer end()
	if p == nil {
		return drivers.Task{}, hcp.NotFound("machine")
	}
	state, _, err := domainState(ctx, p)
	if err != nil {
		return drivers.Task{}, surelyNot(fail(err, opRead))
	}
	switch state {
	case stateRunning, stateBlocked:
		return drivers.Finished(drivers.NoteAlreadyRunning), nil
	case stateShutdown:
		return drivers.Task{}, busy
	case statePaused:
		err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error { return lv.DomainResume(p.dom) })
	case statePMSuspended:
		err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error { return lv.DomainPmWakeup(p.dom, 0) })
	default:
		if err := d.noteBoot(ctx, p); err != nil {
			return drivers.Task{}, surelyNot(fail(err, opRead))
		}
		err = d.powerOn(ctx, p)
	}
	if err == nil {
		return drivers.Finished(""), nil
	}
	// what counts is what is: another request may have started it meanwhile
	if libvirtCode(err) != 0 {
		if state, _, again := domainState(ctx, p); again == nil && state == stateRunning {
			return drivers.Finished(drivers.NoteAlreadyRunning), nil
		}
	}
	return drivers.Task{}, fail(err, opStart)
}

// powerOn starts the domain; networks that a reboot of the host left inactive are
// started and it is tried once more.
func (d *Driver) powerOn(ctx context.Context, p *place) error {
	create := func() error {
		return run(ctx, p.host, func(lv *golibvirt.Libvirt) error {
			_, err := lv.DomainCreateWithFlags(p.dom, 0)
			return err
		})
	}
	err := create()
	if !isCode(err, codeOperationInvalid, codeNoNetwork, codeInternal) {
		return err
	}
	f, ferr := d.factsOf(ctx, p.host, p.dom, fresh)
	if ferr != nil {
		return err
	}
	again := false
	for _, n := range f.networks {
		started, nerr := ensureNetwork(ctx, p.host, n)
		if nerr != nil {
			return nerr
		}
		again = again || started
	}
	if again {
		return create()
	}
	return err
}

// Stop asks once: gracefully by the power button, or by force, and then it is
// off when Stop returns. Memory that was saved to a file is dropped: a machine
// that is asked to be off must not wake up in the middle of its work.
func (d *Driver) Stop(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, mode hcp.StopMode) (drivers.Task, error) {
	p, ctx, end, err := d.begin(ctx, tok, ref)
	if err != nil {
		return drivers.Task{}, err
	}
	defer end()
	if p == nil {
		return drivers.Task{}, hcp.NotFound("machine")
	}
	state, reason, err := domainState(ctx, p)
	if err != nil {
		return drivers.Task{}, surelyNot(fail(err, opRead))
	}
	if state == stateShutoff {
		if reason == shutoffSaved {
			err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error { return lv.DomainManagedSaveRemove(p.dom, 0) })
			return drivers.Finished(""), fail(err, opStop)
		}
		return drivers.Finished(drivers.NoteAlreadyStopped), nil
	}
	if mode == hcp.StopGraceful {
		err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error {
			return lv.DomainShutdownFlags(p.dom, golibvirt.DomainShutdownAcpiPowerBtn)
		})
	} else {
		err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error { return lv.DomainDestroyFlags(p.dom, 0) })
		if err == nil || libvirtCode(err) != 0 {
			return drivers.Finished(""), confirmOff(ctx, p, err)
		}
	}
	if isCode(err, codeOperationInvalid) && confirmOff(ctx, p, nil) == nil {
		return drivers.Finished(drivers.NoteAlreadyStopped), nil
	}
	return drivers.Task{Done: err == nil}, fail(err, opStop)
}

// confirmOff looks until the machine is off, or says the truth: after said, the
// hypervisor's own complaint, one look is enough.
func confirmOff(ctx context.Context, p *place, said error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		state, _, err := domainState(ctx, p)
		switch {
		case isCode(err, codeNoDomain): // it was transient
			return nil
		case err != nil:
			return fail(err, opStop)
		case state == stateShutoff:
			return nil
		case said != nil:
			return fail(said, opStop)
		}
		if !waited(ctx, pause) {
			return hcp.Errorf(hcp.CodeOutcomeUnknown, "still_running", "the machine was told to stop and still runs")
		}
	}
}
