package libvirt_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/internal/clock"
)

// The numbers are those of the list of public reports on libvirt tools; each
// test asserts the right behaviour.

// A machine with UEFI firmware could not be deleted: its NVRAM was in the way.
func TestReport01_DeleteOfUEFIMachineLeavesNothing(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, time.Minute, one)
	s := l.spec(hcp.FirmwareUEFI)
	ref := l.create(s)
	l.start(s, ref)
	if !strings.Contains(one.sh(t, "ls", "/var/lib/libvirt/qemu/nvram"), s.Name) {
		t.Error("the started machine has no NVRAM file: it is not UEFI")
	}
	l.stop(s, ref)
	l.remove(s, ref)
	if left := one.sh(t, "ls", "/var/lib/libvirt/qemu/nvram"); strings.Contains(left, s.Name) {
		t.Errorf("NVRAM is left: %s", left)
	}
	if left := one.sh(t, "ls", "/var/log/libvirt/qemu"); strings.Contains(left, s.Name+"-serial.log") {
		t.Errorf("the console log is left: %s", left)
	}
	assertOnlyImages(t, one)
	if left := one.virsh(t, "list", "--all", "--uuid"); strings.Contains(left, ref.ID) {
		t.Error("the domain is still there")
	}
	if task := l.remove(s, ref); task.Note != drivers.NoteAlreadyAbsent {
		t.Errorf("delete again has note %q, want %q", task.Note, drivers.NoteAlreadyAbsent)
	}
}

// assertOnlyImages demands that no volume of a machine is in the pool.
func assertOnlyImages(t testing.TB, p peer) {
	t.Helper()
	for _, v := range p.volumes(t) {
		if !strings.HasPrefix(v, "image-") {
			t.Errorf("volume %s is left in the pool of %s", v, p.name)
		}
	}
}

// Creates beside each other failed with "pool has asynchronous jobs running".
func TestReport02_EightCreatesAtOnceOnOnePool(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, time.Minute, one)
	specs := make([]drivers.Spec, 8)
	refs := make([]hcp.ProviderRef, 8)
	errs := make([]error, 8)
	for i := range specs {
		specs[i] = l.spec(hcp.FirmwareBIOS)
		var err error
		refs[i], err = l.Prepare(t.Context(), tok(specs[i].VM, "prepare"), specs[i], nil)
		l.must(err, "prepare")
	}
	began := clock.Real().Now()
	var wg sync.WaitGroup
	for i := range specs {
		wg.Go(func() { _, errs[i] = l.Create(t.Context(), tok(specs[i].VM, "create"), refs[i], specs[i]) })
	}
	wg.Wait()
	t.Logf("8 creates took %s", clock.Real().Now().Sub(began).Round(time.Millisecond))
	for i, err := range errs {
		if err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	}
	for i := range specs {
		l.remove(specs[i], refs[i])
	}
	assertOnlyImages(t, one)
}

// After a first start that failed, each retry failed too with "already exists".
func TestReport03_StartWorksOnceItsNetworkIsBack(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, time.Minute, one)
	xml := "/var/lib/libvirt/lab.xml"
	one.sh(t, "sh", "-c", `echo "<network><name>lab</name></network>" >`+xml)
	one.virsh(t, "net-define", xml)
	one.virsh(t, "net-start", "lab")
	t.Cleanup(func() { one.sh(t, "sh", "-c", "virsh -q net-destroy lab; virsh -q net-undefine lab; rm -f "+xml) })
	s := l.spec(hcp.FirmwareBIOS)
	s.Networks = []string{"lab"}
	ref := l.create(s)
	one.virsh(t, "net-destroy", "lab")
	one.virsh(t, "net-undefine", "lab")

	_, err := l.Start(t.Context(), tok(s.VM, "start"), ref)
	if e := hcp.AsError(err); err == nil || e.Code != hcp.CodeConflict {
		t.Fatalf("start without its network gave %v, want CONFLICT", err)
	}
	if o := l.get(ref); o.Power != hcp.PowerStopped {
		t.Errorf("after the failed start the machine is %s", o.Power)
	}
	one.virsh(t, "net-define", xml) // defined is enough: the driver starts it
	_, err = l.Create(t.Context(), tok(s.VM, "create"), ref, s)
	l.must(err, "create again")
	l.start(s, ref)
	if o := l.get(ref); o.Power != hcp.PowerRunning || !o.Marked(s.VM) {
		t.Errorf("after the second start: %+v", o)
	}
	refs, err := l.Find(t.Context(), s.VM)
	l.must(err, "find")
	if len(refs) != 1 {
		t.Errorf("there are %d machines, want 1", len(refs))
	}
	l.stop(s, ref)
	l.remove(s, ref)
}

// All callers hung for ever once libvirtd stopped answering.
func TestReport07_StoppedLibvirtdIsBoundedAndRecovers(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, 2*time.Second, one)
	s := l.spec(hcp.FirmwareBIOS)
	{
		patient := newLab(t, time.Minute, one)
		patient.create(s)
	}
	refs, err := l.Find(t.Context(), s.VM)
	l.must(err, "find")
	ref := refs[0]
	base := runtime.NumGoroutine()
	one.signal(t, "STOP")
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			one.signal(t, "CONT")
		}
	}
	t.Cleanup(resume)
	changes := map[string]func() error{
		"start":  func() error { _, err := l.Start(t.Context(), tok(s.VM, "start"), ref); return err },
		"stop":   func() error { _, err := l.Stop(t.Context(), tok(s.VM, "stop"), ref, hcp.StopForce); return err },
		"delete": func() error { _, err := l.Delete(t.Context(), tok(s.VM, "delete"), ref); return err },
		"create": func() error { _, err := l.Create(t.Context(), tok(s.VM, "create"), ref, s); return err },
	}
	reads := map[string]func() error{
		"get":  func() error { _, err := l.Get(t.Context(), ref); return err },
		"find": func() error { _, err := l.Find(t.Context(), s.VM); return err },
	}
	for round := range 2 { // the first meets a warm connection, the second a dial
		for what, call := range changes {
			bounded(t, what, call, hcp.CodeProviderUnavailable, hcp.CodeOutcomeUnknown)
		}
		for what, call := range reads {
			bounded(t, what, call, hcp.CodeProviderUnavailable, hcp.CodeProviderTimeout)
		}
		_ = round
	}
	bounded(t, "inventory", func() error {
		unreached, err := l.Inventory(t.Context(), func(drivers.Observation) error { return nil })
		if err == nil && !slices.Contains(unreached, one.name) {
			t.Errorf("inventory does not name the host that is away: %v", unreached)
		}
		return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "named")
	}, hcp.CodeProviderUnavailable)
	resume()
	eventually(t, 20*time.Second, "the driver recovers", func() bool { _, err := l.Get(t.Context(), ref); return err == nil })
	eventually(t, 10*time.Second, "goroutines are back at their number", func() bool { return runtime.NumGoroutine() <= base+4 })
}

func bounded(t testing.TB, what string, call func() error, codes ...hcp.Code) {
	t.Helper()
	began := clock.Real().Now()
	err := call()
	took := clock.Real().Now().Sub(began)
	if !slices.Contains(codes, hcp.CodeOf(err)) {
		t.Errorf("%s gave %v, want one of %v", what, err, codes)
	}
	if took > 5*time.Second { // twice the deadline and the machine's load
		t.Errorf("%s took %s with a deadline of 2 s", what, took)
	}
}

// After a reconnect no events came: all looked well.
func TestReport08_EventsComeAfterTwoRestartsOfLibvirtd(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, 30*time.Second, one)
	s := l.spec(hcp.FirmwareBIOS)
	ref := l.create(s)
	l.start(s, ref)

	ctx, cancel := context.WithCancel(t.Context())
	hints := make(chan hcp.VMID, 1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil { // as HCP does: watch again after each break
			_ = l.Driver.(drivers.Watcher).Watch(ctx, func(vm hcp.VMID) {
				select {
				case hints <- vm:
				default:
				}
			})
			pause(ctx, 200*time.Millisecond)
		}
	})
	defer wg.Wait()
	defer cancel()
	for range 2 {
		if _, err := script("restart", one.name); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "the driver recovers", func() bool { _, err := l.Get(t.Context(), ref); return err == nil })
	}
	// the subscription is there once it says "look at everything"
	waitFor(t, hints, "", 15*time.Second)
	pause(ctx, 2*time.Second)
	for len(hints) > 0 {
		<-hints
	}
	one.virsh(t, "destroy", ref.ID)
	waitFor(t, hints, s.VM, 2*time.Second)
	var seen drivers.Observation
	_, err := l.Inventory(t.Context(), func(o drivers.Observation) error {
		if o.VM == s.VM {
			seen = o
		}
		return nil
	})
	l.must(err, "inventory")
	if seen.Power != hcp.PowerStopped {
		t.Errorf("the sweep shows %q, want stopped", seen.Power)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func waitFor(t testing.TB, hints <-chan hcp.VMID, want hcp.VMID, limit time.Duration) {
	t.Helper()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		select {
		case vm := <-hints:
			if vm == want {
				return
			}
		case <-end.C:
			t.Fatalf("no hint for %q within %s", want, limit)
		}
	}
}

// A forced stop hung when QEMU did not end, and the machine was shown as stopped while it ran.
func TestReport12_ForcedStopOfAStoppedQEMUIsBoundedAndTruthful(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, 20*time.Second, one)
	s := l.spec(hcp.FirmwareBIOS)
	ref := l.create(s)
	l.start(s, ref)
	one.sh(t, "pkill", "-STOP", "-f", "guest="+s.Name+",")
	began := clock.Real().Now()
	_, err := l.Stop(t.Context(), tok(s.VM, "stop"), ref, hcp.StopForce)
	if took := clock.Real().Now().Sub(began); took > 40*time.Second {
		t.Errorf("the forced stop took %s", took)
	}
	_, perr := script("exec", one.name, "pgrep", "-f", "guest="+s.Name+",")
	runs := perr == nil
	o := l.get(ref)
	if err == nil && (runs || o.Power != hcp.PowerStopped) {
		t.Errorf("the stop succeeded, the process runs: %v, the machine is %s", runs, o.Power)
	}
	if err != nil && !hcp.IsCode(err, hcp.CodeOutcomeUnknown) && !hcp.IsCode(err, hcp.CodeProviderUnavailable) {
		t.Errorf("the forced stop gave %v", err)
	}
	if runs {
		one.sh(t, "pkill", "-CONT", "-f", "guest="+s.Name+",")
	}
}

// The machine was deleted and its disk stayed; or a disk that another machine used went with it.
func TestReport19_DeleteTakesItsVolumesAndNoOthers(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, time.Minute, one)
	first, second := l.spec(hcp.FirmwareBIOS), l.spec(hcp.FirmwareBIOS)
	ref := l.create(first)
	shared := ""
	for _, v := range one.volumes(t) {
		if strings.Contains(v, string(first.VM)) && strings.HasSuffix(v, ".qcow2") {
			shared = v
		}
	}
	if shared == "" {
		t.Fatalf("no disk of the machine in %v", one.volumes(t))
	}
	ref2 := l.create(second)
	path := one.virsh(t, "vol-path", "--pool", "hcp", shared)
	one.virsh(t, "attach-disk", ref2.ID, path, "vdb", "--subdriver", "qcow2", "--config")
	l.remove(first, ref)
	if !slices.Contains(one.volumes(t), shared) {
		t.Error("the disk that the second machine names was deleted")
	}
	if left, err := l.Find(t.Context(), first.VM); err != nil || len(left) > 0 {
		t.Errorf("the first machine is still there: %v %v", left, err)
	}
	one.virsh(t, "detach-disk", ref2.ID, "vdb", "--config")
	l.remove(second, ref2)
	l.remove(first, ref) // now nobody names the disk
	assertOnlyImages(t, one)
}
