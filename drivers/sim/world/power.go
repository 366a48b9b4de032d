package world

import "github.com/lotuscloud/hcp/drivers/sim/simapi"

// power is power_on, power_off, shutdown (the guest is asked, and obeys) and
// reset. As on real hypervisors a second power_on is refused, not ignored.
type power struct {
	op simapi.Op
	simapi.Target
}

func (p *power) target() simapi.Target { return p.Target }
func (p *power) adopt(string)          {}
func (p *power) abort(*World)          {}

func (p *power) begin(w *World) *simapi.Error {
	m, err := w.ready(p.Target)
	if err != nil {
		return err
	}
	switch running := m.Power == simapi.Running; {
	case p.op == simapi.OpPowerOn && running:
		return simapi.Errorf(simapi.CodeAlreadyRunning, "machine %s runs", m.ID)
	case (p.op == simapi.OpPowerOff || p.op == simapi.OpShutdown) && !running:
		return simapi.Errorf(simapi.CodeAlreadyStopped, "machine %s is off", m.ID)
	case p.op == simapi.OpReset && !running:
		return simapi.Errorf(simapi.CodeNotRunning, "machine %s is off", m.ID)
	}
	return nil
}

func (p *power) effect(w *World) *simapi.Error {
	if err := p.begin(w); err != nil {
		return err
	}
	m := w.machines[p.ID]
	if p.op == simapi.OpPowerOn || p.op == simapi.OpReset {
		w.boot(m)
	} else {
		w.halt(m)
	}
	return nil
}

// boot starts the guest; its address shows after the boot delay and stays the same for life.
func (w *World) boot(m *machine) {
	if m.IP == "" {
		m.IP = w.nextIP()
		w.touchFlag(&w.changed.seq)
	}
	m.Power, m.AddressAt = simapi.Running, w.now+int64(w.settings.BootMS)
	m.Boots++
	w.touch(m.ID)
}

func (w *World) halt(m *machine) {
	m.Power, m.AddressAt = simapi.Stopped, 0
	for c, id := range w.consoles {
		if id == m.ID {
			delete(w.consoles, c)
			w.touchFlag(&w.changed.consoles)
		}
	}
	w.touch(m.ID)
}
