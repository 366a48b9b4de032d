package world

import (
	"slices"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// attach is attach and detach of a volume.
type attach struct {
	op simapi.Op
	simapi.VolumeRequest
}

func (a *attach) target() simapi.Target { return a.Target }
func (a *attach) adopt(string)          {}
func (a *attach) abort(*World)          {}

func (a *attach) begin(w *World) *simapi.Error {
	m, err := w.ready(a.Target)
	if err != nil {
		return err
	}
	v, ok := w.volumes[a.Volume]
	switch {
	case !ok:
		return simapi.Errorf(simapi.CodeNoVolume, "there is no volume %q", a.Volume)
	case a.op == simapi.OpAttach && v.Machine != "":
		return simapi.Errorf(simapi.CodeInUse, "volume %s is attached to machine %s", v.ID, v.Machine)
	case a.op == simapi.OpDetach && v.Machine != m.ID:
		return simapi.Errorf(simapi.CodeNoVolume, "volume %s is not attached to machine %s", v.ID, m.ID)
	}
	return nil
}

func (a *attach) effect(w *World) *simapi.Error {
	if err := a.begin(w); err != nil {
		return err
	}
	m, v := w.machines[a.ID], w.volumes[a.Volume]
	if a.op == simapi.OpAttach {
		v.Machine = m.ID
		m.Volumes = append(slices.Clone(m.Volumes), v.ID)
	} else {
		v.Machine = ""
		m.Volumes = slices.DeleteFunc(slices.Clone(m.Volumes), func(id string) bool { return id == v.ID })
	}
	w.volumes[v.ID] = v
	w.touchVolume(v.ID)
	w.touch(m.ID)
	return nil
}

type createVolume struct{ simapi.CreateVolumeRequest }

func (c *createVolume) target() simapi.Target { return simapi.Target{} }
func (c *createVolume) adopt(string)          {}
func (c *createVolume) abort(*World)          {}

func (c *createVolume) begin(w *World) *simapi.Error {
	if c.Volume == "" || c.GiB < 1 {
		return simapi.Errorf(simapi.CodeBadRequest, "volume and gib must be given, gib at least 1")
	}
	if _, ok := w.volumes[c.Volume]; ok {
		return simapi.Errorf(simapi.CodeExists, "there is a volume %q", c.Volume)
	}
	return nil
}

func (c *createVolume) effect(w *World) *simapi.Error {
	if err := c.begin(w); err != nil {
		return err
	}
	w.volumes[c.Volume] = simapi.Volume{ID: c.Volume, GiB: c.GiB}
	w.touchVolume(c.Volume)
	return nil
}

type deleteVolume struct{ simapi.DeleteVolumeRequest }

func (d *deleteVolume) target() simapi.Target { return simapi.Target{} }
func (d *deleteVolume) adopt(string)          {}
func (d *deleteVolume) abort(*World)          {}

func (d *deleteVolume) begin(w *World) *simapi.Error {
	v, ok := w.volumes[d.Volume]
	if !ok {
		return simapi.Errorf(simapi.CodeNoVolume, "there is no volume %q", d.Volume)
	}
	if v.Machine != "" {
		return simapi.Errorf(simapi.CodeInUse, "volume %s is attached to machine %s", v.ID, v.Machine)
	}
	return nil
}

func (d *deleteVolume) effect(w *World) *simapi.Error {
	if err := d.begin(w); err != nil {
		return err
	}
	delete(w.volumes, d.Volume)
	w.touchVolume(d.Volume)
	return nil
}

// console is open_console and close_console: the sim keeps who has one open, so
// that a leak shows in count.
type console struct {
	op simapi.Op
	simapi.ConsoleRequest
}

func (c *console) target() simapi.Target { return c.Target }
func (c *console) adopt(string)          {}
func (c *console) abort(*World)          {}

func (c *console) begin(w *World) *simapi.Error {
	m, err := w.ready(c.Target)
	if err != nil {
		return err
	}
	holder, open := w.consoles[c.Console]
	switch {
	case c.Console == "":
		return simapi.Errorf(simapi.CodeBadRequest, "console is missing")
	case c.op == simapi.OpOpenConsole && open:
		return simapi.Errorf(simapi.CodeExists, "there is a console of that id")
	case c.op == simapi.OpOpenConsole && m.Power != simapi.Running:
		return simapi.Errorf(simapi.CodeNotRunning, "machine %s is off", m.ID)
	case c.op == simapi.OpCloseConsole && holder != m.ID:
		return simapi.Errorf(simapi.CodeNoConsole, "machine %s has no console of that id", m.ID)
	}
	return nil
}

func (c *console) effect(w *World) *simapi.Error {
	if err := c.begin(w); err != nil {
		return err
	}
	if c.op == simapi.OpOpenConsole {
		w.consoles[c.Console] = c.ID
	} else {
		delete(w.consoles, c.Console)
	}
	w.touchFlag(&w.changed.consoles)
	return nil
}

type importImage struct{ simapi.ImportImageRequest }

func (i *importImage) target() simapi.Target { return simapi.Target{} }
func (i *importImage) adopt(string)          {}
func (i *importImage) abort(*World)          {}

func (i *importImage) begin(w *World) *simapi.Error {
	if i.Name == "" || len(i.SHA256) != 64 {
		return simapi.Errorf(simapi.CodeBadRequest, "name and sha256 (64 hex digits) must be given")
	}
	for _, have := range w.images {
		if have.Ref == i.Name && have.SHA256 != i.SHA256 {
			return simapi.Errorf(simapi.CodeExists, "image %q is there with another digest", i.Name)
		}
	}
	return nil
}

func (i *importImage) effect(w *World) *simapi.Error {
	if err := i.begin(w); err != nil {
		return err
	}
	if !slices.ContainsFunc(w.images, func(have simapi.Image) bool { return have.Ref == i.Name }) {
		w.images = append(slices.Clone(w.images), simapi.Image{Ref: i.Name, SHA256: i.SHA256, Size: i.Size})
		w.touchFlag(&w.changed.images)
	}
	return nil
}
