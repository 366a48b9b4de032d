package libvirt

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/internal/clock"
)

var (
	_ drivers.Opener        = Open
	_ drivers.Driver        = (*Driver)(nil)
	_ drivers.Watcher       = (*Driver)(nil)
	_ drivers.ImageImporter = (*Driver)(nil)
)

// Driver drives the hosts of one cluster.
type Driver struct {
	hosts   []*host
	opts    options
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger

	done   context.Context // ends at Close
	finish context.CancelFunc

	placing sync.Mutex // held while a host is chosen

	mu   sync.Mutex
	busy map[hcp.VMID]chan struct{} // one mutating call per VM
}

// Open makes a driver of the hosts that cfg.Endpoint lists, comma-separated:
// qemu:///system, qemu+unix:///system?socket=PATH, qemu+ssh://user@host/system
// (qemu+tcp on this machine only, for tests). A parameter name=X gives a host its name. Nothing is
// dialled yet.
func Open(_ context.Context, cfg drivers.Config) (drivers.Driver, error) {
	opts, err := parseOptions(cfg.Options)
	if err != nil {
		return nil, err
	}
	creds, err := parseCredentials(cfg.Credentials)
	if err != nil {
		return nil, err
	}
	eps, err := parseEndpoints(cfg.Endpoint, creds)
	if err != nil {
		return nil, err
	}
	d := &Driver{opts: opts, timeout: cfg.CallTimeout, now: cfg.Now, log: cfg.Log, busy: map[hcp.VMID]chan struct{}{}}
	if d.timeout <= 0 {
		d.timeout = 30 * time.Second
	}
	if d.now == nil {
		d.now = clock.Real().Now
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.log = d.log.With("cluster", string(cfg.Cluster))
	d.done, d.finish = context.WithCancel(context.Background())
	for _, ep := range eps {
		d.hosts = append(d.hosts, newHost(ep, d.now))
	}
	return d, nil
}

// Close ends all sessions; calls in flight end with an error.
func (d *Driver) Close() error {
	d.finish()
	for _, h := range d.hosts {
		h.close()
	}
	return nil
}

// bounded gives a method its deadline.
func (d *Driver) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.timeout)
}

// turn waits until no other mutating call on the VM is in flight.
func (d *Driver) turn(ctx context.Context, vm hcp.VMID) (release func(), err error) {
	for {
		d.mu.Lock()
		before, taken := d.busy[vm]
		if !taken {
			mine := make(chan struct{})
			d.busy[vm] = mine
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				delete(d.busy, vm)
				d.mu.Unlock()
				close(mine)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, busy.WithCause(ctx.Err()) // nothing was sent
		}
	}
}

func (d *Driver) host(name string) (*host, error) {
	for _, h := range d.hosts {
		if h.name == name {
			return h, nil
		}
	}
	return nil, hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the host of the machine is not part of the cluster any more").
		WithHint("an operator adds the host to the cluster's endpoint again").WithCause(fmt.Errorf("no host %q", name))
}

// Poll: every task of this driver is done when it is returned.
func (d *Driver) Poll(context.Context, hcp.TaskRef) (drivers.TaskStatus, error) {
	return drivers.TaskStatus{State: drivers.TaskLost}, nil
}

// place is where a machine was found.
type place struct {
	host *host
	dom  golibvirt.Domain
}

// lookup asks one host for a domain; false is its positive "not there".
func lookup(ctx context.Context, h *host, id golibvirt.UUID) (golibvirt.Domain, bool, error) {
	dom, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.Domain, error) { return lv.DomainLookupByUUID(id) })
	if isCode(err, codeNoDomain) {
		return dom, false, nil
	}
	return dom, err == nil, err
}

// locate finds the machine of a ref: on its host, or, when that says no, on any
// other. nil without error means that every host said no.
func (d *Driver) locate(ctx context.Context, ref hcp.ProviderRef) (*place, error) {
	if d.done.Err() != nil {
		return nil, fail(&errLink{err: net.ErrClosed}, opRead)
	}
	id, err := parseUUID(ref.ID)
	if err != nil {
		return nil, hcp.NotFound("machine").WithCause(err) // no host can have it
	}
	if h, err := d.host(ref.Host); err == nil {
		dom, ok, err := lookup(ctx, h, id)
		if err != nil {
			return nil, fail(err, opRead)
		}
		if ok {
			return &place{h, dom}, nil
		}
	}
	found := make([]*place, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) error {
		if h.name == ref.Host {
			return nil
		}
		dom, ok, err := lookup(ctx, h, id)
		if ok {
			found[i] = &place{h, dom}
		}
		return err
	})
	for _, p := range found {
		if p != nil {
			return p, nil
		}
	}
	for _, err := range errs {
		if err != nil {
			return nil, fail(err, opRead)
		}
	}
	return nil, nil
}

// ours finds the machine of a ref and checks its marker; nil: it is nowhere.
func (d *Driver) ours(ctx context.Context, ref hcp.ProviderRef, vm hcp.VMID) (*place, error) {
	p, err := d.locate(ctx, ref)
	if err != nil || p == nil {
		return nil, err
	}
	mark, err := readMarker(ctx, p.host, p.dom)
	if isCode(err, codeNoDomain) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(err, opRead)
	}
	if mark.ID != vm || vm == "" {
		return nil, foreign()
	}
	return p, nil
}

// begin is what all mutating methods on an existing machine share.
func (d *Driver) begin(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (p *place, bctx context.Context, end func(), err error) {
	bctx, cancel := d.bounded(ctx)
	release, err := d.turn(bctx, tok.VM)
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	end = func() { release(); cancel() }
	if p, err = d.ours(bctx, ref, tok.VM); err != nil {
		end()
		return nil, nil, nil, surelyNot(err)
	}
	return p, bctx, end, nil
}

// surelyNot: a read that failed before a mutating call had no effect, so that
// call surely did nothing.
func surelyNot(err error) error {
	e := hcp.AsError(err)
	if e.Code == hcp.CodeProviderTimeout || e.Code == hcp.CodeOutcomeUnknown {
		return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer").WithCause(err)
	}
	return err
}
