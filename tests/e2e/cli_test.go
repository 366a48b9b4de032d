package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

// hcpctl runs one command as the tenant of P.
func hcpctl(t *testing.T, w *harness.World, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir, err := harness.Bin()
	ok(t, err)
	cmd := exec.Command(filepath.Join(dir, "hcpctl"), args...)
	cmd.Env = append(harness.CleanEnv(), "HCP_SERVER="+w.Ready.URL, "HCP_TOKEN="+w.Ready.Token, "HCP_PROJECT="+w.Ready.Project,
		"HCP_CONFIG="+filepath.Join(w.Dir, "hcpctl.yaml"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err != nil {
		exit, isExit := errors.AsType[*exec.ExitError](err)
		if !isExit {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return code, out.String(), errOut.String()
}

// I13: the command line said 0 though the job had failed.
func TestI13_ExitCodesTellTheTruth(t *testing.T) {
	w := system(t, harness.Options{})
	w.P.Made(t, "web", harness.With("power", "stopped"))
	ok(t, w.Sim.Fail(t.Context(), simapi.OpPowerOn, "400", simapi.Forever))
	code, out, errOut := hcpctl(t, w, "vm", "start", "web")
	if code != hcp.ExitJobFailed || out != "" || !strings.Contains(errOut, string(hcp.CodeInternal)) {
		t.Errorf("a start that fails: exit %d, stdout %q, stderr:\n%s", code, out, errOut)
	}
	code, out, errOut = hcpctl(t, w, "vm", "start", "web", "-o", "json")
	if code != hcp.ExitJobFailed || out != "" || !json.Valid([]byte(errOut)) || strings.Count(errOut, "\n") != 1 {
		t.Errorf("with -o json: exit %d, stdout %q, stderr:\n%s", code, out, errOut)
	}
	ok(t, w.Sim.Clear(t.Context()))
	for _, c := range []struct {
		want int
		args []string
	}{
		{hcp.ExitOK, []string{"vm", "start", "web", "-o", "json"}},
		{hcp.ExitConflict, []string{"vm", "start", "web", "-o", "json"}},
		{hcp.ExitNotFound, []string{"vm", "start", "nobody", "-o", "json"}},
		{hcp.ExitUsage, []string{"vm", "start", "--nonsense"}},
		{hcp.ExitUsage, []string{"vm", "delete", "web"}}, // no terminal to ask, no --yes
		{hcp.ExitOK, []string{"vm", "delete", "web", "--yes", "-o", "json"}},
	} {
		code, out, errOut := hcpctl(t, w, c.args...)
		if code != c.want {
			t.Errorf("hcpctl %v: exit %d, want %d\n%s%s", c.args, code, c.want, out, errOut)
		}
		if doc := out + errOut; c.args[len(c.args)-1] == "json" && (code == 0 && !json.Valid([]byte(out)) || code != 0 && !json.Valid([]byte(doc))) {
			t.Errorf("hcpctl %v: not one JSON document: stdout %q stderr %q", c.args, out, errOut)
		}
	}
}
