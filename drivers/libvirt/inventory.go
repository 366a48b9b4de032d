package libvirt

import (
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

const statsState = 1 // VIR_DOMAIN_STATS_STATE: answered without asking QEMU

// Get reads one machine wherever it is in the cluster.
func (d *Driver) Get(ctx context.Context, ref hcp.ProviderRef) (drivers.Observation, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	p, err := d.locate(ctx, ref)
	if err != nil {
		return drivers.Observation{}, err
	}
	if p == nil {
		return drivers.Observation{}, hcp.NotFound("machine")
	}
	began := d.now()
	state, reason, err := domainState(ctx, p)
	if err != nil {
		return drivers.Observation{}, fail(err, opRead)
	}
	f, err := d.factsOf(ctx, p.host, p.dom, fresh)
	if err != nil {
		return drivers.Observation{}, fail(err, opRead)
	}
	o := observe(p.host, p.dom, f, state, reason)
	o.At = began
	if o.Power == hcp.PowerRunning && o.VM != "" {
		leases, err := leasesOf(ctx, p.host, f.networks)
		if err != nil {
			return drivers.Observation{}, fail(err, opRead)
		}
		o.Addresses = leased(f, leases)
		if len(o.Addresses) == 0 && f.hasAgent {
			o.Addresses = d.askAgent(ctx, p.host, p.dom)
		}
	}
	return o, nil
}

func observe(h *host, dom golibvirt.Domain, f facts, state, reason int32) drivers.Observation {
	return drivers.Observation{
		Ref: hcp.ProviderRef{ID: formatUUID(dom.UUID), Host: h.name}, VM: f.mark.ID, Name: dom.Name,
		Power: powerOf(state, reason), VCPUs: f.vcpus, MemoryMiB: f.memoryMiB, DiskGiB: f.diskGiB, Disks: f.disks,
	}
}

// Find reads the marker of every domain on every host: a copy made by hand
// carries our marker under an id of its own.
func (d *Driver) Find(ctx context.Context, vm hcp.VMID) ([]hcp.ProviderRef, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	found := make([][]hcp.ProviderRef, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) error {
		doms, err := listDomains(ctx, h)
		if err != nil {
			return err
		}
		for _, dom := range doms {
			old := recent
			if formatUUID(dom.UUID) == vm.UUID() {
				old = fresh
			}
			f, err := d.factsOf(ctx, h, dom, old)
			if isCode(err, codeNoDomain) {
				continue
			}
			if err != nil {
				return err
			}
			if f.mark.ID == vm {
				found[i] = append(found[i], hcp.ProviderRef{ID: formatUUID(dom.UUID), Host: h.name})
			}
		}
		return nil
	})
	var refs []hcp.ProviderRef
	for i := range d.hosts {
		if errs[i] != nil {
			return nil, fail(errs[i], opRead)
		}
		refs = append(refs, found[i]...)
	}
	return refs, nil
}

// Inventory sweeps all hosts at once: one call for all states of a host, one for
// the leases of a network, and a definition only where it is not known yet.
func (d *Driver) Inventory(ctx context.Context, yield func(drivers.Observation) error) (unreached []string, err error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	seen := make([][]drivers.Observation, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) (err error) {
		seen[i], err = d.sweep(ctx, h)
		return err
	})
	var last error
	for i, h := range d.hosts {
		if errs[i] != nil {
			unreached = append(unreached, h.name)
			last = errs[i]
			d.log.Warn("host does not answer the sweep", "host", h.name, "error", errs[i])
			continue
		}
		for _, o := range seen[i] {
			if err := yield(o); err != nil {
				return unreached, err
			}
		}
	}
	if len(unreached) == len(d.hosts) {
		return unreached, fail(last, opRead)
	}
	return unreached, nil
}

func (d *Driver) sweep(ctx context.Context, h *host) ([]drivers.Observation, error) {
	began := d.now()
	stats, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([]golibvirt.DomainStatsRecord, error) {
		return lv.ConnectGetAllDomainStats(nil, statsState, 0)
	})
	if err != nil {
		return nil, err
	}
	present := make(map[golibvirt.UUID]bool, len(stats))
	out := make([]drivers.Observation, 0, len(stats))
	var silent []pendingAgent
	leases := map[string][]golibvirt.NetworkDhcpLease{}
	for _, rec := range stats {
		present[rec.Dom.UUID] = true
		f, err := d.factsOf(ctx, h, rec.Dom, recent)
		if isCode(err, codeNoDomain) {
			continue
		}
		if err != nil {
			return nil, err
		}
		state, reason := stateIn(rec.Params)
		o := observe(h, rec.Dom, f, state, reason)
		o.At = began
		if o.Power == hcp.PowerRunning && o.VM != "" {
			for _, n := range f.networks {
				if _, known := leases[n]; !known {
					if leases[n], err = leasesOf(ctx, h, []string{n}); err != nil {
						return nil, err
					}
				}
			}
			var all []golibvirt.NetworkDhcpLease
			for _, n := range f.networks {
				all = append(all, leases[n]...)
			}
			if o.Addresses = leased(f, all); len(o.Addresses) == 0 && f.hasAgent {
				silent = append(silent, pendingAgent{len(out), rec.Dom})
			}
		}
		out = append(out, o)
	}
	h.facts.keepOnly(present)
	for i, addresses := range d.askAgents(ctx, h, silent) {
		out[i].Addresses = addresses
	}
	return out, nil
}

func stateIn(params []golibvirt.TypedParam) (state, reason int32) {
	for _, p := range params {
		n, ok := p.Value.I.(int32)
		switch {
		case ok && p.Field == "state.state":
			state = n
		case ok && p.Field == "state.reason":
			reason = n
		}
	}
	return state, reason
}
