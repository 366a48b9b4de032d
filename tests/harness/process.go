package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// builder builds the binaries once for a test process.
type builder struct {
	once sync.Once
	dir  string
	err  error
}

var built builder

// Bin is the folder with hcpd and hcpctl: HCPTEST_BIN, else built once for this test
// process. Call Main from TestMain so that the folder goes away.
func Bin() (string, error) {
	built.once.Do(func() {
		if dir := os.Getenv("HCPTEST_BIN"); dir != "" {
			built.dir = dir
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "hcp-bin-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir+string(filepath.Separator),
			"github.com/lotuscloud/hcp/cmd/hcpd", "github.com/lotuscloud/hcp/cmd/hcpctl").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build hcpd and hcpctl: %w\n%s", err, out)
		}
	})
	return built.dir, built.err
}

// Main runs the tests and removes what Bin built.
func Main(m *testing.M) int {
	code := m.Run()
	if built.dir != "" && os.Getenv("HCPTEST_BIN") == "" {
		_ = os.RemoveAll(built.dir)
	}
	return code
}

// process is one child with its output kept.
type process struct {
	cmd    *exec.Cmd
	output *output
	ended  chan struct{}
}

func spawn(env []string, name string, args ...string) (*process, error) {
	dir, err := Bin()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(filepath.Join(dir, name), args...), output: &output{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.Env = append(CleanEnv(), env...)
	// The child dies with the test process, so that an aborted run leaves nothing.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// CleanEnv is the environment without configuration of HCP: a test does not depend
// on what the caller's shell has set.
func CleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "HCP_") })
}

// kill is SIGKILL: the process learns nothing of it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks, then kills; it reports whether asking was enough.
func (p *process) stop() bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case <-p.ended:
		return true
	case <-limit.C:
		p.kill()
		return false
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaitFile returns the content of a file that the process writes once it serves.
func (p *process) awaitFile(path string) ([]byte, error) {
	var content []byte
	ended := false
	why := Poll(60*time.Second, func() string {
		ended = p.hasEnded()
		b, err := os.ReadFile(path)
		if err == nil && len(bytes.TrimSpace(b)) > 0 {
			content = b
			return ""
		}
		if ended {
			return ""
		}
		return "it runs, but is not ready"
	})
	if ended && content == nil {
		why = "it ended"
	}
	if why != "" {
		return nil, fmt.Errorf("%s did not become ready: %s:\n%s", filepath.Base(p.cmd.Path), why, p.output.tail(40))
	}
	return content, nil
}

// output keeps what a process says; it may be read while the process lives.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) tail(lines int) string {
	all := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
