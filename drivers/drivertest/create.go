package drivertest

import (
	"slices"
	"sync"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func (s *suite) prepareHasNoEffect() {
	v := s.prepared()
	s.absent(v)
}

func (s *suite) prepareAvoidsTakenIDs() {
	v := s.think()
	var taken []string
	for range 4 {
		ref, err := s.d.Prepare(s.Context(), s.tok(v.id, "prepare"), v.spec, taken)
		s.must(err, "prepare")
		if slices.Contains(taken, ref.ID) {
			s.Fatalf("prepare gave %q although %v are taken", ref.ID, taken)
		}
		taken = append(taken, ref.ID)
	}
}

func (s *suite) createLeavesTheMarker() {
	v := s.created()
	o := s.get(v)
	if o.Power != hcp.PowerStopped {
		s.Errorf("a new machine is %q, want stopped", o.Power)
	}
	if o.Name != v.spec.Name {
		s.Errorf("the machine is called %q, want %q", o.Name, v.spec.Name)
	}
}

func (s *suite) createTwice() {
	v := s.prepared()
	tok := s.tok(v.id, "create")
	for range 2 {
		task, err := s.d.Create(s.Context(), tok, v.ref, v.spec)
		s.done(s.d, task, err, "create")
	}
	s.one(v)
}

// one demands exactly one machine with the marker.
func (s *suite) one(v vm) {
	s.Helper()
	s.get(v)
	refs, err := s.d.Find(s.Context(), v.id)
	s.must(err, "find")
	if len(refs) != 1 || refs[0].ID != v.ref.ID {
		s.Fatalf("find shows %v, want only %s", refs, v.ref.ID)
	}
	if s.Hooks.Count != nil {
		if n := s.Hooks.Count(s.T, v.id); n != 1 {
			s.Fatalf("%d machines carry the marker, want 1", n)
		}
	}
}

func (s *suite) createTaken() {
	first, second := s.created(), s.think()
	second.ref = first.ref
	second.spec.Name = first.spec.Name + "b"
	s.refuse(s.createErr(s.d, second), hcp.CodeConflict, "ref_taken", "create under an id that another VM has")
	s.one(first)
}

func (s *suite) createSizes() {
	v := s.created()
	o := s.get(v)
	if o.VCPUs != v.spec.VCPUs || o.MemoryMiB != v.spec.MemoryMiB || o.DiskGiB != v.spec.DiskGiB {
		s.Errorf("the machine has %d vCPUs, %d MiB, %d GiB; asked were %d, %d, %d", o.VCPUs, o.MemoryMiB, o.DiskGiB,
			v.spec.VCPUs, v.spec.MemoryMiB, v.spec.DiskGiB)
	}
	if o.Disks < 1 {
		s.Errorf("the machine shows %d disks", o.Disks)
	}
}

func (s *suite) createUEFI() {
	image := s.Image(hcp.FirmwareUEFI)
	s.need(image != "", "UEFI image")
	v := s.prepared()
	v.spec.Image, v.spec.Firmware = image, hcp.FirmwareUEFI
	s.create(s.d, v)
	s.start(v)
}

func (s *suite) createUnknownImage() {
	v := s.prepared()
	v.spec.Image = "no-such-image-of-hcp"
	if s.createErr(s.d, v) == nil {
		s.Fatal("create from an unknown image succeeded")
	}
	s.absent(v)
}

func (s *suite) configureTwice() {
	v := s.created()
	before := s.get(v)
	for range 2 {
		task, _, err := s.d.Configure(s.Context(), s.tok(v.id, "configure"), v.ref, v.spec)
		s.done(s.d, task, err, "configure again")
	}
	after := s.get(v)
	if after.Disks != before.Disks || after.DiskGiB != before.DiskGiB || after.VCPUs != before.VCPUs || after.MemoryMiB != before.MemoryMiB {
		s.Errorf("configure again changed the machine from %+v to %+v", before, after)
	}
}

func (s *suite) concurrentCreates() {
	vms := make([]vm, s.Creates)
	for i := range vms {
		vms[i] = s.prepared()
	}
	errs := make([]error, len(vms))
	var wg sync.WaitGroup
	toks := make([]drivers.Token, len(vms))
	for i, v := range vms {
		toks[i] = s.tok(v.id, "create")
	}
	for i, v := range vms {
		wg.Go(func() {
			task, err := s.d.Create(s.Context(), toks[i], v.ref, v.spec)
			if err == nil {
				err = s.wait(s.Context(), s.d, task)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		s.must(err, "create beside others")
		s.one(vms[i])
	}
}
