package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp/drivers/sim/simctl"
)

// Options of a World.
type Options struct {
	Env     map[string]string // more configuration, by environment
	Libvirt *Host             // a real hypervisor to register as well, as zone libvirt
}

// Ready is what hcpd writes once it serves.
type Ready struct {
	URL          string `json:"url"`
	AdminURL     string `json:"admin_url"`
	Token        string `json:"token"`
	OpsToken     string `json:"ops_token"`
	Project      string `json:"project"`
	OtherToken   string `json:"other_token"`
	OtherProject string `json:"other_project"`
	SimURL       string `json:"sim_url"`
}

// World is one hcpd over one simulated hypervisor, each a process of its own.
// Killing hcpd never touches the hypervisor.
type World struct {
	T     testing.TB
	Dir   string
	Ready Ready
	Sim   *simctl.Client
	// P is the tenant of project demo, Q the one of project other, Ops the operator.
	P, Q, Ops *Client

	opt     Options
	simURL  string
	hcpd    *process
	sim     *process
	calls   *callLog
	earlier []*output // of killed hcpds
}

// Start brings both up. They end with the test, after the sums were checked.
func Start(t testing.TB, opt Options) *World {
	t.Helper()
	w := &World{T: t, Dir: t.TempDir(), opt: opt, calls: &callLog{}}
	ready := filepath.Join(w.Dir, "sim.url")
	var err error
	if w.sim, err = spawn(nil, "hcpd", "sim", "--listen", "127.0.0.1:0", "--data", filepath.Join(w.Dir, "sim"), "--ready-file", ready); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sim.stop() })
	url, err := w.sim.awaitFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	w.simURL = strings.TrimSpace(string(url))
	w.Sim = simctl.NewClient(w.simURL)
	t.Cleanup(w.Sim.Close)
	w.P, w.Q, w.Ops = newClient(w, true), newClient(w, true), newClient(w, false)
	t.Cleanup(w.finish)
	w.Restart()
	return w
}

// Restart starts hcpd on the same data; Kill or Stop came before.
func (w *World) Restart() {
	w.T.Helper()
	if err := w.TryRestart(); err != nil {
		w.T.Fatal(err)
	}
}

// TryRestart is Restart for goroutines that are not the test's.
func (w *World) TryRestart() error {
	ready := filepath.Join(w.Dir, "ready.json")
	if err := os.Remove(ready); err != nil && !os.IsNotExist(err) {
		return err
	}
	args := []string{"--dev", "--data", filepath.Join(w.Dir, "data"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--ready-file", ready, "--sim", w.simURL}
	if w.opt.Libvirt != nil {
		args = append(args, "--libvirt", w.opt.Libvirt.URI)
	}
	env := []string{"HCP_LOG__LEVEL=debug", "HCP_LOG__FORMAT=json", "HCP_PROVIDER__PROBE_INTERVAL=1s", "HCP_PROVIDER__INVENTORY_INTERVAL=1s",
		"HCP_ACTORS__SCAN=1s", "HCP_API__RATE=100000", "HCP_API__BURST=100000"}
	for k, v := range w.opt.Env {
		env = append(env, k+"="+v)
	}
	p, err := spawn(env, "hcpd", args...)
	if err != nil {
		return err
	}
	if w.hcpd != nil {
		w.earlier = append(w.earlier, w.hcpd.output)
	}
	w.hcpd = p
	raw, err := p.awaitFile(ready)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &w.Ready); err != nil {
		return fmt.Errorf("the ready file is no JSON: %w", err)
	}
	w.P.aim(w.Ready.URL, w.Ready.Token, w.Ready.Project)
	w.Q.aim(w.Ready.URL, w.Ready.OtherToken, w.Ready.OtherProject)
	w.Ops.aim(w.Ready.URL, w.Ready.OpsToken, "")
	return nil
}

// Kill is kill -9 of hcpd; the hypervisor lives on.
func (w *World) Kill() { w.hcpd.kill() }

// Stop asks hcpd to end and reports whether it did within 20 seconds.
func (w *World) Stop() bool { return w.hcpd.stop() }

// Log is what the present hcpd has said.
func (w *World) Log() string { return w.hcpd.output.String() }

// Context outlives the test's own, which ends before the sums are checked.
func (w *World) Context() context.Context { return context.WithoutCancel(w.T.Context()) }

func (w *World) finish() {
	if w.hcpd == nil {
		return
	}
	if !w.T.Failed() {
		w.CheckSums()
	}
	if !w.hcpd.hasEnded() && !w.hcpd.stop() {
		w.T.Error("hcpd did not end within 20 s of SIGTERM")
	}
	if w.T.Failed() {
		w.T.Logf("hcpd said last:\n%s", w.hcpd.output.tail(60))
	}
	for _, o := range append(w.earlier, w.hcpd.output) {
		for _, sign := range []string{"panic:", "DATA RACE", "fatal error:"} {
			if strings.Contains(o.String(), sign) {
				w.T.Errorf("hcpd said %q:\n%s", sign, o.tail(60))
			}
		}
	}
}
