package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lotuscloud/hcp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); go test ./cli -update writes it\n%s", path, diff)
	}
}

// aWorld has what makes tables hard: long names, wide letters, spaces, an
// unknown state, escape bytes in what tenants write.
func aWorld(t *testing.T) *stub {
	s := newStub(t)
	s.addVM("web-1", func(v *hcp.VMView) {
		v.State, v.Power = hcp.StateRunning, hcp.PowerRunning
		v.Addresses = []hcp.Address{{IP: "192.0.2.17", Source: "lease"}, {IP: "2001:db8:85a3:8d3:1319:8a2e:370:7348", Source: "agent"}}
		v.Labels = map[string]string{"tier": "web", "a": "\x1b[31mred"}
	})
	s.addVM("データベース-1", func(v *hcp.VMView) { v.Flavor.Name = "memory-optimised-large" })
	s.addVM("my old machine with a name that goes on and on, until nobody reads it any more", func(v *hcp.VMView) {
		v.State, v.Power, v.LastSeen = hcp.StateUnknown, hcp.PowerUnknown, &hcp.LastSeen{Power: hcp.PowerRunning, At: testNow.Add(-5 * time.Minute)}
	})
	s.addVM("gone", func(v *hcp.VMView) { v.Lifecycle, v.State = hcp.LifecycleDeleting, hcp.StateDeleting })
	s.addVM("broken", func(v *hcp.VMView) {
		v.Lifecycle, v.State = hcp.LifecycleError, hcp.StateError
		v.LastJob = &hcp.LastJob{ID: "job_1", Kind: hcp.JobCreate, State: hcp.JobFailed, Error: hcp.Errorf(hcp.CodeNoCapacity, "no_room", "no cluster has room for this").Fault()}
		v.Conditions = []hcp.Condition{{Type: "create_failed", Reason: "no_room", Message: "no cluster has room for this", Since: testNow.Add(-time.Hour)}}
	})
	return s
}

func TestTablesAreGolden(t *testing.T) {
	s := aWorld(t)
	for name, c := range map[string]struct {
		term terminal
		args []string
	}{
		"vm-list-pipe.txt":     {terminal{}, []string{"vm", "list"}},
		"vm-list-80.txt":       {terminal{out: true, width: 80, noColor: true}, []string{"vm", "list"}},
		"vm-list-200.txt":      {terminal{out: true, width: 200, noColor: true}, []string{"vm", "list"}},
		"vm-list-colour.txt":   {terminal{out: true, width: 200}, []string{"vm", "list"}},
		"vm-list-wide.txt":     {terminal{}, []string{"vm", "list", "-o", "wide"}},
		"vm-list-name.txt":     {terminal{}, []string{"vm", "list", "-o", "name"}},
		"vm-list-nohead.txt":   {terminal{}, []string{"vm", "list", "--no-headers"}},
		"vm-get.json":          {terminal{}, []string{"vm", "get", "broken", "-o", "json"}},
		"vm-get.yaml":          {terminal{}, []string{"vm", "get", "broken", "-o", "yaml"}},
		"vm-describe.txt":      {terminal{}, []string{"vm", "describe", "broken"}},
		"explain-error.txt":    {terminal{out: true, width: 80, noColor: true}, []string{"explain", "error"}},
		"help-exit-codes.txt":  {terminal{}, []string{"help", "exit-codes"}},
		"vm-create-help.txt":   {terminal{}, []string{"vm", "create", "--help"}},
		"context-list-dev.txt": {terminal{out: true, width: 80}, []string{"context", "add", "dev", "--server", "http://127.0.0.1:8080", "--project", "demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t).against(s.url)
			r.term = c.term
			golden(t, name, r.hcpctl(c.args...).expect(t, 0, "", "").out)
		})
	}
}

// Nothing is shortened in a pipe, and the first column of a list is what the
// next command takes (complaint 14).
func TestFirstColumnAnswersToGet(t *testing.T) {
	s := aWorld(t)
	r := newRun(t).against(s.url)
	for name := range strings.Lines(r.hcpctl("vm", "list", "-o", "name").out) {
		r.hcpctl("vm", "get", strings.TrimSpace(name)).expect(t, 0, strings.TrimSpace(name), "")
	}
}

func TestJSONLinesAndYAMLParse(t *testing.T) {
	s := aWorld(t)
	r := newRun(t).against(s.url)
	lines := strings.Split(strings.TrimSpace(r.hcpctl("vm", "list", "-o", "jsonl").out), "\n")
	if len(lines) != len(s.vms) {
		t.Fatalf("%d lines for %d VMs", len(lines), len(s.vms))
	}
	for _, l := range lines {
		var v hcp.VMView
		if err := json.Unmarshal([]byte(l), &v); err != nil || v.ID == "" {
			t.Errorf("%v: %s", err, l)
		}
	}
	var all list[hcp.VMView]
	if err := json.Unmarshal([]byte(r.hcpctl("vm", "list", "-o", "json").out), &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.vms, all.Items); diff != "" {
		t.Error(diff)
	}
}

func TestLiveProgressKeepsOneLinePerJob(t *testing.T) {
	s := newStub(t)
	s.addVM("a")
	s.addVM("b")
	r := newRun(t).against(s.url)
	r.term = terminal{err: true, width: 60}
	got := r.hcpctl("vm", "start", "a", "b").expect(t, 0, "running", "\x1b[2K")
	if strings.Contains(got.out, "\x1b") {
		t.Errorf("stdout has escapes: %q", got.out)
	}
	r.term.dumb = true
	if got := r.hcpctl("vm", "stop", "a"); strings.Contains(got.err, "\x1b") {
		t.Errorf("a dumb terminal got escapes: %q", got.err)
	}
}

func TestGeneratedDocsAreTheSameEachTime(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := GenManTree(filepath.Join(dir, "man")); err != nil {
			t.Fatal(err)
		}
		if err := GenMarkdownTree(filepath.Join(dir, "md")); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(a, "*", "*"))
	if len(files) < 100 {
		t.Fatalf("only %d pages", len(files))
	}
	for _, f := range files {
		rel, _ := filepath.Rel(a, f)
		x, _ := os.ReadFile(f)
		y, err := os.ReadFile(filepath.Join(b, rel))
		if err != nil || string(x) != string(y) {
			t.Errorf("%s differs", rel)
		}
	}
}
