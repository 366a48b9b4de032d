package simd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/simd"
)

const dataEnv = "HCP_TEST_SIM_DATA"

// runAsSim makes this test binary the sim process of TestKill.
func runAsSim() bool {
	data := os.Getenv(dataEnv)
	if data == "" {
		return false
	}
	err := simd.Serve(context.Background(), simd.ServeConfig{Config: simd.Config{Data: data}, Listen: "127.0.0.1:0",
		Ready: func(url string) { fmt.Println(url) }})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
	return true
}

// process starts a sim of its own on the folder.
func process(t *testing.T, data string) (r *raw, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dataEnv+"="+data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // SIGKILL
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the sim does not start: %v", err)
	}
	r = dial(t, strings.TrimSpace(url))
	r.login()
	return r, kill
}

func TestKillLosesNothingAndTasksGoOn(t *testing.T) {
	data := t.TempDir()
	r, kill := process(t, data)
	r.want("/control/boot", `{"ms":1}`, 200, "")
	r.want("/api/clone", cloneBody, 200, `"done"`)
	r.want("/api/power_on", `{"id":"5000"}`, 200, `"done"`)
	r.want("/control/delay", `{"op":"clone","ms":400}`, 200, "")
	r.want("/control/hang", `{"op":"reset","answer":true}`, 200, "")
	r.want("/control/commit_noop", `{"op":"delete","n":3}`, 200, "")
	r.want("/api/reset", `{"id":"5000"}`, 200, `"running"`)
	var slow simapi.TaskAnswer
	r.decode("/api/clone", strings.Replace(cloneBody, "5000", "5001", 1), &slow)
	if slow.Task.State != simapi.TaskRunning {
		t.Fatalf("the slow clone is %+v", slow)
	}
	_, before := r.post("/control/list", ``)
	kill()

	r, kill = process(t, data)
	// On a slow machine the clone may have ended meanwhile; then only its lock is gone.
	cloning := fmt.Sprintf(`,"lock":{"task":"%s","op":"clone"}`, slow.Task.ID)
	if _, after := r.post("/control/list", ``); after != before && after != strings.Replace(before, cloning, "", 1) {
		t.Errorf("after the kill the world is\n%s\nbefore it was\n%s", after, before)
	}
	r.want("/control/status", ``, 200, `"noop":3`)
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-deadline.C:
			t.Fatal("the task does not go on after the kill")
		case <-tick.C:
			var a simapi.TaskAnswer
			r.decode("/api/task", `{"id":"`+slow.Task.ID+`"}`, &a)
			done = a.Task.State == simapi.TaskDone
		}
	}
	r.want("/control/release", ``, 200, `"released":1`)
	var m simapi.Machine
	r.decode("/api/get", `{"id":"5000"}`, &m)
	if m.Boots != 2 || m.Lock != nil {
		t.Errorf("the hung reset did not go on after the kill: %+v", m)
	}
	r.want("/control/count", `{"op":"clone"}`, 200, `"effects":2`)
	kill()
}

// Machines are cloned as fast as it goes and the process dies in between: what
// was answered must be there, and nothing more than what was asked.
func TestKillUnderLoad(t *testing.T) {
	data := t.TempDir()
	asked, answered := 0, 0
	for range 3 {
		r, kill := process(t, data)
		stop := time.AfterFunc(150*time.Millisecond, kill)
		for {
			asked++
			body := fmt.Sprintf(`{"id":"%d","name":"n","marker":"vm_%d","image":"debian-12","vcpus":1,"memory_mib":1,"disk_gib":1}`, asked, asked)
			status, _, err := r.try("/api/clone", body)
			if err != nil {
				break
			}
			if status != 200 {
				t.Fatalf("clone gives %d", status)
			}
			answered++
		}
		stop.Stop()
		kill()
	}
	r, _ := process(t, data)
	var l simapi.ListAnswer
	r.decode("/control/list", ``, &l)
	if n := len(l.Machines); n < answered || n > asked || answered < 10 {
		t.Errorf("%d clones were asked, %d answered, %d machines are there", asked, answered, n)
	}
}

func TestSecondProcessOnTheFolderIsRefused(t *testing.T) {
	data := t.TempDir()
	first, err := simd.NewServer(simd.Config{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simd.NewServer(simd.Config{Data: data}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second sim on the folder gives %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := simd.NewServer(simd.Config{Data: data})
	if err != nil {
		t.Fatalf("after close: %v", err)
	}
	_ = third.Close()
}

// written makes a folder with one machine and returns its journal.
func written(t *testing.T) (data, journal string) {
	t.Helper()
	data = t.TempDir()
	r := serve(t, simd.Config{Data: data})
	r.login()
	r.want("/api/clone", cloneBody, 200, `"done"`)
	files, err := filepath.Glob(filepath.Join(data, "journal-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("journals are %v, %v", files, err)
	}
	// Copied, because the server of serve still holds the folder.
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	return copied, filepath.Join(copied, filepath.Base(files[0]))
}

func TestTornLastLineIsCutOff(t *testing.T) {
	data, journal := written(t)
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, `{"m":[{"id":"6000","na`)
	_ = f.Close()
	for range 2 { // what is appended after the cut must be readable as well
		r := serve(t, simd.Config{Data: data})
		r.login()
		r.want("/api/get", `{"id":"5000"}`, 200, "vm_a")
		r.want("/api/get", `{"id":"6000"}`, 404, "")
		r.want("/api/clone", strings.Replace(cloneBody, "5000", "7000", 1), 200, "")
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
			t.Fatal(err)
		}
		data = copied
		r = serve(t, simd.Config{Data: copied})
		r.login()
		r.want("/api/get", `{"id":"7000"}`, 200, "vm_a")
		r.want("/api/delete", `{"id":"7000"}`, 200, "")
		data = t.TempDir()
		if err := os.CopyFS(data, os.DirFS(copied)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedJournalIsRefused(t *testing.T) {
	data, journal := written(t)
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, append([]byte("{rubbish}\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simd.NewServer(simd.Config{Data: data}); err == nil || !strings.Contains(err.Error(), "damaged after byte 0") {
		t.Errorf("a damaged journal gives %v", err)
	}
}

func TestUnusableFolderIsExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simd.NewServer(simd.Config{Data: filepath.Join(file, "x")}); err == nil || !strings.Contains(err.Error(), "data folder of the sim") {
		t.Errorf("got %v", err)
	}
}

func TestServeEndsWithItsContextAlthoughCallsHang(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- simd.Serve(ctx, simd.ServeConfig{Listen: "127.0.0.1:0", Ready: func(url string) { ready <- url }})
	}()
	r := dial(t, <-ready)
	r.login()
	r.want("/control/hang", `{"op":"*"}`, 200, "")
	hung := make(chan error, 1)
	go func() { _, _, err := r.try("/api/list", `{}`); hung <- err }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, s := r.post("/control/status", ""); strings.Contains(s, `"list"`) && strings.Contains(s, `"running":[{`) {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
	if err := <-hung; err == nil {
		t.Error("the hung call was answered")
	}
	if err := simd.Serve(context.Background(), simd.ServeConfig{Listen: "256.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "cannot listen") {
		t.Errorf("a wrong address gives %v", err)
	}
}
