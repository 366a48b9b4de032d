package world

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

type clone struct {
	simapi.CloneRequest
	began bool
}

func (c *clone) target() simapi.Target { return simapi.Target{ID: c.ID} }

func (c *clone) adopt(id string) { c.ID, c.began = id, true }

// begin takes the id and the room. From here on the machine is listed, with its
// marker, locked by the task.
func (c *clone) begin(w *World) *simapi.Error {
	switch {
	case c.Name == "":
		return simapi.Errorf(simapi.CodeBadRequest, "name is missing")
	case c.VCPUs < 1 || c.MemoryMiB < 1 || c.DiskGiB < 1:
		return simapi.Errorf(simapi.CodeBadRequest, "vcpus, memory_mib and disk_gib must be at least 1")
	case c.Firmware != "" && c.Firmware != "bios" && c.Firmware != "uefi":
		return simapi.Errorf(simapi.CodeBadRequest, "firmware must be bios or uefi")
	case c.ID != "" && !validID(c.ID):
		return simapi.Errorf(simapi.CodeBadRequest, "id must be a number of at most 18 digits, without leading zero")
	case w.machines[c.ID] != nil:
		return simapi.Errorf(simapi.CodeTaken, "id %s is in use", c.ID)
	case !slices.ContainsFunc(w.images, func(i simapi.Image) bool { return i.Ref == c.Image }):
		return simapi.Errorf(simapi.CodeNoImage, "there is no image %q", c.Image)
	}
	h, err := w.place(c.Host, c.MemoryMiB, c.DiskGiB)
	if err != nil {
		return err
	}
	if c.ID == "" {
		c.ID = w.freeID()
	}
	m := &machine{Creating: true, Machine: simapi.Machine{
		ID: c.ID, Name: c.Name, Marker: c.Marker, Host: h.Name, Power: simapi.Stopped, VCPUs: c.VCPUs, MemoryMiB: c.MemoryMiB,
		DiskGiB: c.DiskGiB, Image: c.Image, Firmware: c.Firmware, Hostname: c.Hostname, SSHKeys: len(c.SSHKeys),
	}}
	if len(c.UserData) > 0 {
		sum := sha256.Sum256(c.UserData)
		m.UserData = hex.EncodeToString(sum[:])
	}
	w.put(m)
	w.touch(m.ID)
	c.began = true
	return nil
}

func (c *clone) effect(w *World) *simapi.Error {
	m := w.machines[c.ID]
	if m == nil || !m.Creating || m.Marker != c.Marker {
		return simapi.Errorf(simapi.CodeNotFound, "machine %s was removed while it was cloned", c.ID)
	}
	m.Creating = false
	w.touch(m.ID)
	return nil
}

func (c *clone) abort(w *World) {
	if m := w.machines[c.ID]; c.began && m != nil && m.Creating {
		w.erase(m)
	}
}

func validID(id string) bool {
	if len(id) == 0 || len(id) > 18 || id[0] == '0' {
		return false
	}
	_, err := strconv.ParseUint(id, 10, 64)
	return err == nil
}

// freeID counts from 100 on, as people do who make machines by hand.
func (w *World) freeID() string {
	for {
		w.seq.Machine++
		w.touchFlag(&w.changed.seq)
		if id := strconv.FormatInt(w.seq.Machine, 10); w.machines[id] == nil {
			return id
		}
	}
}

// remove is delete: the machine, its disks and its volumes are gone after it.
type remove struct{ simapi.Target }

func (r *remove) target() simapi.Target { return r.Target }
func (r *remove) adopt(string)          {}
func (r *remove) abort(*World)          {}

func (r *remove) begin(w *World) *simapi.Error {
	m, err := w.ready(r.Target)
	if err == nil && m.Power != simapi.Stopped {
		err = simapi.Errorf(simapi.CodeNotStopped, "machine %s is %s", m.ID, m.Power)
	}
	return err
}

func (r *remove) effect(w *World) *simapi.Error {
	if err := r.begin(w); err != nil {
		return err
	}
	w.erase(w.machines[r.ID])
	return nil
}

// erase removes a machine with everything that is its own.
func (w *World) erase(m *machine) {
	for _, v := range m.Volumes {
		delete(w.volumes, v)
		w.touchVolume(v)
	}
	for c, id := range w.consoles {
		if id == m.ID {
			delete(w.consoles, c)
			w.touchFlag(&w.changed.consoles)
		}
	}
	if _, ok := w.omit[m.ID]; ok {
		delete(w.omit, m.ID)
		w.touchFlag(&w.changed.omit)
	}
	w.drop(m.ID)
	w.touch(m.ID)
}
