package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// sse reads one event stream.
type sse struct {
	t     testing.TB
	body  io.ReadCloser
	lines *bufio.Scanner
	raw   strings.Builder
}

type frame struct{ id, event, data string }

func (w *world) stream(path, token string, headers ...string) *sse {
	w.t.Helper()
	req, err := http.NewRequest("GET", w.url+path, nil)
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		data, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("the stream answered %d: %s", resp.StatusCode, data)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return &sse{t: w.t, body: resp.Body, lines: bufio.NewScanner(resp.Body)}
}

// next is the next frame, or false at the end of the stream. Comments are skipped.
func (s *sse) next() (frame, bool) {
	var f frame
	for s.lines.Scan() {
		line := s.lines.Text()
		s.raw.WriteString(line + "\n")
		if line == "" {
			if f != (frame{}) {
				return f, true
			}
			continue
		}
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		}
	}
	return f, false
}

// event is the next frame that is no bookmark.
func (s *sse) event() (frame, v1.Event) {
	s.t.Helper()
	for {
		f, more := s.next()
		if !more {
			s.t.Fatal("the stream ended")
		}
		if f.event == "bookmark" {
			continue
		}
		var e v1.Event
		must(s.t, json.Unmarshal([]byte(f.data), &e))
		if string(e.Type) != f.event {
			s.t.Errorf("the event %s is called %s", e.Type, f.event)
		}
		return f, e
	}
}

func (w *world) publish() {
	w.t.Helper()
	_, err := w.store.Publish(context.Background(), 1000)
	must(w.t, err)
	w.wakes.wakeEvents()
}

func TestEventsStreamAndResume(t *testing.T) {
	w := newWorld(t)
	s := w.stream("/v1/projects/demo/events", w.token)
	mark, _ := s.next()
	if mark.event != "bookmark" || mark.id == "" {
		t.Fatalf("the stream begins with %+v", mark)
	}
	var vms []hcp.VMID
	for i := range 5 {
		vms = append(vms, w.created(fmt.Sprintf("vm-%d", i)).ResourceID)
		w.publish()
	}
	var cursors []string
	for i, vm := range vms {
		f, e := s.event()
		if e.VM != vm || e.Type != hcp.EventJobQueued || e.Project != w.project.ID || e.TraceID == "" {
			t.Errorf("event %d is %+v", i, e)
		}
		cursors = append(cursors, f.id)
	}
	// Each cursor goes on behind its event, by header and by parameter.
	for i := range 4 {
		for _, again := range []*sse{
			w.stream("/v1/projects/demo/events", w.token, "Last-Event-ID", cursors[i]),
			w.stream("/v1/projects/demo/events?cursor="+url.QueryEscape(cursors[i]), w.token),
		} {
			if _, e := again.event(); e.VM != vms[i+1] {
				t.Errorf("behind event %d comes %s", i, e.VM)
			}
		}
	}
	one := w.stream("/v1/projects/demo/events?vm=vm-3&cursor="+url.QueryEscape(mark.id), w.token)
	if _, e := one.event(); e.VM != vms[3] {
		t.Errorf("the stream of one VM shows %s", e.VM)
	}
}

func TestH04_AStreamShowsItsProjectOnly(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) { d.Limits.Heartbeat = 20 * time.Millisecond })
	s := w.stream("/v1/projects/other/events", w.other)
	for i := range 20 {
		w.created(fmt.Sprintf("secret-%d", i))
	}
	w.publish()
	vm := hcp.VMID(w.ids.New(hcp.KindVM))
	w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm)},
		VM: &hcp.VM{ID: vm, Name: "mine", Org: w.otherOrg.ID, Project: w.otherProject.ID, Cluster: w.cluster.ID, Zone: w.zone.ID, Lifecycle: hcp.LifecycleActive, CreatedAt: w.clock.Now()},
		Events: []hcp.Event{{ID: hcp.EventID(w.ids.New(hcp.KindEvent)), Type: hcp.EventVMStarted, Subject: "x", Actor: "hcp", Time: w.clock.Now(),
			Org: w.otherOrg.ID, Project: w.otherProject.ID, VM: vm}}})
	w.publish()
	if _, e := s.event(); e.VM != vm {
		t.Errorf("the stream shows %+v", e)
	}
	if raw := s.raw.String(); strings.Contains(raw, "secret") || strings.Contains(raw, string(w.project.ID)) {
		t.Errorf("the stream shows somebody else's: %s", raw)
	}
	all := w.stream("/v1/ops/events", w.ops)
	all.next()
	w.created("one-more")
	w.publish()
	if _, e := all.event(); e.Project != w.project.ID {
		t.Errorf("an operator sees %+v", e)
	}
}

func TestEventCursorsThatAreNone(t *testing.T) {
	w := newWorld(t)
	s := w.stream("/v1/projects/demo/events", w.token)
	mark, _ := s.next()
	tampered := []byte(mark.id)
	tampered[5] ^= 1
	for _, path := range []string{"?cursor=rubbish", "?cursor=" + url.QueryEscape(string(tampered)), "?types=made.up", "?vm=nobody"} {
		r := w.do("GET", "/v1/projects/demo/events"+path, w.token, nil)
		if r.status != 400 && (r.status != 404 || path != "?vm=nobody") {
			t.Errorf("%s answered %d: %s", path, r.status, r.body)
		}
		w.oneCallRow(r, path, "alice", string(r.problem(t).Code))
	}
	// What was purged is told, not skipped.
	for i := range 3 {
		w.created(fmt.Sprintf("vm-%d", i))
	}
	w.publish()
	w.created("last")
	w.publish()
	_, err := w.store.PurgeEvents(context.Background(), w.clock.Now().Add(time.Hour))
	must(t, err)
	r := w.do("GET", "/v1/projects/demo/events", w.token, nil, "Last-Event-ID", mark.id)
	if p := r.problem(t); r.status != 410 || p.Code != hcp.CodeCursorExpired {
		t.Errorf("a purged cursor answered %d: %s", r.status, r.body)
	}
}

func TestAStreamEndsWithTheTokenAndWithTheRole(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) { d.Limits.Heartbeat = 20 * time.Millisecond })
	short, err := w.issuer.Issue("alice", hcp.ScopeTenant, time.Second)
	must(t, err)
	s := w.stream("/v1/projects/demo/events", short)
	for more := true; more; _, more = s.next() {
	}
	b := w.bind("eve", auth.ProjectViewer, "", w.project.ID)
	s = w.stream("/v1/projects/demo/events", w.issue("eve", hcp.ScopeTenant))
	s.next()
	if r := w.do("DELETE", "/v1/ops/role-bindings/"+b.ID, w.ops, nil); r.status != 204 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	for more := true; more; _, more = s.next() {
	}
}

// H17: a reader that does not read is cut off, and nobody else waits for it.
func TestH17_ASlowReaderIsCutOff(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) {
		d.Limits.StreamWrite, d.Limits.Heartbeat, d.Limits.Streams = 300*time.Millisecond, 20*time.Millisecond, 2
	})
	s := w.stream("/v1/projects/demo/events", w.token)
	mark, _ := s.next()
	for i := range 20 {
		w.created(fmt.Sprintf("vm-%d", i))
	}
	w.publish()
	// A connection with tiny buffers that never reads.
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.(*net.TCPConn).SetReadBuffer(1))
	fmt.Fprintf(conn, "GET /v1/projects/demo/events?cursor=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", url.QueryEscape(mark.id), w.token)
	stop := make(chan struct{})
	defer close(stop)
	go func() { // enough to fill every buffer on the way
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			vm := hcp.VMID(w.ids.New(hcp.KindVM))
			events := make([]hcp.Event, 200)
			for k := range events {
				events[k] = hcp.Event{ID: hcp.EventID(w.ids.New(hcp.KindEvent)), Type: hcp.EventVMStarted, Subject: strings.Repeat("s", 2000), Actor: "hcp", Time: w.clock.Now(),
					Org: w.org.ID, Project: w.project.ID, VM: vm}
			}
			err := w.store.Commit(context.Background(), persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm)},
				VM: &hcp.VM{ID: vm, Name: string(vm[3:]), Org: w.org.ID, Project: w.project.ID, Cluster: w.cluster.ID, Zone: w.zone.ID, Lifecycle: hcp.LifecycleActive, CreatedAt: w.clock.Now()}, Events: events})
			if err != nil {
				return
			}
			if _, err := w.store.Publish(context.Background(), 1000); err != nil {
				return
			}
			w.wakes.wakeEvents()
		}
	}()
	// The good reader gets on, and the place of the slow one is free again: a
	// third stream can begin only then.
	for range 20 {
		s.event()
	}
	go func() {
		for more := true; more; _, more = s.next() {
		}
	}()
	eventually(t, "the slow reader is gone", func() bool {
		req, err := http.NewRequest("GET", w.url+"/v1/projects/demo/events", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+w.token)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}
