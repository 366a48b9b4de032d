package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/lotuscloud/hcp"
)

// measured is what one host has, and what its definitions leave of it.
type measured struct{ capacity, free hcp.Sizes }

// measure counts memory and CPUs by definitions, running or not: what a stopped
// machine may claim again is not free.
func (d *Driver) measure(ctx context.Context, h *host) (measured, error) {
	var m measured
	node, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([2]uint64, error) {
		_, memory, cpus, _, _, _, _, _, err := lv.NodeGetInfo()
		return [2]uint64{memory >> 10, uint64(cpus)}, err
	})
	if err != nil {
		return m, err
	}
	m.capacity = hcp.Sizes{MemoryMiB: int64(node[0]), VCPUs: int64(node[1])}
	m.free = m.capacity
	doms, err := listDomains(ctx, h)
	if err != nil {
		return m, err
	}
	for _, dom := range doms {
		f, err := d.factsOf(ctx, h, dom, recent)
		if isCode(err, codeNoDomain) {
			continue
		}
		if err != nil {
			return m, err
		}
		m.free.MemoryMiB -= int64(f.memoryMiB)
		m.free.VCPUs -= int64(f.vcpus)
	}
	return m, nil
}

func (d *Driver) measurePool(ctx context.Context, h *host, m *measured) error {
	pool, err := d.ensurePool(ctx, h, d.opts.pool)
	if err != nil {
		return err
	}
	info, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([2]uint64, error) {
		_, capacity, _, available, err := lv.StoragePoolGetInfo(pool)
		return [2]uint64{capacity, available}, err
	})
	m.capacity.DiskGiB, m.free.DiskGiB = int64(info[0]>>30), int64(info[1]>>30)
	return err
}

// Probe looks at every host. It makes the cluster's pool where it is missing:
// without it a host has no room at all.
func (d *Driver) Probe(ctx context.Context) (hcp.ClusterInfo, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	info := hcp.ClusterInfo{Hosts: make([]hcp.Host, len(d.hosts)), ProbedAt: d.now()}
	found := make([]hostKind, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) error {
		info.Hosts[i].Name = h.name
		k, err := d.kindOf(ctx, h)
		if err != nil {
			return err
		}
		found[i] = k
		m, err := d.measure(ctx, h)
		if err != nil {
			return err
		}
		if err := d.measurePool(ctx, h, &m); err != nil {
			if libvirtCode(err) == 0 {
				return err
			}
			info.Hosts[i].Message = "storage: " + hcp.AsError(fail(err, opSetup)).Message
		}
		info.Hosts[i].Reachable, info.Hosts[i].Capacity, info.Hosts[i].Free = true, m.capacity, floor(m.free)
		return nil
	})
	var last error
	versions := map[string]bool{}
	uefi, answered := "", 0
	for i := range d.hosts {
		if errs[i] != nil {
			e := hcp.AsError(fail(errs[i], opRead))
			info.Hosts[i].Message = strings.TrimSpace(e.Message + " " + e.Reason)
			last = e
			continue
		}
		answered++
		info.Capacity = info.Capacity.Plus(info.Hosts[i].Capacity)
		versions[found[i].version] = true
		if !found[i].uefi {
			uefi = "a host has no UEFI firmware for guests: install the ovmf package there"
		}
	}
	if answered == 0 {
		return hcp.ClusterInfo{}, last
	}
	info.Version = strings.Join(sortedKeys(versions), ", ")
	info.Capabilities = capabilities(uefi)
	return info, nil
}

func capabilities(noUEFI string) hcp.Capabilities {
	yes := hcp.CapabilityState{Supported: true}
	c := hcp.Capabilities{hcp.CapWatch: yes, hcp.CapImageImport: yes, hcp.CapGuestAddresses: yes,
		hcp.CapUEFI:   {Supported: noUEFI == "", Reason: noUEFI},
		hcp.CapReboot: {Reason: "a reboot is a stop and a start, which can be verified"}}
	for _, k := range []hcp.Capability{hcp.CapConsole, hcp.CapSnapshot, hcp.CapResize, hcp.CapSuspend, hcp.CapAdopt, hcp.CapDisks, hcp.CapPinHost, hcp.CapAntiAffinity} {
		c[k] = hcp.CapabilityState{Reason: "the libvirt driver does not offer it"}
	}
	return c
}

func floor(s hcp.Sizes) hcp.Sizes {
	return hcp.Sizes{VCPUs: max(0, s.VCPUs), MemoryMiB: max(0, s.MemoryMiB), DiskGiB: max(0, s.DiskGiB)}
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// hostKind is what a host can do.
type hostKind struct {
	version    string
	domainType string
	uefi       bool
}

func (d *Driver) kindOf(ctx context.Context, h *host) (hostKind, error) {
	var k hostKind
	v, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([2]uint64, error) {
		lib, err := lv.ConnectGetLibVersion()
		if err != nil {
			return [2]uint64{}, err
		}
		qemu, err := lv.ConnectGetVersion()
		return [2]uint64{lib, qemu}, err
	})
	if err != nil {
		return k, err
	}
	k.version = fmt.Sprintf("libvirt %s, QEMU %s", dotted(v[0]), dotted(v[1]))
	if k.domainType, err = d.domainType(ctx, h); err != nil {
		return k, err
	}
	raw, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) {
		return lv.ConnectGetDomainCapabilities(nil, golibvirt.OptString{"x86_64"}, golibvirt.OptString{d.opts.machineUEFI}, golibvirt.OptString{k.domainType}, 0)
	})
	if err != nil {
		if libvirtCode(err) != 0 {
			return k, nil // no such machine type: no UEFI
		}
		return k, err
	}
	var caps libvirtxml.DomainCaps
	if err := xml.Unmarshal([]byte(raw), &caps); err != nil {
		return k, err
	}
	for _, e := range caps.OS.Enums {
		k.uefi = k.uefi || e.Name == "firmware" && slices.Contains(e.Values, "efi")
	}
	return k, nil
}

func dotted(v uint64) string { return fmt.Sprintf("%d.%d.%d", v/1000000, v/1000%1000, v%1000) }

// domainType is kvm where the host offers it, else qemu; asked once per host, by
// one caller: the host looks at its emulators anew for each, which takes seconds.
func (d *Driver) domainType(ctx context.Context, h *host) (string, error) {
	if d.opts.domainType != "auto" {
		return d.opts.domainType, nil
	}
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return "", busy.WithCause(ctx.Err())
	}
	if h.kind != "" {
		return h.kind, nil
	}
	raw, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) { return lv.ConnectGetCapabilities() })
	if err != nil {
		return "", err
	}
	kind, err := kindIn(raw)
	if err != nil {
		return "", err
	}
	h.kind = kind
	return kind, nil
}

func kindIn(capabilities string) (string, error) {
	var caps libvirtxml.Caps
	if err := caps.Unmarshal(capabilities); err != nil {
		return "", err
	}
	kind := ""
	for _, g := range caps.Guests {
		if g.OSType != "hvm" || g.Arch.Name != "x86_64" {
			continue
		}
		for _, dom := range g.Arch.Domains {
			switch dom.Type {
			case "kvm":
				return "kvm", nil
			case "qemu":
				kind = "qemu"
			}
		}
	}
	if kind == "" {
		return "", hcp.Errorf(hcp.CodeFeatureNotSupported, "no_x86_64", "a host cannot run x86_64 machines").WithCause(errors.New("no x86_64 hvm guest in its capabilities"))
	}
	return kind, nil
}
