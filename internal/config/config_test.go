package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, file string, env []string, args ...string) (Config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "hcp.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", path}, args...)
	}
	return Load(Default("/data"), args, env, func(string) {})
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	file := "jobs:\n  step_timeout: 1m\n  job_timeout: 1h\n  queue: 3\n"
	c, err := load(t, file, []string{"HCP_JOBS__STEP_TIMEOUT=2m", "HCP_JOBS__JOB_TIMEOUT=3h"}, "--jobs.step-timeout", "3m")
	if err != nil {
		t.Fatal(err)
	}
	if c.JobStepTimeout != 3*time.Minute || c.JobTimeout != 3*time.Hour || c.JobQueue != 3 || c.Listen != "127.0.0.1:8080" {
		t.Errorf("%+v", c)
	}
}

func TestEveryDeadlineHoldsWithoutConfiguration(t *testing.T) {
	c, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{c.JobStepTimeout, c.JobTimeout, c.UndoTimeout, c.CallTimeout, c.ProbeInterval, c.InventoryInterval} {
		if d <= 0 {
			t.Errorf("a deadline is %s", d)
		}
	}
}

func TestWrongInputIsAnsweredWithPlaceReasonAndRemedy(t *testing.T) {
	for _, c := range []struct {
		file string
		env  []string
		args []string
		want string
	}{
		{args: []string{"--listn", "x"}, want: "did you mean listen?"},
		{args: []string{"--listen", "x"}, want: "--listen is wrong: want host:port"},
		{args: []string{"--listen", "127.0.0.1:70000"}, want: "port from 0 to 65535"},
		{args: []string{"--listen", "0.0.0.0:80"}, want: "not loopback: set tls.cert"},
		{args: []string{"--admin-listen", "0.0.0.0:80"}, want: "/metrics has no authentication"},
		{args: []string{"--tls.cert", "x"}, want: "belong together"},
		{args: []string{"--libvirt", "qemu:///system"}, want: "belong to --dev"},
		{args: []string{"--jobs.queue", "0"}, want: "whole number above zero"},
		{args: []string{"--dev=maybe"}, want: "want true or false"},
		{args: []string{"serve"}, want: `no command "serve"`},
		{args: []string{"--node", "a.b"}, want: "without dots"},
		{args: []string{"--data", ""}, want: "data is empty"},
		{env: []string{"HCP_LISTENN=1"}, want: "did you mean HCP_LISTEN?"},
		{env: []string{"HCP_LOG__LEVEL=loud"}, want: "HCP_LOG__LEVEL is wrong: want one of debug"},
		{file: "jobz:\n  queue: 1\n", want: `unknown key "jobz.queue"; did you mean jobs.queue?`},
		{file: "jobs:\n  step_timeout: 30\n", want: "with its unit"},
		{file: "jobs: [\n", want: "not valid YAML"},
		{args: []string{"--config", "/does/not/exist"}, want: "does not exist"},
	} {
		_, err := load(t, c.file, c.env, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v %q: %v, want %q in it", c.args, c.env, c.file, err, c.want)
		}
	}
}

func TestHelpIsAskedForInTheUsualWays(t *testing.T) {
	for _, arg := range []string{"-h", "--help"} {
		if _, err := load(t, "", nil, arg); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestWhatIsPrintedReadsBackAsTheSame(t *testing.T) {
	want, err := load(t, "", nil, "--data", "/x", "--jobs.queue", "5", "--api.rate", "12.5", "--dev")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(&out, want); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, out.String(), nil)
	if err != nil || got != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestTheClientsVariablesAreNotMisspeltSettings(t *testing.T) {
	// HCP_SIM was read by hcpctl and by hcpd: a daemon started in the shell of a client
	// took a dead simulator for its own.
	c, err := load(t, "", []string{"HCP_SERVER=x", "HCP_TOKEN=y", "HCP_PROJECT=z", "HCP_SIM=http://127.0.0.1:1"}, "--dev")
	if err != nil || c.Sim != "" {
		t.Errorf("%v, sim %q", err, c.Sim)
	}
}
