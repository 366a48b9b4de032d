package drivertest

import (
	"errors"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// force tries everything that could hurt the machine under v.ref in the name of
// another VM, and demands a refusal.
func (s *suite) force(v vm) {
	s.Helper()
	try := map[string]func() (drivers.Task, error){
		"start": func() (drivers.Task, error) { return s.d.Start(s.Context(), s.tok(v.id, "start"), v.ref) },
		"graceful stop": func() (drivers.Task, error) {
			return s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, hcp.StopGraceful)
		},
		"forced stop": func() (drivers.Task, error) { return s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, hcp.StopForce) },
		"delete":      func() (drivers.Task, error) { return s.d.Delete(s.Context(), s.tok(v.id, "delete"), v.ref) },
	}
	if r, ok := s.d.(drivers.Rebooter); ok {
		try["reboot"] = func() (drivers.Task, error) { return r.Reboot(s.Context(), s.tok(v.id, "reboot"), v.ref) }
	}
	for what, do := range try {
		_, err := do()
		s.refuse(err, hcp.CodeConflict, "foreign_object", what+" of a machine that is not ours")
	}
	// A driver whose Create does it all has no call to make here and cannot notice.
	task, _, err := s.d.Configure(s.Context(), s.tok(v.id, "configure"), v.ref, v.spec)
	if err != nil {
		s.refuse(err, hcp.CodeConflict, "foreign_object", "configure of a machine that is not ours")
	} else if !task.Done {
		s.Error("configure of a machine that is not ours started a task")
	}
}

func (s *suite) foreignToken() {
	owner, thief := s.running(), s.think()
	thief.ref = owner.ref
	thief.spec.VCPUs++
	s.force(thief)
	o := s.power(owner, hcp.PowerRunning)
	if o.VCPUs != owner.spec.VCPUs || !o.Marked(owner.id) {
		s.Errorf("the machine of another was changed: %+v", o)
	}
	s.stop(owner)
	s.force(thief)
	if o := s.get(owner); o.Power != hcp.PowerStopped || o.VCPUs != owner.spec.VCPUs {
		s.Errorf("the machine of another was changed: %+v", o)
	}
}

func (s *suite) stranger() {
	s.need(s.Hooks.Stranger != nil, "hook Stranger")
	v := s.prepared()
	s.Hooks.Stranger(s.T, v.ref)
	before, err := s.d.Get(s.Context(), v.ref)
	s.must(err, "get of a stranger")
	if before.VM != "" {
		s.Fatalf("the stranger carries marker %q", before.VM)
	}
	s.force(v)
	s.refuse(s.createErr(s.d, v), hcp.CodeConflict, "ref_taken", "create under the id of a stranger")
	after, err := s.d.Get(s.Context(), v.ref)
	s.must(err, "get of a stranger")
	if after.Power != before.Power || after.Name != before.Name || after.VCPUs != before.VCPUs || after.Disks != before.Disks || after.VM != "" {
		s.Errorf("the stranger was changed from %+v to %+v", before, after)
	}
}

func (s *suite) findOurs() {
	v, other := s.created(), s.created()
	s.one(v)
	s.one(other)
}

func (s *suite) findUnknown() {
	refs, err := s.d.Find(s.Context(), s.think().id)
	s.must(err, "find of a VM that never was")
	if len(refs) != 0 {
		s.Errorf("find shows %v for a VM that never was", refs)
	}
}

func (s *suite) findHostDown() {
	s.need(s.Hooks.HostDown != nil && s.Hooks.HostUp != nil, "hooks HostDown and HostUp")
	v := s.created()
	host := s.Hooks.HostDown(s.T, s.get(v).Ref)
	s.Cleanup(func() { s.Hooks.HostUp(s.T, host) })
	refs, err := s.d.Find(s.Context(), v.id)
	if err == nil && len(refs) == 0 {
		s.Fatal("find is empty without error although a host does not answer")
	}
	if err != nil {
		s.refuse(err, hcp.CodeProviderUnavailable, "", "find with a host away")
	}
	if _, err := s.d.Get(s.Context(), v.ref); hcp.IsCode(err, hcp.CodeNotFound) {
		s.Error("get says not found although the host does not answer")
	}
}

func (s *suite) getAbsent() { s.absent(s.prepared()) }

func (s *suite) inventory() {
	v := s.created()
	var foreign vm
	if s.Hooks.Stranger != nil {
		foreign = s.prepared()
		s.Hooks.Stranger(s.T, foreign.ref)
	}
	seen := map[string]drivers.Observation{}
	unreached, err := s.d.Inventory(s.Context(), func(o drivers.Observation) error {
		if _, twice := seen[o.Ref.ID]; twice {
			s.Errorf("inventory shows %s twice", o.Ref.ID)
		}
		seen[o.Ref.ID] = o
		return nil
	})
	s.must(err, "inventory")
	if len(unreached) > 0 {
		s.Errorf("inventory did not reach %v", unreached)
	}
	o, ok := seen[v.ref.ID]
	if !ok || !o.Marked(v.id) || o.Power != hcp.PowerStopped || o.VCPUs != v.spec.VCPUs || o.MemoryMiB != v.spec.MemoryMiB || o.Name != v.spec.Name {
		s.Errorf("inventory shows our machine as %+v (there: %v)", o, ok)
	}
	if foreign.ref.ID != "" {
		if o, ok := seen[foreign.ref.ID]; !ok || o.VM != "" {
			s.Errorf("inventory shows the stranger as %+v (there: %v)", o, ok)
		}
	}
}

func (s *suite) inventoryUnreached() {
	s.need(s.Hooks.HostDown != nil && s.Hooks.HostUp != nil, "hooks HostDown and HostUp")
	v := s.created()
	host := s.Hooks.HostDown(s.T, s.get(v).Ref)
	s.Cleanup(func() { s.Hooks.HostUp(s.T, host) })
	unreached, err := s.d.Inventory(s.Context(), func(drivers.Observation) error { return nil })
	s.must(err, "inventory with a host away")
	if len(unreached) != 1 || unreached[0] != host {
		s.Errorf("inventory says that %v did not answer, want %s", unreached, host)
	}
}

func (s *suite) inventoryStops() {
	s.created()
	s.created()
	stop := errors.New("stop")
	calls := 0
	_, err := s.d.Inventory(s.Context(), func(drivers.Observation) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		s.Errorf("inventory went on for %d calls and gave %v, want the error of yield after 1", calls, err)
	}
}
