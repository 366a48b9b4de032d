package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp/internal/clock"
)

// testNow is the time of every run in tests.
var testNow = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// stillClock tells one time; its timers are the machine's.
type stillClock struct{ clock.Clock }

func (stillClock) Now() time.Time { return testNow }

// run is one run of hcpctl in a test, with its own configuration file.
type run struct {
	env   map[string]string
	stdin string
	term  terminal
	ctx   context.Context
	clock clock.Clock
}

// result is what a run left.
type result struct {
	code     int
	out, err string
}

func newRun(t *testing.T) *run {
	t.Helper()
	return &run{env: map[string]string{envConfig: filepath.Join(t.TempDir(), "config.yaml"), "HOME": t.TempDir(), "TERM": "xterm"},
		ctx: t.Context(), clock: stillClock{clock.Real()}}
}

// against points the run at a stub server, as a tenant of the project demo.
func (r *run) against(url string) *run {
	r.env[envServer], r.env[envToken], r.env[envProject] = url, "tenant-token", "demo"
	return r
}

func (r *run) hcpctl(args ...string) result {
	var out, errOut bytes.Buffer
	p := program{clock: r.clock, term: r.term, env: environment(r.env),
		io: Stdio{In: strings.NewReader(r.stdin), Out: &out, Err: &errOut}}
	code := p.run(r.ctx, args)
	return result{code, out.String(), errOut.String()}
}

// expect checks exit code and what the streams contain; it returns the result.
func (r result) expect(t *testing.T, code int, inOut, inErr string) result {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, inOut) || !strings.Contains(r.err, inErr) {
		t.Fatalf("exit %d, want %d; stdout must contain %q, stderr %q\nstdout:\n%s\nstderr:\n%s", r.code, code, inOut, inErr, r.out, r.err)
	}
	return r
}

// oneProblem checks that stderr is exactly one line of problem JSON and stdout is empty.
func (r result) oneProblem(t *testing.T) problem {
	t.Helper()
	if r.out != "" {
		t.Fatalf("stdout is not empty: %q", r.out)
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, "\n") {
		t.Fatalf("stderr is not one line: %q", r.err)
	}
	var p problem
	if err := json.Unmarshal([]byte(r.err), &p); err != nil {
		t.Fatalf("stderr is not JSON: %v: %q", err, r.err)
	}
	if p.Code == "" || p.Detail == "" || p.Title == "" || p.ExitCode != r.code {
		t.Fatalf("the problem lacks something (exit %d): %s", r.code, r.err)
	}
	return p
}
