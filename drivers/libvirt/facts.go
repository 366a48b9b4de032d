package libvirt

import (
	"context"
	"encoding/xml"
	"strconv"
	"strings"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/lotuscloud/hcp"
)

// facts are what a domain's definition says: what is not state.
type facts struct {
	mark      marker
	vcpus     int
	memoryMiB int
	disks     int
	diskGiB   int
	paths     []string // of disks and discs
	macs      []string
	networks  []string
	hasAgent  bool // has the agent's channel
	// leaseUntil is what Start noted: the latest end of a lease that was there
	// before this boot. The host's times are compared with each other only, so no
	// clocks need to agree.
	leaseUntil int64
	at         time.Time
}

// factCache keeps the facts of a host's domains, so that a sweep is one call and
// not one per domain. Events and our own changes drop entries; age does the rest.
type factCache struct {
	mu      sync.Mutex
	changes uint64 // counts drops: what was read before one may be older than it
	domains map[golibvirt.UUID]facts
	backing map[string]backing // by volume key
}

type backing struct {
	path string
	at   time.Time
}

// How old facts may be.
type age time.Duration

const (
	fresh  age = 0
	recent age = age(30 * time.Second)

	// watchedFor replaces recent while the host tells us of every new definition.
	watchedFor = 10 * time.Minute
	backingFor = 5 * time.Minute
)

func newFactCache() *factCache {
	return &factCache{domains: map[golibvirt.UUID]facts{}, backing: map[string]backing{}}
}

func (c *factCache) get(id golibvirt.UUID) (facts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.domains[id]
	return f, ok
}

// put keeps facts that were read when the cache stood at seen, unless something
// was dropped since: then the next one reads again.
func (c *factCache) put(id golibvirt.UUID, f facts, seen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == seen {
		c.domains[id] = f
	}
}

func (c *factCache) stand() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

func (c *factCache) drop(id golibvirt.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.domains, id)
}

// dropAll is for when events may have been missed.
func (c *factCache) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	clear(c.domains)
}

// keepOnly forgets domains that are not there any more.
func (c *factCache) keepOnly(ids map[golibvirt.UUID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.domains {
		if !ids[id] {
			delete(c.domains, id)
		}
	}
}

// backingOf is the path below a volume, "" for none. It is read once: the file
// below a volume does not change but by hand.
func (c *factCache) backingOf(ctx context.Context, h *host, vol golibvirt.StorageVol) (string, error) {
	now := h.control.now()
	c.mu.Lock()
	b, ok := c.backing[vol.Key]
	c.mu.Unlock()
	if ok && now.Sub(b.at) < backingFor {
		return b.path, nil
	}
	v, err := describeVolume(ctx, h, vol)
	if err != nil {
		return "", err
	}
	b = backing{at: now}
	if v.BackingStore != nil {
		b.path = v.BackingStore.Path
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.backing) > 100_000 {
		clear(c.backing)
	}
	c.backing[vol.Key] = b
	return b.path, nil
}

// factsOf are the facts of a domain, read again when those known are too old.
// INACTIVE: what is defined, which does not ask QEMU.
func (d *Driver) factsOf(ctx context.Context, h *host, dom golibvirt.Domain, old age) (facts, error) {
	now := d.now()
	if old == recent && h.watched.Load() > 0 {
		old = age(watchedFor)
	}
	if f, ok := h.facts.get(dom.UUID); ok && now.Sub(f.at) < time.Duration(old) {
		return f, nil
	}
	seen := h.facts.stand()
	raw, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) {
		return lv.DomainGetXMLDesc(dom, golibvirt.DomainXMLInactive)
	})
	if err != nil {
		return facts{}, err
	}
	f, err := parseFacts(raw)
	if err != nil {
		return facts{}, err
	}
	f.at = now
	if err := d.diskSizes(ctx, h, &f); err != nil {
		return facts{}, err
	}
	h.facts.put(dom.UUID, f, seen)
	return f, nil
}

func parseFacts(raw string) (facts, error) {
	var dom libvirtxml.Domain
	if err := dom.Unmarshal(raw); err != nil {
		return facts{}, err
	}
	var f facts
	if dom.Metadata != nil {
		f.readMetadata(dom.Metadata.XML)
	}
	if dom.VCPU != nil {
		f.vcpus = int(dom.VCPU.Value)
	}
	if dom.Memory != nil {
		f.memoryMiB = int(uint64(dom.Memory.Value) * bytesIn(dom.Memory.Unit) >> 20)
	}
	if dom.Devices == nil {
		return f, nil
	}
	for _, disk := range dom.Devices.Disks {
		if disk.Device == "" || disk.Device == "disk" {
			f.disks++
		}
		if disk.Source != nil && disk.Source.File != nil {
			f.paths = append(f.paths, disk.Source.File.File)
		}
	}
	for _, nic := range dom.Devices.Interfaces {
		if nic.MAC != nil {
			f.macs = append(f.macs, strings.ToLower(nic.MAC.Address))
		}
		if nic.Source != nil && nic.Source.Network != nil {
			f.networks = append(f.networks, nic.Source.Network.Network)
		}
	}
	for _, ch := range dom.Devices.Channels {
		if ch.Target != nil && ch.Target.VirtIO != nil && ch.Target.VirtIO.Name == agentChannel {
			f.hasAgent = true
		}
	}
	return f, nil
}

// readMetadata finds our elements among everybody's in a domain's metadata.
func (f *facts) readMetadata(inner string) {
	dec := xml.NewDecoder(strings.NewReader("<metadata>" + inner + "</metadata>"))
	for {
		tok, err := dec.Token()
		if err != nil {
			return
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		attr := func(name string) string {
			for _, a := range start.Attr {
				if a.Name.Local == name {
					return a.Value
				}
			}
			return ""
		}
		switch start.Name {
		case xml.Name{Space: markerNS, Local: "vm"}:
			if id := attr("id"); hcp.IsID(hcp.KindVM, id) {
				f.mark = marker{ID: hcp.VMID(id), Project: hcp.ProjectID(attr("project"))}
			}
		case xml.Name{Space: bootNS, Local: "boot"}:
			f.leaseUntil, _ = strconv.ParseInt(attr("lease-until"), 10, 64) // rubbish reads as 0
		}
	}
}

// bytesIn reads libvirt's unit names; it writes KiB itself.
func bytesIn(unit string) uint64 {
	switch unit {
	case "b", "bytes":
		return 1
	case "MiB", "M":
		return 1 << 20
	case "GiB", "G":
		return 1 << 30
	}
	return 1 << 10
}

// diskSizes asks for the capacity of our machine's disk. Sizes of foreign disks
// are not asked for: they may be anywhere, and asking costs a call each.
func (d *Driver) diskSizes(ctx context.Context, h *host, f *facts) error {
	if f.mark.ID == "" {
		return nil
	}
	for _, path := range f.paths {
		if strings.HasSuffix(path, "-seed.iso") {
			continue
		}
		capacity, err := call(ctx, h, func(lv *golibvirt.Libvirt) (uint64, error) {
			vol, err := lv.StorageVolLookupByPath(path)
			if err != nil {
				return 0, err
			}
			_, capacity, _, err := lv.StorageVolGetInfo(vol)
			return capacity, err
		})
		if err != nil && libvirtCode(err) == 0 {
			return err
		}
		f.diskGiB += int(capacity >> 30) // 0 when the host does not know the file
	}
	return nil
}
