package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/persistence"
)

// eventually polls a level until it holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		}
	}
}

// finish makes the VM's job final, as its actor would.
func (w *world) finish(a hcp.AcceptedView) {
	w.t.Helper()
	st, err := w.store.LoadVM(context.Background(), a.ResourceID)
	must(w.t, err)
	job := st.Jobs[0]
	job.State, job.FinishedAt = hcp.JobSucceeded, w.clock.Now()
	w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(a.ResourceID)}, Epoch: st.Epoch, Seq: st.Seq, Jobs: []hcp.Job{job}})
}

func (w *wakes) waiting(id hcp.JobID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs[id]) > 0
}

func TestWaitIsWokenByTheHint(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) { d.Limits.Reread = time.Hour })
	a := w.created("web")
	done := make(chan reply)
	go func() {
		done <- w.do("GET", "/v1/projects/demo/jobs/"+string(a.JobID)+"/wait?timeout=60s", w.token, nil)
	}()
	eventually(t, "somebody waits", func() bool { return w.wakes.waiting(a.JobID) })
	w.wakes.wakeJob(a.JobID) // a hint for nothing
	w.finish(a)
	w.wakes.wakeJob(a.JobID)
	r := <-done
	if r.status != 200 || !strings.Contains(string(r.body), `"state":"succeeded"`) {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
}

func TestWaitFindsOutWithoutAHint(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) { d.Limits.Reread = 10 * time.Millisecond })
	a := w.created("web")
	done := make(chan reply)
	go func() {
		done <- w.do("GET", "/v1/projects/demo/jobs/"+string(a.JobID)+"/wait?timeout=60s", w.token, nil)
	}()
	eventually(t, "somebody waits", func() bool { return w.wakes.waiting(a.JobID) })
	w.finish(a)
	if r := <-done; r.status != 200 || !strings.Contains(string(r.body), `"state":"succeeded"`) {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
}

func TestWaitEndsAtItsTimeout(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	for _, timeout := range []string{"0s", "0", "20ms"} {
		r := w.do("GET", "/v1/projects/demo/jobs/"+string(a.JobID)+"/wait?timeout="+timeout, w.token, nil)
		if r.status != 200 || !strings.Contains(string(r.body), `"state":"queued"`) {
			t.Errorf("%s answered %d: %s", timeout, r.status, r.body)
		}
		if len(w.auditOf(r)) != 0 {
			t.Error("a read left an audit row")
		}
	}
}

func TestShutdownEndsWaitsAndStreams(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	waited := make(chan reply)
	go func() {
		waited <- w.do("GET", "/v1/projects/demo/jobs/"+string(a.JobID)+"/wait?timeout=60s", w.token, nil)
	}()
	stream := w.stream("/v1/projects/demo/events", w.token)
	stream.next() // the bookmark
	eventually(t, "somebody waits", func() bool { return w.wakes.waiting(a.JobID) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(t, w.server.Shutdown(ctx))
	if r := <-waited; r.status != 200 {
		t.Errorf("the wait answered %d: %s", r.status, r.body)
	}
	if _, more := stream.next(); more {
		t.Error("the stream goes on")
	}
	if resp, err := http.Get(w.url + "/v1/version"); err == nil {
		resp.Body.Close()
		t.Error("the server still answers")
	}
}
