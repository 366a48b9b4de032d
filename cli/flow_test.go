package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
)

func TestCreateWaitsAndShowsTheMachine(t *testing.T) {
	s := newStub(t)
	got := newRun(t).against(s.url).hcpctl("vm", "create", "web-1", "--image", "debian-13", "--flavor", "small", "-l", "tier=web")
	got.expect(t, 0, "web-1  running  192.0.2.17", "web-1: vm.create: succeeded after 1.5s\n")
	for _, step := range []string{"web-1: prepare: succeeded\n", "web-1: work: succeeded\n"} {
		got.expect(t, 0, "", step)
	}
}

func TestJSONOfAMutationIsTheAnswerOfTheAPI(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	for _, args := range [][]string{{"vm", "start", "web-1", "-o", "json"}, {"-o", "json", "vm", "start", "web-1", "--no-wait"}, {"vm", "-ojson", "start", "web-1"}} {
		got := newRun(t).against(s.url).hcpctl(args...)
		if got.code != 0 || got.err != "" {
			t.Fatalf("%v: exit %d, stderr %q", args, got.code, got.err)
		}
		var v hcp.AcceptedView
		if err := json.Unmarshal([]byte(got.out), &v); err != nil || v.JobID == "" || v.Resource.Name != "web-1" || v.Job.ID != v.JobID {
			t.Fatalf("%v: %v %s", args, err, got.out)
		}
	}
}

func TestI13_AJobThatFailedIsNotZero(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.jobEnds = failWith(hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer"))
	got := newRun(t).against(s.url).hcpctl("vm", "start", "web-1")
	got.expect(t, hcp.ExitJobFailed, "", "Error: web-1 was not started: the hypervisor does not answer (in step work)\nCode:  PROVIDER_UNAVAILABLE (unreachable)\n")
	got.expect(t, hcp.ExitJobFailed, "", "Trace: "+stubTrace)
	if got.out != "" {
		t.Errorf("stdout: %q", got.out)
	}
	p := newRun(t).against(s.url).hcpctl("vm", "start", "web-1", "-o", "json").oneProblem(t)
	if p.Code != hcp.CodeProviderUnavailable || p.ExitCode != hcp.ExitJobFailed || p.JobID == "" || p.TraceID != stubTrace {
		t.Errorf("%+v", p)
	}
}

func TestNeedsAttentionIsExit8AndNamesWhatIsLeft(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.jobEnds = func(j *hcp.JobView) {
		failWith(hcp.Errorf(hcp.CodeVerificationFailed, "still_there", "the machine is still there"))(j)
		j.State, j.Residue = hcp.JobNeedsAttention, []hcp.ResidueView{{Kind: "vm", Name: "web-1-5f607100"}}
	}
	newRun(t).against(s.url).hcpctl("vm", "delete", "web-1", "--yes").
		expect(t, hcp.ExitNeedsAttention, "", "left over: vm web-1-5f607100")
}

func TestNoWaitGivesTheJobAndJobWaitTheSameEnd(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.jobEnds = failWith(hcp.Errorf(hcp.CodeNoCapacity, "no_room", "no cluster has room"))
	got := newRun(t).against(s.url).hcpctl("vm", "start", "web-1", "--no-wait", "-o", "name").expect(t, 0, "job_", "")
	id := strings.TrimSpace(got.out)
	newRun(t).against(s.url).hcpctl("job", "wait", id).expect(t, hcp.ExitJobFailed, "", "Code:  NO_CAPACITY (no_room)")
}

func TestWaitTimesOutWith7AndTheJobGoesOn(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.looks = 1 << 30
	got := newRun(t).against(s.url).hcpctl("vm", "start", "web-1", "--wait-timeout", "50ms")
	got.expect(t, hcp.ExitWaitTimeout, "", "Try:   hcpctl job wait job_")
	p := newRun(t).against(s.url).hcpctl("vm", "start", "web-1", "--wait-timeout", "50ms", "-o", "json").oneProblem(t)
	if p.Code != codeWaitTimeout || p.JobID == "" {
		t.Errorf("%+v", p)
	}
}

func TestInterruptDetachesAndCancelsNothing(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.looks = 1 << 30
	r := newRun(t).against(s.url)
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	done := make(chan result)
	go func() { done <- r.hcpctl("vm", "start", "web-1", "--progress", "none") }()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.jobs) == 1 && strings.Contains(strings.Join(s.log, " "), "/wait")
	})
	cancel()
	got := <-done
	got.expect(t, hcp.ExitInterrupted, "", "the job goes on: hcpctl job wait job_")
	s.mu.Lock() // the server may still be at the look that was cut
	defer s.mu.Unlock()
	for _, line := range s.log {
		if strings.Contains(line, "cancel") {
			t.Errorf("it cancelled: %s", line)
		}
	}
}

func TestInterruptBeforeTheAnswerKeepsTheKey(t *testing.T) {
	began := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}))
	defer hang.Close()
	r := newRun(t).against(hang.URL)
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	go func() { <-began; cancel() }()
	r.hcpctl("vm", "start", "web-1").expect(t, hcp.ExitInterrupted, "", "Try:   hcpctl vm start web-1 --idempotency-key ")
}

func TestSeveralNames(t *testing.T) {
	s := newStub(t)
	s.addVM("a")
	s.addVM("b")
	r := newRun(t).against(s.url)
	got := r.hcpctl("vm", "start", "a", "nope", "b")
	got.expect(t, hcp.ExitPartial, "a     running", "1 of 3 failed")
	got.expect(t, hcp.ExitPartial, "b     running", "Error: nope was not started: there is no such vm here (project demo, server ")
	r.hcpctl("vm", "start", "x", "y").expect(t, hcp.ExitNotFound, "", "all 2 failed")
	p := r.hcpctl("vm", "get", "a", "nope", "-o", "json").oneProblem(t)
	if p.Code != codePartial || len(p.Items) != 1 || p.Items[0].Name != "nope" || p.Items[0].Error.ExitCode != hcp.ExitNotFound {
		t.Errorf("%+v", p)
	}
	r.hcpctl("vm", "get", "a", "b", "-o", "name").expect(t, 0, "a\nb\n", "")
}

func TestDestructiveVerbsAsk(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	for _, args := range [][]string{{"vm", "delete", "web-1"}, {"vm", "stop", "web-1", "--force"}} {
		newRun(t).against(s.url).hcpctl(args...).expect(t, hcp.ExitUsage, "", "nothing was done")
		for _, answer := range []string{"", "\n", "no\n", "yess\n"} {
			r := newRun(t).against(s.url)
			r.term, r.stdin = terminal{in: true, err: true, width: 80}, answer
			r.hcpctl(args...).expect(t, hcp.ExitUsage, "", "in project demo on "+s.url)
		}
	}
	for _, line := range s.log {
		if !strings.HasPrefix(line, "GET ") {
			t.Errorf("a mutation left the client: %s", line)
		}
	}
	r := newRun(t).against(s.url)
	r.term, r.stdin = terminal{in: true, err: true, width: 80}, "yes\n"
	r.hcpctl("vm", "delete", "web-1").expect(t, 0, "deleted", "The disks go too")
}

func TestUpdateReadsFirst(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1", func(v *hcp.VMView) { v.Labels = map[string]string{"a": "1", "b": "2"} })
	r := newRun(t).against(s.url)
	r.hcpctl("vm", "update", "web-1", "--label", "c=3", "--remove-label", "a", "-o", "json").expect(t, 0, `"b": "2"`, "")
	if got := s.vms[0].Labels; len(got) != 2 || got["c"] != "3" {
		t.Errorf("labels %v", got)
	}
	r.hcpctl("vm", "update", "web-1", "--name", "x", "--if-match", "3").expect(t, hcp.ExitConflict, "", "PRECONDITION_FAILED")
	r.hcpctl("vm", "update", "web-1").expect(t, hcp.ExitUsage, "", "nothing to change")
	r.hcpctl("vm", "update", "web-1", "--protect", "--no-protect").expect(t, hcp.ExitUsage, "", "exclude each other")
}

func TestVMWait(t *testing.T) {
	s := newStub(t)
	v := s.addVM("web-1")
	r := newRun(t).against(s.url)
	r.hcpctl("vm", "wait", "web-1", "--for", "state=running,stopped").expect(t, 0, "stopped", "")
	r.hcpctl("vm", "wait", "web-1", "--for", "address", "--timeout", "20ms").expect(t, hcp.ExitWaitTimeout, "", "it is stopped")
	r.hcpctl("vm", "wait", "nope").expect(t, hcp.ExitNotFound, "", "--allow-missing waits for it")
	r.hcpctl("vm", "wait", "nope", "--allow-missing", "--timeout", "20ms").expect(t, hcp.ExitWaitTimeout, "", "it did not exist")
	r.hcpctl("vm", "wait", "web-1", "--for", "state=runing").expect(t, hcp.ExitUsage, "", "did you mean running")
	s.vms[0].Lifecycle, s.vms[0].State = hcp.LifecycleError, hcp.StateError
	s.vms[0].LastJob = &hcp.LastJob{Kind: hcp.JobCreate, State: hcp.JobFailed, Error: hcp.Errorf(hcp.CodeNoCapacity, "no_room", "no room").Fault()}
	r.hcpctl("vm", "wait", "web-1").expect(t, hcp.ExitJobFailed, "", "web-1 is error and will not come to state=running by itself: no room")
	s.vms[0].Lifecycle, s.vms[0].State = hcp.LifecycleDeleted, hcp.StateDeleted
	r.hcpctl("vm", "wait", string(v.ID), "--for", "deleted").expect(t, 0, string(v.ID), "")
	r.hcpctl("vm", "wait", "web-1", "--for", "deleted").expect(t, hcp.ExitNotFound, "", "its id would tell")
}

func TestServerThatIsNotOne(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if strings.HasPrefix(r.URL.Path, "/bad") {
			w.WriteHeader(http.StatusBadGateway)
		} else if r.URL.Path != "/v1/version" {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Write([]byte("<html><body>welcome</body></html>"))
	}))
	defer html.Close()
	for _, c := range []struct {
		server, says string
		code         int
	}{
		{html.URL, "is not HCP", hcp.ExitUsage},
		{html.URL + "/bad", "HCP behind it is down", hcp.ExitUnavailable},
		{"localhost:8080", "has no scheme", hcp.ExitUsage},
		{"127.0.0.1:8080", "has no scheme", hcp.ExitUsage},
		{"not a url", "is not a URL", hcp.ExitUsage},
		{"ftp://host", "must be http or https", hcp.ExitUsage},
		{"http://", "names no host", hcp.ExitUsage},
		{"http://user:pass@host", "credentials go into HCP_TOKEN", hcp.ExitUsage},
		{"http://host?x=1", "query or fragment", hcp.ExitUsage},
		{"http://127.0.0.1:1", "does not answer", hcp.ExitUnavailable},
		{"http://nowhere.invalid", "does not answer", hcp.ExitUnavailable},
	} {
		t.Run(c.server, func(t *testing.T) {
			for _, args := range [][]string{{"version"}, {"vm", "list"}} {
				got := newRun(t).against(c.server).hcpctl(args...).expect(t, c.code, "", c.says)
				if strings.Contains(got.err, "pass") && strings.Contains(got.err, "user:") || strings.Contains(got.err, "<html>") {
					t.Errorf("it shows what it must not: %s", got.err)
				}
			}
		})
	}
}

func TestWhatIsMissingIsNamedWithTheRemedy(t *testing.T) {
	r := newRun(t)
	r.hcpctl("vm", "list").expect(t, hcp.ExitNotAllowed, "", "Try:   hcpctl login --token-stdin")
	r.env[envToken] = "x"
	r.hcpctl("vm", "list").expect(t, hcp.ExitUsage, "", "give --project, set HCP_PROJECT")
	r.env[envTokenFile+"S"] = "x"
	r.hcpctl("version", "--client").expect(t, 0, "Client:", "HCP_TOKEN_FILES is not known and was ignored; did you mean HCP_TOKEN_FILE?")
	r.hcpctl("vm", "list", "--token-file", "/nope").expect(t, hcp.ExitUsage, "", "token file of --token-file cannot be read")
}

func TestFlagBeforeEnvironmentBeforeContext(t *testing.T) {
	s := newStub(t)
	r := newRun(t)
	r.hcpctl("context", "add", "stub", "--server", s.url, "--project", "demo").expect(t, 0, "stub", "")
	token := filepath.Join(t.TempDir(), "token")
	os.WriteFile(token, []byte("t\n"), 0o600)
	r.hcpctl("vm", "list", "--token-file", token).expect(t, 0, "", "There are no VMs here.")
	r.env[envProject] = "other"
	r.hcpctl("vm", "list", "--token-file", token).expect(t, hcp.ExitNotFound, "", "project other")
	r.hcpctl("--project", "demo", "vm", "list", "--token-file", token).expect(t, 0, "", "")
	r.hcpctl("vm", "--context", "stub", "list", "--token-file", token).expect(t, 0, "", "")
	r.env[envContext] = "nope"
	r.hcpctl("vm", "list").expect(t, hcp.ExitNotFound, "", "there is no context nope, as HCP_CONTEXT asks")
}

// A context's token went to whatever server was named beside it.
func TestTokenOfAContextGoesToItsServerOnly(t *testing.T) {
	seen := make(chan string, 16)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		answer(w, 200, struct{}{})
	}))
	defer other.Close()
	r := newRun(t)
	os.WriteFile(r.env[envConfig], []byte("current: a\ncontexts:\n- name: a\n  server: http://127.0.0.1:1\n  token: hush\n  project: demo\n"), 0o600)
	r.hcpctl("vm", "list", "--server", other.URL).expect(t, hcp.ExitNotAllowed, "", "there is no token")
	r.hcpctl("version", "--server", other.URL)
	close(seen)
	for auth := range seen {
		if auth != "" {
			t.Errorf("the other server saw %q", auth)
		}
	}
}

// eventually waits for a level, bounded.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(errors.New("it did not come true"))
		}
	}
}
