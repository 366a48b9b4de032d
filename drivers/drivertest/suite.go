package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/internal/ident"
)

// suite is one rule at work.
type suite struct {
	*testing.T
	Env
	d        drivers.Driver
	required bool
	attempt  int
}

func (s *suite) open() drivers.Driver {
	d := s.Env.Open(s.T)
	s.Cleanup(func() {
		if err := d.Close(); err != nil {
			s.Errorf("close the driver: %v", err)
		}
	})
	return d
}

// vm is a VM of the suite, on the provider or only thought of.
type vm struct {
	id   hcp.VMID
	ref  hcp.ProviderRef
	spec drivers.Spec
}

// tok is a fresh token of the VM.
func (s *suite) tok(id hcp.VMID, step string) drivers.Token {
	s.attempt++
	return drivers.Token{VM: id, Job: hcp.JobID(ident.Random().New(hcp.KindJob)), Step: step, Attempt: s.attempt}
}

// think makes up a VM: nothing is called.
func (s *suite) think() vm {
	s.Helper()
	id := hcp.VMID(ident.Random().New(hcp.KindVM))
	return vm{id: id, spec: drivers.Spec{
		VM: id, Name: "hcp-" + id.Short(), Project: hcp.ProjectID(ident.Random().New(hcp.KindProject)), Hostname: "t-" + id.Short(),
		VCPUs: int(s.Sizes.VCPUs), MemoryMiB: int(s.Sizes.MemoryMiB), DiskGiB: int(s.Sizes.DiskGiB),
		Image: s.Image(hcp.FirmwareBIOS), Firmware: hcp.FirmwareBIOS, Pool: s.Pool, Networks: s.Networks, SSHKeys: s.SSHKeys, UserData: s.UserData,
	}}
}

// prepared has a ref; nothing is on the provider. It is removed at the end if something came to be.
func (s *suite) prepared() vm {
	s.Helper()
	v := s.think()
	ref, err := s.d.Prepare(s.Context(), s.tok(v.id, "prepare"), v.spec, nil)
	s.must(err, "prepare")
	if ref.ID == "" {
		s.Fatal("prepare gave no id")
	}
	v.ref = ref
	s.Cleanup(func() { s.remove(v) })
	return v
}

// created is on the provider, configured and off.
func (s *suite) created() vm {
	s.Helper()
	v := s.prepared()
	s.create(s.d, v)
	return v
}

func (s *suite) create(d drivers.Driver, v vm) {
	s.Helper()
	s.must(s.createErr(d, v), "create")
	for range 20 {
		task, more, err := d.Configure(s.Context(), s.tok(v.id, "configure"), v.ref, v.spec)
		s.done(d, task, err, "configure")
		if !more {
			return
		}
	}
	s.Fatal("configure says for the 20th time that there is more to do")
}

func (s *suite) createErr(d drivers.Driver, v vm) error {
	task, err := d.Create(s.Context(), s.tok(v.id, "create"), v.ref, v.spec)
	if err != nil {
		return err
	}
	return s.wait(s.Context(), d, task)
}

// running is created and started.
func (s *suite) running() vm {
	s.Helper()
	v := s.created()
	s.start(v)
	return v
}

func (s *suite) start(v vm) {
	s.Helper()
	task, err := s.d.Start(s.Context(), s.tok(v.id, "start"), v.ref)
	s.done(s.d, task, err, "start")
	s.power(v, hcp.PowerRunning)
}

// wait polls a task to its end.
func (s *suite) wait(ctx context.Context, d drivers.Driver, task drivers.Task) error {
	if task.Done {
		return nil
	}
	var last error
	ok := s.eventually(s.Wait, func() bool {
		st, err := d.Poll(ctx, task.Ref)
		switch {
		case err != nil:
			last = err
			return false
		case st.State == drivers.TaskFailed:
			last = st.Err
			return true
		case st.State == drivers.TaskLost:
			last = errors.New("the provider lost the task")
			return true
		}
		last = nil
		return st.State == drivers.TaskDone
	})
	if !ok && last == nil {
		return errors.New("the task does not end")
	}
	return last
}

// done waits for a task that must succeed.
func (s *suite) done(d drivers.Driver, task drivers.Task, err error, what string) {
	s.Helper()
	s.must(err, what)
	if task.Done == (task.Ref != hcp.TaskRef{}) {
		s.Fatalf("%s: a task is done or has a ref to poll, never both or none: %+v", what, task)
	}
	s.must(s.wait(s.Context(), d, task), what)
}

// power waits until the machine is in that power state.
func (s *suite) power(v vm, want hcp.Power) drivers.Observation {
	s.Helper()
	var o drivers.Observation
	var err error
	if !s.eventually(s.Wait, func() bool { o, err = s.d.Get(s.Context(), v.ref); return err == nil && o.Power == want }) {
		s.Fatalf("the machine is %q (%v), want %s", o.Power, err, want)
	}
	return o
}

// get reads the machine, which must be ours.
func (s *suite) get(v vm) drivers.Observation {
	s.Helper()
	o, err := s.d.Get(s.Context(), v.ref)
	s.must(err, "get")
	if !o.Marked(v.id) {
		s.Fatalf("the machine carries marker %q, want %q", o.VM, v.id)
	}
	if o.Ref.ID != v.ref.ID {
		s.Fatalf("get of %q shows %q", v.ref.ID, o.Ref.ID)
	}
	return o
}

// remove takes away whatever of the VM is on the provider. It must not give up at
// the first trouble: a rule may have left faults behind.
func (s *suite) remove(v vm) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Wait+s.Boot)
	defer cancel()
	d := s.Env.Open(s.T)
	defer d.Close()
	var err error
	ok := s.eventually(s.Wait, func() bool {
		o, gerr := d.Get(ctx, v.ref)
		if hcp.IsCode(gerr, hcp.CodeNotFound) || gerr == nil && !o.Marked(v.id) {
			return true
		}
		if gerr != nil {
			err = gerr
			return false
		}
		var task drivers.Task
		if task, err = d.Stop(ctx, s.tok(v.id, "cleanup"), v.ref, hcp.StopForce); err == nil {
			if err = s.wait(ctx, d, task); err == nil {
				if task, err = d.Delete(ctx, s.tok(v.id, "cleanup"), v.ref); err == nil {
					err = s.wait(ctx, d, task)
				}
			}
		}
		return false
	})
	if !ok {
		s.Errorf("machine %s of %s could not be removed: %v", v.ref.ID, v.id, err)
	}
}

// must fails the rule on an error.
func (s *suite) must(err error, what string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// refuse demands an error of that code and, unless empty, that reason.
func (s *suite) refuse(err error, code hcp.Code, reason, what string) {
	s.Helper()
	if err == nil {
		s.Fatalf("%s succeeded, want %s %s", what, code, reason)
	}
	e, ok := errors.AsType[*hcp.Error](err)
	if !ok {
		s.Fatalf("%s gave %T, want *hcp.Error: %v", what, err, err)
	}
	if e.Code != code || reason != "" && e.Reason != reason {
		s.Fatalf("%s gave %s, want %s %s", what, e, code, reason)
	}
}

// absent demands a positive "not found".
func (s *suite) absent(v vm) {
	s.Helper()
	_, err := s.d.Get(s.Context(), v.ref)
	s.refuse(err, hcp.CodeNotFound, "", "get of a machine that must not exist")
	if s.Hooks.Exists != nil && s.Hooks.Exists(s.T, v.ref) {
		s.Fatal("the driver says not found, but the machine is there")
	}
	refs, err := s.d.Find(s.Context(), v.id)
	s.must(err, "find")
	if len(refs) != 0 {
		s.Fatalf("find shows %v for a machine that must not exist", refs)
	}
}

// eventually tries until f is true or the time is over.
func (s *suite) eventually(limit time.Duration, f func() bool) bool {
	if f() {
		return true
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if f() {
				return true
			}
		case <-end.C:
			return f()
		}
	}
}
