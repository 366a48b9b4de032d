package cli

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/simd"
)

// simRun points a run at a real simulated hypervisor, with a machine of nobody in it.
func simRun(t *testing.T) *run {
	t.Helper()
	s, err := simd.NewServer(simd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.Close(); s.Close() })
	r := newRun(t)
	r.env[envSim] = server.URL
	r.hcpctl("sim", "oob", "create", "--name", "stranger", "--count", "2").expect(t, 0, "Provider ids:", "")
	return r
}

func TestEverySimControlWorks(t *testing.T) {
	r := simRun(t)
	id := strings.Fields(r.hcpctl("sim", "list", "-o", "name").out)[0]
	args := map[string][]string{
		"sim delay": {"clone", "20s"}, "sim fail": {"power_on", "500"}, "sim hang": {"clone"}, "sim lose-task": {"clone"}, "sim drop": {"power-on"},
		"sim commit-then-drop": {"clone", "--count", "2"}, "sim commit-noop": {"delete", "--count", "-1"}, "sim release": {}, "sim clear": {}, "sim down": {"--cut"},
		"sim up": {}, "sim host": {"host-9", "--vcpus", "2", "--memory-mib", "2048", "--disk-gib", "20"}, "sim boot": {"1500ms"}, "sim password": {},
		"sim expire-sessions": {}, "sim omit": {id}, "sim oob": {"start", id}, "sim list": {}, "sim count": {"power_on"}, "sim reset-counts": {},
		"sim sessions": {}, "sim status": {},
	}
	for _, cmd := range leaves(testRoot(t)) {
		path := strings.TrimPrefix(cmd.CommandPath(), "hcpctl ")
		if !strings.HasPrefix(path, "sim ") {
			continue
		}
		a, known := args[path]
		if !known {
			t.Errorf("%s is not tried", path)
		}
		got := r.hcpctl(append(append(strings.Fields(path), a...), "-o", "json")...)
		if got.code != 0 || got.err != "" || !json.Valid([]byte(got.out)) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", path, got.code, got.out, got.err)
		}
		r.hcpctl(append(strings.Fields(path), a...)...).expect(t, 0, "", "")
	}
}

func TestSimFaultsAreSet(t *testing.T) {
	r := simRun(t)
	r.hcpctl("sim", "fail", "power_on", "500", "--count", "3").expect(t, 0, "fail", "")
	r.hcpctl("sim", "delay", "clone", "20s").expect(t, 0, "clone", "")
	var s simapi.StatusAnswer
	if err := json.Unmarshal([]byte(r.hcpctl("sim", "status", "-o", "json").out), &s); err != nil {
		t.Fatal(err)
	}
	if f := s.Faults[simapi.OpPowerOn].Fail; f == nil || f.N != 3 || s.Faults[simapi.OpClone].DelayMS != 20000 {
		t.Errorf("%+v", s.Faults)
	}
	r.hcpctl("sim", "status").expect(t, 0, `Fault:  clone {"delay_ms":20000}`, "")
	r.hcpctl("sim", "clear")
	if got := r.hcpctl("sim", "status"); strings.Contains(got.out, "Fault:") {
		t.Error(got.out)
	}
}

func TestSimErrors(t *testing.T) {
	r := simRun(t)
	r.hcpctl("sim", "fail", "power_onn", "500").expect(t, hcp.ExitUsage, "", "did you mean power_on?")
	r.hcpctl("sim", "delay", "clone", "soon").expect(t, hcp.ExitUsage, "", "is not a duration")
	r.hcpctl("sim", "oob", "delete", "99999999").expect(t, hcp.ExitNotFound, "", "Try:   hcpctl sim list")
	r.hcpctl("sim", "oob", "dance", "1").expect(t, hcp.ExitUsage, "", "INVALID_REQUEST")
	r.hcpctl("sim", "fail", "clone", "nonsense").expect(t, hcp.ExitUsage, "", "nonsense")
	r.hcpctl("sim", "list", "--sim", "http://127.0.0.1:1").expect(t, hcp.ExitUnavailable, "", "does not answer")
	r.hcpctl("sim", "list", "--sim", "nope", "-o", "json").oneProblem(t)
	delete(r.env, envSim)
	r.hcpctl("sim", "list").expect(t, hcp.ExitUsage, "", "give --sim or set HCP_SIM")
}
