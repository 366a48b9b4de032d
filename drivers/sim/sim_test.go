package sim_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/drivertest"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is a simulated hypervisor in this process, behind a real socket.
func peer(t testing.TB, cfg sim.ServerConfig) (url string, ctl *sim.Client) {
	t.Helper()
	s, err := sim.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		hs.Close()
	})
	ctl = sim.NewClient(hs.URL)
	t.Cleanup(ctl.Close)
	return hs.URL, ctl
}

func open(t testing.TB, url string, change func(*drivers.Config)) drivers.Driver {
	t.Helper()
	cfg := drivers.Config{Endpoint: url, Now: clock.Real().Now}
	if change != nil {
		change(&cfg)
	}
	d, err := sim.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var opOf = map[drivertest.Call]simapi.Op{drivertest.CallCreate: simapi.OpClone, drivertest.CallStart: simapi.OpPowerOn,
	drivertest.CallStop: simapi.OpPowerOff, drivertest.CallDelete: simapi.OpDelete}

func TestDriverKeepsTheContract(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "through tasks": 30 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			url, ctl := peer(t, sim.ServerConfig{Data: t.TempDir()})
			ctx := context.Background()
			for _, op := range []simapi.Op{simapi.OpClone, simapi.OpPowerOn, simapi.OpPowerOff, simapi.OpShutdown, simapi.OpDelete} {
				ok(t, ctl.Delay(ctx, op, delay))
			}
			drivertest.Run(t, conformance(url, ctl))
		})
	}
}

func conformance(url string, ctl *sim.Client) drivertest.Env {
	ctx := context.Background()
	return drivertest.Env{
		Open: func(t testing.TB) drivers.Driver { return open(t, url, nil) },
		Image: func(f hcp.Firmware) string {
			return "tiny-" + string(f)
		},
		Require: []string{drivertest.All},
		Hooks: drivertest.Hooks{
			CutBefore: func(t testing.TB, c drivertest.Call) { ok(t, ctl.Drop(ctx, opOf[c], 1)) },
			CutAfter:  func(t testing.TB, c drivertest.Call) { ok(t, ctl.CommitThenDrop(ctx, opOf[c], 1)) },
			Stranger: func(t testing.TB, ref hcp.ProviderRef) {
				_, err := ctl.OOB(ctx, simapi.OOBRequest{Verb: "create", ID: ref.ID, VCPUs: 7})
				ok(t, err)
				t.Cleanup(func() {
					_, err := ctl.OOB(ctx, simapi.OOBRequest{Verb: "delete", VM: ref.ID})
					ok(t, err)
				})
			},
			Exists: func(t testing.TB, ref hcp.ProviderRef) bool {
				l, err := ctl.List(ctx)
				ok(t, err)
				for _, m := range l.Machines {
					if m.ID == ref.ID {
						return true
					}
				}
				return false
			},
			Count: func(t testing.TB, vm hcp.VMID) (n int) {
				l, err := ctl.List(ctx)
				ok(t, err)
				for _, m := range l.Machines {
					if m.Marker == string(vm) {
						n++
					}
				}
				return n
			},
			Down: func(t testing.TB) { ok(t, ctl.Down(ctx, "refuse")) },
			Up:   func(t testing.TB) { ok(t, ctl.Up(ctx)) },
			HostDown: func(t testing.TB, ref hcp.ProviderRef) string {
				down := true
				ok(t, ctl.Host(ctx, simapi.HostRequest{Name: ref.Host, Down: &down}))
				return ref.Host
			},
			HostUp: func(t testing.TB, host string) {
				down := false
				ok(t, ctl.Host(ctx, simapi.HostRequest{Name: host, Down: &down}))
			},
			Sessions: func(t testing.TB) int {
				a, err := ctl.Sessions(ctx)
				ok(t, err)
				return a.Sessions
			},
			Slow:    func(t testing.TB) { ok(t, ctl.Delay(ctx, simapi.OpGet, time.Minute)) },
			Fast:    func(t testing.TB) { ok(t, ctl.Delay(ctx, simapi.OpGet, 0)) },
			Secrets: []string{url, "127.0.0.1", "host-"},
		},
	}
}

func oobMany(n int) simapi.OOBRequest { return simapi.OOBRequest{Verb: "create", N: n} }
