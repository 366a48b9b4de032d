package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the stories. Each has an hcpd --dev of its own, so that the
// faults of one are not seen by another. In a story:
//
//	HCP_SERVER HCP_TOKEN HCP_PROJECT HCP_SIM   are set for hcpctl
//	OPS_TOKEN OTHER_TOKEN OTHER_PROJECT        the other identities
//	IMAGE FLAVOR ZONE                          what is on offer
//
//	exits CODE command...   runs it and demands that exit code
//	capture VAR             keeps the last stdout, trimmed, in a variable
//	json stdout|stderr      demands exactly one JSON document, on stderr one line
//	plain                   demands that no escape byte is in either stream
func TestScripts(t *testing.T) {
	if os.Getenv("HCP_SKIP_E2E") == "1" {
		t.Skip("HCP_SKIP_E2E=1: the stories need to build and start hcpd")
	}
	bin := build(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               bin.setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "capture": capture, "json": isJSON, "plain": isPlain,
		},
	})
}

func (b binaries) setup(env *testscript.Env) error {
	d, err := b.start(env.WorkDir)
	if err != nil {
		return err
	}
	env.Defer(d.stop)
	offer := map[string]string{}
	for variable, noun := range map[string]string{"IMAGE": "image", "FLAVOR": "flavor", "ZONE": "zone"} {
		out, err := b.hcpctl(d, noun, "list", "-o", "name")
		if err != nil {
			return err
		}
		offer[variable] = strings.Split(strings.TrimSpace(out), "\n")[0]
		if offer[variable] == "" {
			return errors.New("hcpd --dev offers no " + noun)
		}
	}
	for k, v := range map[string]string{
		"PATH": b.dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME": env.WorkDir, "HCP_CONFIG": filepath.Join(env.WorkDir, "config.yaml"),
		"HCP_SERVER": d.URL, "HCP_TOKEN": d.Token, "HCP_PROJECT": d.Project, "HCP_SIM": d.SimURL, "HCP_READY": d.readyFile,
		"ADMIN_URL": d.AdminURL, "OPS_TOKEN": d.OpsToken, "OTHER_TOKEN": d.OtherToken, "OTHER_PROJECT": d.OtherProject,
		"IMAGE": offer["IMAGE"], "FLAVOR": offer["FLAVOR"], "ZONE": offer["ZONE"],
	} {
		env.Setenv(k, v)
	}
	return nil
}

// exits runs a command and demands its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s did not run: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit %d, want %d", code, want)
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture VAR")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: json stdout|stderr")
	}
	text := ts.ReadFile(args[0])
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	var v any
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
	if dec.More() {
		ts.Fatalf("%s has more than one document", args[0])
	}
	if args[0] == "stderr" && strings.Count(text, "\n") != 1 {
		ts.Fatalf("stderr is not one line")
	}
}

func isPlain(ts *testscript.TestScript, neg bool, args []string) {
	if strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), "\x1b") {
		ts.Fatalf("there is an escape byte")
	}
}
