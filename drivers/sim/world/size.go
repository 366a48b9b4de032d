package world

import (
	"slices"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// size is configure and resize: vCPUs, memory and boot disk of a machine that is off.
type size struct {
	op simapi.Op
	simapi.SizeRequest
}

func (s *size) target() simapi.Target { return s.Target }
func (s *size) adopt(string)          {}
func (s *size) abort(*World)          {}

// want is the sizes after the request; absent ones stay.
func (s *size) want(m *machine) (vcpus, memoryMiB, diskGiB int) {
	or := func(v, old int) int {
		if v == 0 {
			return old
		}
		return v
	}
	return or(s.VCPUs, m.VCPUs), or(s.MemoryMiB, m.MemoryMiB), or(s.DiskGiB, m.DiskGiB)
}

func (s *size) begin(w *World) *simapi.Error {
	m, err := w.ready(s.Target)
	if err != nil {
		return err
	}
	c, mem, disk := s.want(m)
	if c == m.VCPUs && mem == m.MemoryMiB && disk == m.DiskGiB {
		return nil
	}
	switch {
	case c < 1 || mem < 1 || disk < 1:
		return simapi.Errorf(simapi.CodeBadRequest, "sizes must be at least 1")
	case m.Power != simapi.Stopped:
		return simapi.Errorf(simapi.CodeNotStopped, "machine %s is %s", m.ID, m.Power)
	case disk < m.DiskGiB:
		return simapi.Errorf(simapi.CodeBadRequest, "a disk cannot shrink")
	}
	if h := w.host(m.Host); h != nil && !fits(h, mem-m.MemoryMiB, disk-m.DiskGiB) {
		return simapi.Errorf(simapi.CodeNoCapacity, "host %s has no room for the new sizes", h.Name)
	}
	return nil
}

func (s *size) effect(w *World) *simapi.Error {
	if err := s.begin(w); err != nil {
		return err
	}
	m := w.machines[s.ID]
	c, mem, disk := s.want(m)
	w.resize(m, c, mem, disk)
	return nil
}

func (w *World) resize(m *machine, vcpus, memoryMiB, diskGiB int) {
	w.account(m, -1)
	m.VCPUs, m.MemoryMiB, m.DiskGiB = vcpus, memoryMiB, diskGiB
	w.account(m, 1)
	w.touch(m.ID)
}

// snapshot is snapshot, revert and delete_snapshot. What is kept of a machine is
// its sizes: a simulated disk has no content.
type snapshot struct {
	op simapi.Op
	simapi.SnapshotRequest
}

func (s *snapshot) target() simapi.Target { return s.Target }
func (s *snapshot) adopt(string)          {}
func (s *snapshot) abort(*World)          {}

func (s *snapshot) begin(w *World) *simapi.Error {
	m, err := w.ready(s.Target)
	if err != nil {
		return err
	}
	if s.Snapshot == "" {
		return simapi.Errorf(simapi.CodeBadRequest, "snapshot is missing")
	}
	at := s.index(m)
	switch {
	case s.op == simapi.OpSnapshot && at >= 0:
		return simapi.Errorf(simapi.CodeExists, "machine %s has a snapshot of that name", m.ID)
	case s.op != simapi.OpSnapshot && at < 0:
		return simapi.Errorf(simapi.CodeNoSnapshot, "machine %s has no snapshot of that name", m.ID)
	case s.op == simapi.OpRevert && m.Power != simapi.Stopped:
		return simapi.Errorf(simapi.CodeNotStopped, "machine %s is %s", m.ID, m.Power)
	}
	return nil
}

func (s *snapshot) index(m *machine) int {
	return slices.IndexFunc(m.Snapshots, func(x simapi.Snapshot) bool { return x.Name == s.Snapshot })
}

// effect never changes a slice in place: an answer may still hold the old one.
func (s *snapshot) effect(w *World) *simapi.Error {
	if err := s.begin(w); err != nil {
		return err
	}
	m := w.machines[s.ID]
	at := s.index(m)
	switch s.op {
	case simapi.OpSnapshot:
		m.Snapshots = append(slices.Clone(m.Snapshots), simapi.Snapshot{Name: s.Snapshot, VCPUs: m.VCPUs, MemoryMiB: m.MemoryMiB, DiskGiB: m.DiskGiB})
	case simapi.OpDeleteSnapshot:
		m.Snapshots = slices.Delete(slices.Clone(m.Snapshots), at, at+1)
	default:
		x := m.Snapshots[at]
		w.resize(m, x.VCPUs, x.MemoryMiB, x.DiskGiB)
	}
	w.touch(m.ID)
	return nil
}
