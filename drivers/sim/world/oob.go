package world

import (
	"fmt"
	"slices"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// OOB acts as somebody else would, past every lock and without a call of ours.
func (w *World) OOB(r simapi.OOBRequest) (simapi.OOBAnswer, *simapi.Error) {
	if r.Verb == "create" {
		return w.oobCreate(r)
	}
	m := w.lookup(r.VM)
	if !slices.Contains([]string{"delete", "start", "stop", "set_cpu", "add_disk", "migrate", "unmark", "recycle"}, r.Verb) {
		return simapi.OOBAnswer{}, simapi.Errorf(simapi.CodeBadRequest, "verb %q is unknown; use create, delete, start, stop, set_cpu, add_disk, migrate, unmark or recycle", r.Verb)
	}
	if m == nil {
		return simapi.OOBAnswer{}, simapi.Errorf(simapi.CodeNotFound, "there is no machine with marker or id %q", r.VM)
	}
	if err := w.oob(r, m); err != nil {
		return simapi.OOBAnswer{}, err
	}
	w.touch(m.ID)
	return simapi.OOBAnswer{IDs: []string{m.ID}}, nil
}

func (w *World) oob(r simapi.OOBRequest, m *machine) *simapi.Error {
	switch r.Verb {
	case "delete":
		w.erase(m)
	case "start":
		if m.Power != simapi.Running {
			w.boot(m)
		}
	case "stop":
		w.halt(m)
	case "set_cpu":
		if r.VCPUs < 1 {
			return simapi.Errorf(simapi.CodeBadRequest, "vcpus must be at least 1")
		}
		w.resize(m, r.VCPUs, m.MemoryMiB, m.DiskGiB)
	case "add_disk":
		if r.GiB < 1 {
			return simapi.Errorf(simapi.CodeBadRequest, "gib must be at least 1")
		}
		w.addDisk(m, r.GiB)
	case "migrate":
		if w.host(r.Host) == nil {
			return simapi.Errorf(simapi.CodeBadRequest, "there is no host %q", r.Host)
		}
		w.account(m, -1)
		m.Host = r.Host
		w.account(m, 1)
	case "unmark":
		w.unmark(m)
		m.Marker = ""
	case "recycle":
		w.erase(m)
		w.put(&machine{Machine: simapi.Machine{ID: m.ID, Name: "stranger-" + m.ID, Host: m.Host, Power: simapi.Stopped,
			VCPUs: 1, MemoryMiB: 256, DiskGiB: 1, Image: m.Image}})
	}
	return nil
}

// lookup finds by marker, then by provider id.
func (w *World) lookup(vm string) *machine {
	if ids := w.markers[vm]; len(ids) > 0 {
		return w.machines[ids[0]]
	}
	return w.machines[vm]
}

func (w *World) addDisk(m *machine, gib int) {
	id := ""
	for n := len(m.Volumes) + 1; ; n++ {
		id = fmt.Sprintf("disk-%s-%d", m.ID, n)
		if _, taken := w.volumes[id]; !taken {
			break
		}
	}
	w.volumes[id] = simapi.Volume{ID: id, GiB: gib, Machine: m.ID}
	w.touchVolume(id)
	m.Volumes = append(slices.Clone(m.Volumes), id)
}

func (w *World) oobCreate(r simapi.OOBRequest) (simapi.OOBAnswer, *simapi.Error) {
	r.N = max(r.N, 1)
	if r.ID != "" && r.N > 1 {
		return simapi.OOBAnswer{}, simapi.Errorf(simapi.CodeBadRequest, "id and n cannot both be given")
	}
	if r.Power != "" && r.Power != simapi.Running && r.Power != simapi.Stopped {
		return simapi.OOBAnswer{}, simapi.Errorf(simapi.CodeBadRequest, "power must be running or stopped")
	}
	var a simapi.OOBAnswer
	for range r.N {
		c := &clone{CloneRequest: simapi.CloneRequest{ID: r.ID, Name: r.Name, Marker: r.Marker, Host: r.Host, Image: r.Image,
			VCPUs: max(r.VCPUs, 1), MemoryMiB: max(r.MemoryMiB, 256), DiskGiB: max(r.DiskGiB, 1)}}
		if c.ID == "" {
			c.ID = w.freeID()
		}
		if c.Name == "" {
			c.Name = "stranger-" + c.ID
		}
		if c.Image == "" && len(w.images) > 0 {
			c.Image = w.images[0].Ref
		}
		if err := c.begin(w); err != nil {
			return a, err
		}
		m := w.machines[c.ID]
		m.Creating = false
		if r.Power == simapi.Running {
			w.boot(m)
		}
		a.IDs = append(a.IDs, c.ID)
	}
	return a, nil
}

// Omit leaves a machine out of the next n lists.
func (w *World) Omit(r simapi.OmitRequest) *simapi.Error {
	m := w.lookup(r.VM)
	if m == nil {
		return simapi.Errorf(simapi.CodeNotFound, "there is no machine with marker or id %q", r.VM)
	}
	w.omit[m.ID] = r.N
	if r.N == 0 {
		delete(w.omit, m.ID)
	}
	w.touchFlag(&w.changed.omit)
	return nil
}

// SetHost changes or adds a host.
func (w *World) SetHost(r simapi.HostRequest) *simapi.Error {
	if r.Name == "" || r.VCPUs < 0 || r.MemoryMiB < 0 || r.DiskGiB < 0 {
		return simapi.Errorf(simapi.CodeBadRequest, "name must be given and sizes must not be negative")
	}
	h := w.host(r.Name)
	if h == nil {
		if r.VCPUs == 0 || r.MemoryMiB == 0 || r.DiskGiB == 0 {
			return simapi.Errorf(simapi.CodeBadRequest, "there is no host %q; to add it give vcpus, memory_mib and disk_gib", r.Name)
		}
		h = &simapi.Host{Name: r.Name}
		w.hosts = append(w.hosts, h)
	}
	if r.Down != nil {
		h.Down = *r.Down
	}
	if r.VCPUs > 0 {
		h.VCPUs = r.VCPUs
	}
	if r.MemoryMiB > 0 {
		h.MemoryMiB = r.MemoryMiB
	}
	if r.DiskGiB > 0 {
		h.DiskGiB = r.DiskGiB
	}
	w.touchFlag(&w.changed.hosts)
	return nil
}
