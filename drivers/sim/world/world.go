// Package world is the simulated hypervisor itself: hosts, machines, tasks and
// the faults that are switched on, as a plain model in memory. It has no clock,
// no network, no file and no goroutine: it is told the time, answers, and hands
// out what changed as a Record for somebody else to keep. It is not safe for
// concurrent use; simd holds the lock.
//
// Start reading at (*World).Do.
package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Config is the world at its beginning.
type Config struct {
	Hosts  []simapi.Host  // four large ones when empty
	Images []simapi.Image // DefaultImages when empty
	BootMS int            // from power on to the address
}

// DefaultImages can be cloned in every new world.
func DefaultImages() []simapi.Image {
	return []simapi.Image{{Ref: "tiny-bios"}, {Ref: "tiny-uefi"}, {Ref: "ubuntu-24.04"}, {Ref: "debian-12"}}
}

// DefaultHosts are large enough not to be in the way of a benchmark.
func DefaultHosts() []simapi.Host {
	hosts := make([]simapi.Host, 4)
	for i := range hosts {
		hosts[i] = simapi.Host{Name: fmt.Sprintf("host-%d", i+1), VCPUs: 1 << 16, MemoryMiB: 1 << 28, DiskGiB: 1 << 22}
	}
	return hosts
}

// machine is what is stored of a machine beyond what the API shows.
type machine struct {
	simapi.Machine
	IP        string `json:"ip,omitempty"`
	AddressAt int64  `json:"address_at,omitempty"` // ms; when a running machine shows its address
	Creating  bool   `json:"creating,omitempty"`   // its clone has not ended
}

// World is one simulated cluster.
type World struct {
	now      int64 // ms, of the call at hand
	hosts    []*simapi.Host
	images   []simapi.Image
	machines map[string]*machine
	markers  map[string][]string // marker -> ids
	ids      []string            // sorted as far as sorted says; may hold ids that are gone
	sorted   int
	volumes  map[string]simapi.Volume
	consoles map[string]string // console -> machine
	omit     map[string]int

	tasks    map[string]*task
	due      dueHeap
	finished []string // ended tasks, oldest first

	settings settings
	seq      sequence
	counts   map[simapi.Op]simapi.Count

	changed changes
}

// settings is everything that controls set and that is neither host nor machine.
type settings struct {
	Faults   map[simapi.Op]simapi.OpState `json:"faults"`
	Down     string                       `json:"down,omitempty"`
	BootMS   int                          `json:"boot_ms"`
	Password string                       `json:"password,omitempty"`
}

// sequence holds the counters that must never go back.
type sequence struct {
	Task    int64 `json:"task"`
	Machine int64 `json:"machine"`
	IP      int64 `json:"ip"`
}

// New makes an empty cluster.
func New(cfg Config) *World {
	w := empty()
	if len(cfg.Hosts) == 0 {
		cfg.Hosts = DefaultHosts()
	}
	if len(cfg.Images) == 0 {
		cfg.Images = DefaultImages()
	}
	for _, h := range cfg.Hosts {
		h.Used = simapi.Sizes{}
		w.hosts = append(w.hosts, &h)
	}
	w.images = slices.Clone(cfg.Images)
	w.settings.BootMS = cfg.BootMS
	w.seq.Machine = 99
	return w
}

func empty() *World {
	return &World{
		machines: map[string]*machine{}, markers: map[string][]string{}, volumes: map[string]simapi.Volume{},
		consoles: map[string]string{}, omit: map[string]int{}, tasks: map[string]*task{},
		settings: settings{Faults: map[simapi.Op]simapi.OpState{}}, counts: map[simapi.Op]simapi.Count{},
		changed: newChanges(),
	}
}

// put stores a machine that is new or whose id, host or marker may have changed.
func (w *World) put(m *machine) {
	if w.machines[m.ID] != nil {
		w.drop(m.ID)
	}
	w.machines[m.ID] = m
	w.ids = append(w.ids, m.ID)
	if m.Marker != "" {
		w.markers[m.Marker] = append(w.markers[m.Marker], m.ID)
	}
	w.account(m, 1)
}

// drop forgets a machine.
func (w *World) drop(id string) {
	m := w.machines[id]
	if m == nil {
		return
	}
	w.account(m, -1)
	delete(w.machines, id)
	w.unmark(m)
}

// unmark takes the machine out of the index of markers.
func (w *World) unmark(m *machine) {
	left := slices.DeleteFunc(w.markers[m.Marker], func(id string) bool { return id == m.ID })
	if len(left) == 0 {
		delete(w.markers, m.Marker)
	} else {
		w.markers[m.Marker] = left
	}
}

func (w *World) account(m *machine, sign int64) {
	if h := w.host(m.Host); h != nil {
		h.Used.VCPUs += sign * int64(m.VCPUs)
		h.Used.MemoryMiB += sign * int64(m.MemoryMiB)
		h.Used.DiskGiB += sign * int64(m.DiskGiB)
	}
}

func (w *World) host(name string) *simapi.Host {
	for _, h := range w.hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// place picks the named host, or the one with most free memory. Memory and disk
// are never given twice; vCPUs are, as hypervisors do.
func (w *World) place(name string, memoryMiB, diskGiB int) (*simapi.Host, *simapi.Error) {
	if name != "" && w.host(name) == nil {
		return nil, simapi.Errorf(simapi.CodeBadRequest, "there is no host %q", name)
	}
	var best *simapi.Host
	for _, h := range w.hosts {
		if (name != "" && h.Name != name) || h.Down || !fits(h, memoryMiB, diskGiB) {
			continue
		}
		if best == nil || h.MemoryMiB-h.Used.MemoryMiB > best.MemoryMiB-best.Used.MemoryMiB {
			best = h
		}
	}
	if best == nil {
		return nil, simapi.Errorf(simapi.CodeNoCapacity, "no host has %d MiB of memory and %d GiB of disk free", memoryMiB, diskGiB)
	}
	return best, nil
}

func fits(h *simapi.Host, memoryMiB, diskGiB int) bool {
	return h.Used.MemoryMiB+int64(memoryMiB) <= h.MemoryMiB && h.Used.DiskGiB+int64(diskGiB) <= h.DiskGiB
}

// ready finds the machine of a request: it is there, its host answers, and it is the one that is meant.
func (w *World) ready(t simapi.Target) (*machine, *simapi.Error) {
	m := w.machines[t.ID]
	if m == nil {
		return nil, simapi.Errorf(simapi.CodeNotFound, "there is no machine %s", t.ID)
	}
	if h := w.host(m.Host); h != nil && h.Down {
		return nil, simapi.Errorf(simapi.CodeHostDown, "host %s does not answer", m.Host)
	}
	if t.ExpectMarker != "" && m.Marker != t.ExpectMarker {
		return nil, simapi.Errorf(simapi.CodeForeign, "machine %s carries another marker", t.ID)
	}
	return m, nil
}

// nextIP numbers addresses from 10.99.0.1 on, leaving out .0 and .255.
func (w *World) nextIP() string {
	w.seq.IP++
	n := w.seq.IP - 1
	last, rest := n%254+1, n/254
	return fmt.Sprintf("10.%d.%d.%d", 99+(rest>>8)%128, rest&255, last)
}

// view is the machine as the API shows it at this moment.
func (w *World) view(m *machine) simapi.Machine {
	v := m.Machine
	if m.Power == simapi.Running && m.IP != "" && w.now >= m.AddressAt {
		v.Addresses = []string{m.IP}
	}
	return v
}

// At sets the time of the calls that follow and ends the tasks that are due.
func (w *World) At(now time.Time) {
	w.now = max(w.now, now.UnixMilli())
	w.endDue()
}
