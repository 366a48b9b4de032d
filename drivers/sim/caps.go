package sim

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Probe describes the cluster in one call.
func (d *Driver) Probe(ctx context.Context) (hcp.ClusterInfo, error) {
	var a simapi.ClusterAnswer
	if err := d.api.call(ctx, simapi.OpCluster, struct{}{}, &a); err != nil {
		return hcp.ClusterInfo{}, classify(simapi.OpCluster, err)
	}
	now := d.time()
	info := hcp.ClusterInfo{Version: a.Version, Capabilities: capabilities(), SettleTime: d.settle, ProbedAt: now}
	if !now.IsZero() {
		info.ClockSkew = time.UnixMilli(a.Now).Sub(now).Round(time.Millisecond)
	}
	for _, h := range a.Hosts {
		all := hcp.Sizes{VCPUs: h.VCPUs, MemoryMiB: h.MemoryMiB, DiskGiB: h.DiskGiB}
		host := hcp.Host{Name: h.Name, Reachable: !h.Down, Capacity: all, Free: all.Minus(hcp.Sizes(h.Used))}
		if h.Down {
			host.Message = "the host does not answer"
		}
		info.Hosts = append(info.Hosts, host)
		info.Capacity = info.Capacity.Plus(all)
	}
	return info, nil
}

// capabilities are the same for every simulated cluster.
func capabilities() hcp.Capabilities {
	yes := hcp.CapabilityState{Supported: true}
	no := func(why string) hcp.CapabilityState { return hcp.CapabilityState{Reason: why} }
	return hcp.Capabilities{
		hcp.CapImageImport:    yes,
		hcp.CapUEFI:           yes,
		hcp.CapGuestAddresses: yes,
		hcp.CapReboot:         no("a reset cannot be told from no reset; a reboot is a shutdown and a start"),
		hcp.CapWatch:          no("the simulated hypervisor pushes nothing"),
		hcp.CapConsole:        no("simulated machines have no screen"),
		hcp.CapSnapshot:       no("the driver does not offer it yet"),
		hcp.CapResize:         no("the driver does not offer it yet"),
		hcp.CapDisks:          no("the driver does not offer it yet"),
		hcp.CapSuspend:        no("simulated machines cannot be suspended"),
		hcp.CapAdopt:          no("the driver does not offer it yet"),
		hcp.CapPinHost:        no("the cluster picks the host itself"),
		hcp.CapAntiAffinity:   no("the cluster picks the host itself"),
	}
}
