package sim_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// machine is one that a test made through the driver.
type machine struct {
	tok  drivers.Token
	ref  hcp.ProviderRef
	spec drivers.Spec
}

func prepare(t testing.TB, d drivers.Driver) machine {
	t.Helper()
	m := machine{spec: newSpec("tiny-bios")}
	m.tok = drivers.Token{VM: m.spec.VM, Job: "job_x", Step: "s", Attempt: 1}
	var err error
	m.ref, err = d.Prepare(context.Background(), m.tok, m.spec, nil)
	ok(t, err)
	return m
}

func create(t testing.TB, d drivers.Driver) machine {
	t.Helper()
	m := prepare(t, d)
	task, err := d.Create(context.Background(), m.tok, m.ref, m.spec)
	ok(t, err)
	if !task.Done {
		t.Fatalf("create without delay gave task %+v", task)
	}
	return m
}

// Each row provokes the real error of a real call; nothing is made up.
func TestClassify(t *testing.T) {
	ctx := context.Background()
	type world struct {
		ctl *sim.Client
		d   drivers.Driver
		m   machine // exists, off
	}
	createNew := func(w world) error {
		m := prepare(t, w.d)
		_, err := w.d.Create(ctx, m.tok, m.ref, m.spec)
		return err
	}
	start := func(w world) error { _, err := w.d.Start(ctx, w.m.tok, w.m.ref); return err }
	get := func(w world) error { _, err := w.d.Get(ctx, w.m.ref); return err }
	fail := func(op simapi.Op, code string) func(world) {
		return func(w world) { ok(t, w.ctl.Fail(ctx, op, code, simapi.Forever)) }
	}
	for _, row := range []struct {
		name   string
		break_ func(world)
		call   func(world) error
		code   hcp.Code
		reason string
	}{
		{"503 on write", fail("clone", "503"), createNew, hcp.CodeProviderUnavailable, "unreachable"},
		{"503 on read", fail("get", "503"), get, hcp.CodeProviderUnavailable, "unreachable"},
		{"500 on write", fail("clone", "500"), createNew, hcp.CodeInternal, "provider_error"},
		{"500 on read", fail("get", "500"), get, hcp.CodeInternal, "provider_error"},
		{"403", fail("power_on", "403"), start, hcp.CodeProviderUnavailable, "forbidden"},
		{"401 twice", fail("power_on", "401"), start, hcp.CodeProviderUnavailable, "auth_failed"},
		{"423 locked", fail("power_on", "423"), start, hcp.CodeProviderUnavailable, "busy"},
		{"429 slow down", fail("power_on", "429"), start, hcp.CodeProviderUnavailable, "busy"},
		{"507 no room", fail("clone", "507"), createNew, hcp.CodeNoCapacity, "no_capacity"},
		{"task failed", func(w world) { ok(t, w.ctl.FailInTask(ctx, "clone", "no_capacity", 1)) }, func(w world) error {
			m := prepare(t, w.d)
			task, err := w.d.Create(ctx, m.tok, m.ref, m.spec)
			ok(t, err)
			st, err := w.d.Poll(ctx, task.Ref)
			ok(t, err)
			if st.State != drivers.TaskFailed {
				t.Errorf("the task is %q, want failed", st.State)
			}
			return st.Err
		}, hcp.CodeNoCapacity, "no_capacity"},
		{"machine locked by a task", func(w world) { ok(t, w.ctl.HangTask(ctx, "power_on", 1)); ok(t, start(w)) }, start, hcp.CodeProviderUnavailable, "busy"},
		{"marker removed", func(w world) { oob(t, w.ctl, simapi.OOBRequest{Verb: "unmark", VM: w.m.ref.ID}) }, start, hcp.CodeConflict, "foreign_object"},
		{"id recycled", func(w world) { oob(t, w.ctl, simapi.OOBRequest{Verb: "recycle", VM: w.m.ref.ID}) }, start, hcp.CodeConflict, "foreign_object"},
		{"machine gone", func(w world) { oob(t, w.ctl, simapi.OOBRequest{Verb: "delete", VM: w.m.ref.ID}) }, start, hcp.CodeNotFound, "not_found"},
		{"image gone", func(world) {}, func(w world) error {
			m := prepare(t, w.d)
			m.spec.Image = "windows-3.11"
			_, err := w.d.Create(ctx, m.tok, m.ref, m.spec)
			return err
		}, hcp.CodeConflict, "image_missing"},
		{"host away", func(w world) {
			down := true
			for _, h := range []string{"host-1", "host-2", "host-3", "host-4"} {
				ok(t, w.ctl.Host(ctx, simapi.HostRequest{Name: h, Down: &down}))
			}
		}, start, hcp.CodeProviderUnavailable, "unreachable"},
		{"cut before the effect", func(w world) { ok(t, w.ctl.Drop(ctx, "power_on", 1)) }, start, hcp.CodeOutcomeUnknown, "no_answer"},
		{"cut after the effect", func(w world) { ok(t, w.ctl.CommitThenDrop(ctx, "power_on", 1)) }, start, hcp.CodeOutcomeUnknown, "no_answer"},
		{"read cut", func(w world) { ok(t, w.ctl.Drop(ctx, "get", 1)) }, get, hcp.CodeProviderUnavailable, "unreachable"},
		{"cluster down", func(w world) { ok(t, w.ctl.Down(ctx, "refuse")) }, start, hcp.CodeProviderUnavailable, "unreachable"},
		{"cluster cuts writes", func(w world) { ok(t, w.ctl.Down(ctx, "cut")) }, start, hcp.CodeOutcomeUnknown, "no_answer"},
		{"cluster cuts reads", func(w world) { ok(t, w.ctl.Down(ctx, "cut")) }, get, hcp.CodeProviderUnavailable, "unreachable"},
		{"write hangs", func(w world) { ok(t, w.ctl.Hang(ctx, "power_on", 1)) }, start, hcp.CodeOutcomeUnknown, "no_answer"},
		{"read hangs", func(w world) { ok(t, w.ctl.Hang(ctx, "get", 1)) }, get, hcp.CodeProviderTimeout, "timeout"},
		{"login refused", func(w world) {
			ok(t, w.ctl.Password(ctx, "secret"))
			ok(t, w.ctl.ExpireSessions(ctx))
		}, start, hcp.CodeProviderUnavailable, "auth_failed"},
		{"login cut", func(w world) {
			ok(t, w.ctl.ExpireSessions(ctx))
			ok(t, w.ctl.Drop(ctx, "login", 1))
		}, start, hcp.CodeProviderUnavailable, "unreachable"},
		{"login hangs before a write", func(w world) {
			ok(t, w.ctl.ExpireSessions(ctx))
			ok(t, w.ctl.Hang(ctx, "login", 1))
		}, start, hcp.CodeProviderUnavailable, "unreachable"},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, ctl := peer(t, sim.ServerConfig{})
			d := open(t, url, func(c *drivers.Config) { c.CallTimeout = 300 * time.Millisecond })
			t.Cleanup(func() { ok(t, d.Close()) })
			w := world{ctl, d, create(t, d)}
			row.break_(w)
			wantError(t, row.call(w), row.code, row.reason)
		})
	}
}

func TestClassifyOfNoListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	url := "http://" + l.Addr().String()
	ok(t, l.Close())
	d := open(t, url, nil)
	m := prepare(t, d)
	_, err = d.Create(context.Background(), m.tok, m.ref, m.spec)
	wantError(t, err, hcp.CodeProviderUnavailable, "unreachable")
	_, err = d.Get(context.Background(), m.ref)
	wantError(t, err, hcp.CodeProviderUnavailable, "unreachable")
	ok(t, d.Close())
}

// A path that is served by something else must never read as "no such machine".
func TestClassifyOfAnotherServer(t *testing.T) {
	url := notASim(t)
	d := open(t, url, nil)
	m := prepare(t, d)
	_, err := d.Get(context.Background(), m.ref)
	wantError(t, err, hcp.CodeProviderUnavailable, "unreachable")
	ok(t, d.Close())
}

func wantError(t testing.TB, err error, code hcp.Code, reason string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s (%s)", code, reason)
	}
	e := hcp.AsError(err)
	if e.Code != code || e.Reason != reason {
		t.Fatalf("got %v, want %s (%s)", err, code, reason)
	}
	if e.Err == nil {
		t.Errorf("%s carries no cause for the operator", e)
	}
	if strings.Contains(e.Message, "sim") || strings.Contains(e.Message, "127.0.0.1") {
		t.Errorf("the message is not for tenants: %s", e.Message)
	}
}

func oob(t testing.TB, ctl *sim.Client, r simapi.OOBRequest) []string {
	t.Helper()
	ids, err := ctl.OOB(context.Background(), r)
	ok(t, err)
	return ids
}

func TestOpenRefusesWrongRegistrations(t *testing.T) {
	for name, cfg := range map[string]drivers.Config{
		"/endpoint":            {Endpoint: "127.0.0.1:9000"},
		"/options/color":       {Endpoint: "http://127.0.0.1:1", Options: map[string]string{"color": "red"}},
		"/options/settle_time": {Endpoint: "http://127.0.0.1:1", Options: map[string]string{"settle_time": "-1s"}},
		"/credentials":         {Endpoint: "http://127.0.0.1:1", Credentials: []byte("S3CR3T")},
	} {
		_, err := sim.Open(context.Background(), cfg)
		e := hcp.AsError(err)
		if e == nil || e.Code != hcp.CodeInvalidRequest || len(e.Fields) != 1 || e.Fields[0].Pointer != name {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: the error shows the credentials", name)
		}
	}
}
