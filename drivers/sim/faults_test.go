package sim_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

func notASim(t testing.TB) string {
	hs := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(hs.Close)
	return hs.URL
}

// eventually looks until f is true, for at most five seconds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(5 * time.Second)
	defer end.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("%s does not come true", what)
		}
	}
}

func one(t testing.TB, cfg sim.ServerConfig) (*sim.Client, drivers.Driver) {
	url, ctl := peer(t, cfg)
	d := open(t, url, func(c *drivers.Config) { c.CallTimeout = 200 * time.Millisecond })
	t.Cleanup(func() { ok(t, d.Close()) })
	return ctl, d
}

func effects(t testing.TB, ctl *sim.Client, op simapi.Op) int64 {
	t.Helper()
	c, err := ctl.Count(context.Background(), op)
	ok(t, err)
	return c.Effects
}

func TestHungCreateCompletesLateAfterRelease(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	ok(t, ctl.Hang(ctx, simapi.OpClone, 0))
	m := prepare(t, d)
	_, err := d.Create(ctx, m.tok, m.ref, m.spec)
	wantError(t, err, hcp.CodeOutcomeUnknown, "no_answer")
	if _, err := d.Get(ctx, m.ref); !hcp.IsCode(err, hcp.CodeNotFound) {
		t.Fatalf("a hung create shows already: %v", err)
	}
	n, err := ctl.Release(ctx, "")
	ok(t, err)
	if n != 1 || effects(t, ctl, simapi.OpClone) != 1 {
		t.Fatalf("release let %d calls go on, with %d effects; want 1 and 1", n, effects(t, ctl, simapi.OpClone))
	}
	o, err := d.Get(ctx, m.ref)
	ok(t, err)
	if !o.Marked(m.spec.VM) {
		t.Errorf("the late machine carries marker %q", o.VM)
	}
}

func TestHungCallThatIsStillWaitedForIsAnsweredAtRelease(t *testing.T) {
	ctx := context.Background()
	url, ctl := peer(t, sim.ServerConfig{})
	d := open(t, url, nil)
	t.Cleanup(func() { ok(t, d.Close()) })
	m := create(t, d)
	ok(t, ctl.Hang(ctx, simapi.OpPowerOn, 0))
	ok(t, ctl.Hang(ctx, simapi.OpGet, 0))
	var wg sync.WaitGroup
	var startErr, getErr error
	wg.Go(func() { _, startErr = d.Start(ctx, m.tok, m.ref) })
	wg.Go(func() { _, getErr = d.Get(ctx, m.ref) })
	eventually(t, "two calls hang", func() bool {
		s, err := ctl.Status(ctx)
		ok(t, err)
		return len(s.Running) == 2
	})
	_, err := ctl.Release(ctx, "")
	ok(t, err)
	wg.Wait()
	if startErr != nil || getErr != nil {
		t.Errorf("the released calls gave %v and %v", startErr, getErr)
	}
}

func TestLostTask(t *testing.T) {
	ctx := context.Background()
	for when, want := range map[string]int64{"after": 1, "before": 0} {
		ctl, d := one(t, sim.ServerConfig{})
		ok(t, ctl.LoseTask(ctx, simapi.OpClone, when, 1))
		m := prepare(t, d)
		task, err := d.Create(ctx, m.tok, m.ref, m.spec)
		ok(t, err)
		if task.Done {
			t.Fatal("a lost task is answered as done")
		}
		st, err := d.Poll(ctx, task.Ref)
		ok(t, err)
		if st.State != drivers.TaskLost || effects(t, ctl, simapi.OpClone) != want {
			t.Errorf("lost %s: the task is %q with %d effects, want lost and %d", when, st.State, effects(t, ctl, simapi.OpClone), want)
		}
	}
}

func TestDelayedLostTaskStillHasItsEffect(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	ok(t, ctl.Delay(ctx, simapi.OpClone, 20*time.Millisecond))
	ok(t, ctl.LoseTask(ctx, simapi.OpClone, "", 1))
	m := prepare(t, d)
	task, err := d.Create(ctx, m.tok, m.ref, m.spec)
	ok(t, err)
	st, err := d.Poll(ctx, task.Ref)
	ok(t, err)
	if st.State != drivers.TaskLost {
		t.Errorf("the task is %q", st.State)
	}
	eventually(t, "the effect", func() bool { return effects(t, ctl, simapi.OpClone) == 1 })
}

// The hypervisor says yes and does nothing: the driver must not pass that on.
func TestNoopDeleteIsNotBelieved(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	m := create(t, d)
	ok(t, ctl.CommitNoop(ctx, simapi.OpDelete, 1))
	_, err := d.Delete(ctx, m.tok, m.ref)
	if !hcp.IsCode(err, hcp.CodeVerificationFailed) {
		t.Errorf("delete gave %v, want VERIFICATION_FAILED", err)
	}
	if _, err := d.Get(ctx, m.ref); err != nil {
		t.Errorf("the machine should be there: %v", err)
	}
}

// A machine recycled while the task of its deletion runs must stay.
func TestTaskDoesNotHitAMachineThatTookTheID(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	m := create(t, d)
	ok(t, ctl.HangTask(ctx, simapi.OpDelete, 1))
	task, err := d.Delete(ctx, m.tok, m.ref)
	ok(t, err)
	oob(t, ctl, simapi.OOBRequest{Verb: "recycle", VM: m.ref.ID})
	_, err = ctl.Release(ctx, "")
	ok(t, err)
	st, err := d.Poll(ctx, task.Ref)
	ok(t, err)
	if st.State != drivers.TaskFailed || !hcp.IsCode(st.Err, hcp.CodeConflict) {
		t.Errorf("the task is %q with %v, want failed with CONFLICT", st.State, st.Err)
	}
	if o, err := d.Get(ctx, m.ref); err != nil || o.VM != "" {
		t.Errorf("the stranger is %+v, %v", o, err)
	}
}

// A create that finds its own clone still at work waits for that task.
func TestCreateAttachesToItsRunningClone(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	ok(t, ctl.HangTask(ctx, simapi.OpClone, 1))
	m := prepare(t, d)
	first, err := d.Create(ctx, m.tok, m.ref, m.spec)
	ok(t, err)
	again, err := d.Create(ctx, m.tok, m.ref, m.spec)
	ok(t, err)
	if again.Done || again.Ref != first.Ref {
		t.Errorf("the second create gave %+v, want the task of the first %+v", again, first)
	}
	if o, err := d.Get(ctx, m.ref); err != nil || !o.Locked || !o.Marked(m.spec.VM) {
		t.Errorf("while it is cloned the machine is %+v, %v; want locked and ours", o, err)
	}
	_, err = ctl.Release(ctx, "")
	ok(t, err)
	if st, err := d.Poll(ctx, first.Ref); err != nil || st.State != drivers.TaskDone {
		t.Errorf("after release the task is %+v, %v", st, err)
	}
}

func TestManyCallsShareOneSession(t *testing.T) {
	ctx := context.Background()
	url, ctl := peer(t, sim.ServerConfig{})
	ok(t, ctl.Password(ctx, "right"))
	d := open(t, url, func(c *drivers.Config) { c.Credentials = []byte(`{"user":"hcp","password":"right"}`) })
	storm := func() {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := d.Probe(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	storm()
	ok(t, ctl.ExpireSessions(ctx))
	storm()
	s, err := ctl.Sessions(ctx)
	ok(t, err)
	if s.Sessions != 1 || s.Logins != 2 {
		t.Errorf("%d sessions by %d logins, want 1 by 2", s.Sessions, s.Logins)
	}
	ok(t, d.Close())
	if s, _ := ctl.Sessions(ctx); s.Sessions != 0 {
		t.Errorf("%d sessions after close", s.Sessions)
	}
}

func TestAddressComesAfterTheBootDelay(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	ok(t, ctl.Boot(ctx, time.Hour))
	slow, fast := create(t, d), create(t, d)
	_, err := d.Start(ctx, slow.tok, slow.ref)
	ok(t, err)
	ok(t, ctl.Boot(ctx, 0))
	_, err = d.Start(ctx, fast.tok, fast.ref)
	ok(t, err)
	o, err := d.Get(ctx, slow.ref)
	ok(t, err)
	if len(o.Addresses) != 0 {
		t.Errorf("a machine that boots shows %v", o.Addresses)
	}
	o, err = d.Get(ctx, fast.ref)
	ok(t, err)
	if want := (hcp.Address{IP: "10.99.0.2", Source: "provider"}); len(o.Addresses) != 1 || o.Addresses[0] != want {
		t.Errorf("addresses are %v, want %v", o.Addresses, want)
	}
}

func TestNoRoom(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	for _, h := range []string{"host-1", "host-2", "host-3", "host-4"} {
		ok(t, ctl.Host(ctx, simapi.HostRequest{Name: h, MemoryMiB: 600}))
	}
	for range 4 {
		create(t, d)
	}
	m := prepare(t, d)
	_, err := d.Create(ctx, m.tok, m.ref, m.spec)
	wantError(t, err, hcp.CodeNoCapacity, "no_capacity")
	info, err := d.Probe(ctx)
	ok(t, err)
	for _, h := range info.Hosts {
		if h.Free.MemoryMiB != 600-512 {
			t.Errorf("host %s has %d MiB free, want 88", h.Name, h.Free.MemoryMiB)
		}
	}
}

func TestOmittedMachineIsMissingFromListsOnly(t *testing.T) {
	ctx := context.Background()
	ctl, d := one(t, sim.ServerConfig{})
	m := create(t, d)
	ok(t, ctl.Omit(ctx, string(m.spec.VM), 2))
	for i, want := range []int{0, 0, 1} {
		n := 0
		_, err := d.Inventory(ctx, func(drivers.Observation) error { n++; return nil })
		ok(t, err)
		if n != want {
			t.Errorf("inventory %d shows %d machines, want %d", i, n, want)
		}
		if _, err := d.Get(ctx, m.ref); err != nil {
			t.Error(err)
		}
	}
}

func TestInventoryPages(t *testing.T) {
	ctx := context.Background()
	url, ctl := peer(t, sim.ServerConfig{})
	oob(t, ctl, oobMany(2500))
	d := open(t, url, nil)
	t.Cleanup(func() { ok(t, d.Close()) })
	seen := map[string]bool{}
	_, err := d.Inventory(ctx, func(o drivers.Observation) error { seen[o.Ref.ID] = true; return nil })
	ok(t, err)
	if len(seen) != 2500 {
		t.Errorf("inventory shows %d machines, want 2500", len(seen))
	}
}

func TestAnUnknownNetworkIsRefused(t *testing.T) {
	// A create that named a network the cluster does not have succeeded without it.
	d, err := sim.Open(t.Context(), drivers.Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for network, want := range map[string]hcp.Code{"default": "", "nowhere": hcp.CodeFeatureNotSupported} {
		spec := drivers.Spec{VM: "vm_1", Networks: []string{network}}
		if _, err := d.Prepare(t.Context(), drivers.Token{}, spec, nil); hcp.CodeOf(err) != want {
			t.Errorf("%s: %v", network, err)
		}
	}
}
