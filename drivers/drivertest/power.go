package drivertest

import (
	"net/netip"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func (s *suite) startTwice() {
	v := s.running()
	task, err := s.d.Start(s.Context(), s.tok(v.id, "start"), v.ref)
	s.done(s.d, task, err, "start of a running machine")
	if task.Note != drivers.NoteAlreadyRunning {
		s.Errorf("start of a running machine has note %q, want %q", task.Note, drivers.NoteAlreadyRunning)
	}
	s.power(v, hcp.PowerRunning)
	s.one(v)
}

func (s *suite) address() {
	v := s.running()
	var o drivers.Observation
	if !s.eventually(s.Boot, func() bool { o = s.get(v); return len(o.Addresses) > 0 }) {
		s.Fatal("the machine shows no address")
	}
	for _, a := range o.Addresses {
		if _, err := netip.ParseAddr(a.IP); err != nil {
			s.Errorf("%q is no address", a.IP)
		}
		switch a.Source {
		case "lease", "agent", "arp", "provider":
		default:
			s.Errorf("address source %q is not in the contract", a.Source)
		}
	}
}

func (s *suite) gracefulStop() {
	v := s.running()
	// As the job does: one request at a time, repeated until the guest obeys.
	var last error
	stopped := s.eventually(s.Boot+s.Wait, func() bool {
		task, err := s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, hcp.StopGraceful)
		if err == nil {
			err = s.wait(s.Context(), s.d, task)
		}
		last = err
		o, gerr := s.d.Get(s.Context(), v.ref)
		return gerr == nil && o.Power == hcp.PowerStopped
	})
	if !stopped {
		s.Fatalf("the machine does not stop: %v", last)
	}
	s.get(v)
}

func (s *suite) forcedStop() {
	v := s.running()
	s.stop(v)
	s.get(v)
}

func (s *suite) stop(v vm) {
	s.Helper()
	task, err := s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, hcp.StopForce)
	s.done(s.d, task, err, "forced stop")
	s.power(v, hcp.PowerStopped)
}

func (s *suite) stopStopped() {
	v := s.created()
	for _, mode := range []hcp.StopMode{hcp.StopGraceful, hcp.StopForce} {
		task, err := s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, mode)
		s.done(s.d, task, err, "stop of a machine that is off")
		if task.Note != drivers.NoteAlreadyStopped {
			s.Errorf("%s stop of a machine that is off has note %q, want %q", mode, task.Note, drivers.NoteAlreadyStopped)
		}
	}
}

func (s *suite) startAgain() {
	v := s.running()
	s.stop(v)
	if o := s.get(v); len(o.Addresses) > 0 {
		s.Errorf("a machine that is off shows addresses %v", o.Addresses)
	}
	s.start(v)
}

func (s *suite) deleteRunning() {
	v := s.running()
	_, err := s.d.Delete(s.Context(), s.tok(v.id, "delete"), v.ref)
	s.refuse(err, hcp.CodeConflict, "not_stopped", "delete of a running machine")
	s.power(v, hcp.PowerRunning)
}

func (s *suite) deleteRemoves() {
	v := s.running()
	s.stop(v)
	task, err := s.d.Delete(s.Context(), s.tok(v.id, "delete"), v.ref)
	s.done(s.d, task, err, "delete")
	s.absent(v)
}

func (s *suite) deleteTwice() {
	v := s.created()
	tok := s.tok(v.id, "delete")
	task, err := s.d.Delete(s.Context(), tok, v.ref)
	s.done(s.d, task, err, "delete")
	task, err = s.d.Delete(s.Context(), tok, v.ref)
	s.done(s.d, task, err, "delete again")
	if task.Note != drivers.NoteAlreadyAbsent {
		s.Errorf("delete of nothing has note %q, want %q", task.Note, drivers.NoteAlreadyAbsent)
	}
}
