package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
)

// locked is a buffer that two goroutines may use.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs hcpd in this process until the test ends, and returns its ready file
// and what ends it.
func start(t *testing.T, data string, args ...string) (readyFile, func() error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	ctx, cancel := context.WithCancel(context.Background())
	var errs locked
	ended := make(chan error, 1)
	args = append([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ready-file", file, "--log.level", "warn"}, args...)
	go func() { ended <- run(ctx, args, nil, io.Discard, &errs) }()
	stop := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("hcpd did not stop within 20 s: " + errs.String())
		}
	})
	t.Cleanup(func() { _ = stop() })
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for range 2000 {
		if raw, err := os.ReadFile(file); err == nil {
			var r readyFile
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			return r, stop
		}
		select {
		case err := <-ended:
			t.Fatalf("hcpd ended: %v; %s", err, errs.String())
		case <-ticks.C:
		}
	}
	t.Fatal("hcpd was not ready within 20 s")
	return readyFile{}, nil
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestAFreshNodeServesStopsAndServesAgain(t *testing.T) {
	data := filepath.Join(t.TempDir(), "new")
	for range 2 {
		r, stop := start(t, data, "--dev")
		if r.Token == "" || r.OpsToken == "" || r.Project != "demo" || r.OtherProject != "other" || r.SimURL == "" {
			t.Errorf("ready file %+v", r)
		}
		for path, want := range map[string]string{"/livez": "ok", "/readyz": "store: ok", "/metrics": "hcp_store_commits_total"} {
			if status, body := get(t, r.AdminURL+path); status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d %q", path, status, body)
			}
		}
		if err := stop(); err != nil {
			t.Fatalf("stop: %v", err)
		}
	}
	for _, file := range []string{"admin.token", "hcp.key", "hcp.db"} {
		if info, err := os.Stat(filepath.Join(data, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info, err)
		}
	}
}

func TestADeadProviderDegradesAndIsNeverUnready(t *testing.T) {
	r, _ := start(t, filepath.Join(t.TempDir(), "new"), "--dev", "--provider.probe-interval", "50ms")
	res, err := http.Post(r.SimURL+"/control/down", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for range 500 {
		status, body := get(t, r.AdminURL+"/readyz")
		if status != 200 {
			t.Fatalf("%d %q", status, body)
		}
		if strings.Contains(body, "degraded") {
			return
		}
		<-ticks.C
	}
	t.Error("the outage is not mentioned within 10 s")
}

func TestWhatKeepsANodeFromStartingIsSaidClearly(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(dir, "used")
	_, stop := start(t, used)
	for name, c := range map[string]struct {
		args []string
		want string
		exit int
	}{
		"port taken":      {[]string{"--listen", taken.Addr().String()}, "taken by another process", hcp.ExitUnavailable},
		"data is a file":  {[]string{"--data", file}, "cannot be made", hcp.ExitUnavailable},
		"database in use": {[]string{"--data", used}, "in use by process", hcp.ExitUnavailable},
		"wrong flag":      {[]string{"--lisen", "x"}, "did you mean", hcp.ExitUsage},
		"wrong command":   {[]string{"serve"}, "no command", hcp.ExitUsage},
	} {
		args := append([]string{"--data", filepath.Join(dir, "other"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, c.args...)
		var out bytes.Buffer
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		if code := exit(err, &out); code != c.exit || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit %d, %q", name, code, out.String())
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(used, "hcp.key")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = run(t.Context(), []string{"--data", used, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, nil, io.Discard, io.Discard)
	if exit(err, &out); !strings.Contains(out.String(), "is missing") {
		t.Errorf("missing key file: %q", out.String())
	}
}
