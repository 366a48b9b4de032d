package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// world is one hcpd over one sim, each a process of its own.
type world struct {
	URL      string `json:"url"`
	AdminURL string `json:"admin_url"`
	Token    string `json:"token"`
	OpsToken string `json:"ops_token"`
	Project  string `json:"project"`
	hcpd     *exec.Cmd
}

// start builds and starts both; they end with the test.
func start(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	bin := os.Getenv("HCPD_BIN") // a build of one's own, for profiling
	if bin == "" {
		bin = filepath.Join(dir, "hcpd")
		build := exec.Command("go", "build", "-o", bin, "github.com/lotuscloud/hcp/cmd/hcpd")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build hcpd: %v\n%s", err, out)
		}
	}
	simReady := filepath.Join(dir, "sim.url")
	run(t, bin, "sim", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "sim"), "--ready-file", simReady)
	simURL := strings.TrimSpace(string(await(t, simReady)))
	ready := filepath.Join(dir, "ready.json")
	w := &world{}
	w.hcpd = run(t, bin, "--dev", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--sim", simURL, "--ready-file", ready, "--log.level", "warn", "--api.rate", "100000", "--api.burst", "100000")
	if err := json.Unmarshal(await(t, ready), w); err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s %s said:\n%s", filepath.Base(bin), args[0], out.String())
		}
	})
	return cmd
}

// await reads a file once it is there.
func await(t *testing.T, path string) []byte {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for range 1500 {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return b
		}
		<-ticks.C
	}
	t.Fatalf("%s did not appear", path)
	return nil
}

// cpu is what hcpd has used so far, user and system.
func (w *world) cpu(t *testing.T) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.hcpd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on every Linux we run on
}

// resident is hcpd's memory in MiB.
func (w *world) resident(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.hcpd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n / 1024
		}
	}
	return 0
}

// metrics sums each family by name.
func (w *world) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	res, err := http.Get(w.AdminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sums := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(res.Body, 8<<20))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		n, _ := strconv.ParseFloat(value, 64)
		sums[name] += n
	}
	return sums
}
