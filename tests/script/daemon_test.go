package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries are built once for all stories.
type binaries struct{ dir string }

func build(t *testing.T) binaries {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/hcpd", "./cmd/hcpctl")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the programs do not build: %v\n%s", err, out)
	}
	return binaries{dir}
}

// ready is what hcpd writes once it serves.
type ready struct {
	URL          string `json:"url"`
	AdminURL     string `json:"admin_url"`
	Token        string `json:"token"`
	OpsToken     string `json:"ops_token"`
	Project      string `json:"project"`
	OtherToken   string `json:"other_token"`
	OtherProject string `json:"other_project"`
	SimURL       string `json:"sim_url"`
}

// daemon is one running hcpd --dev.
type daemon struct {
	ready
	readyFile string
	cmd       *exec.Cmd
	log       *syncBuffer
	ended     chan struct{}
}

const startLimit = 60 * time.Second

func (b binaries) start(dir string) (*daemon, error) {
	d := &daemon{readyFile: filepath.Join(dir, "ready.json"), log: &syncBuffer{}, ended: make(chan struct{})}
	d.cmd = exec.Command(filepath.Join(b.dir, "hcpd"), "--dev", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0", "--ready-file", d.readyFile)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.cmd.Wait(); close(d.ended) }()
	if err := d.awaitReady(); err != nil {
		d.stop()
		return nil, fmt.Errorf("%w\n%s", err, d.log.String())
	}
	return d, nil
}

func (d *daemon) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(d.readyFile)
		if err == nil && json.Unmarshal(b, &d.ready) == nil && d.URL != "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.ended:
			return errors.New("hcpd ended before it was ready")
		case <-ctx.Done():
			return errors.New("hcpd was not ready in time")
		}
	}
}

// stop asks hcpd to end, and makes it when it does not.
func (d *daemon) stop() {
	d.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(15 * time.Second)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
		d.cmd.Process.Kill()
		<-d.ended
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// hcpctl runs a command for the set-up of a story.
func (b binaries) hcpctl(d *daemon, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(b.dir, "hcpctl"), args...)
	cmd.Env = append(os.Environ(), "HCP_CONFIG=/nonexistent/config.yaml", "HCP_SERVER="+d.URL, "HCP_TOKEN="+d.Token, "HCP_PROJECT="+d.Project)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("hcpctl %s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out), nil
}
