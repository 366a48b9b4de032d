package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (w *world) client(token string, opts ...client.Option) *client.Client {
	w.t.Helper()
	c, err := client.New(w.url, token, opts...)
	must(w.t, err)
	return c
}

func TestClientWalksATenantsDay(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	p := w.client(w.token).Project("demo")
	a, err := p.CreateVM(ctx, v1.CreateVM{Name: "caf\u00e9 1", Image: "debian", Flavor: "small", Labels: map[string]string{"a": "b"}}, client.WithKey("k"))
	must(t, err)
	again, err := p.CreateVM(ctx, v1.CreateVM{Name: "caf\u00e9 1", Image: "debian", Flavor: "small", Labels: map[string]string{"a": "b"}}, client.WithKey("k"))
	must(t, err)
	if a.Meta.Replayed || !again.Meta.Replayed || a.JobID != again.JobID || a.Meta.TraceID == "" {
		t.Errorf("%+v, then %+v", a.Meta, again.Meta)
	}
	for _, ref := range []string{"caf\u00e9 1", string(a.ResourceID), a.Resource.LRN} {
		vm, err := p.GetVM(ctx, ref)
		if err != nil || vm.ID != a.ResourceID {
			t.Errorf("%s is %s: %v", ref, vm.ID, err)
		}
	}
	vm, err := p.GetVM(ctx, string(a.ResourceID))
	must(t, err)
	name := "renamed"
	_, _, err = p.UpdateVM(ctx, string(vm.ID), v1.UpdateVM{Name: &name}, client.IfGeneration(vm.Generation))
	must(t, err)
	if _, _, err = p.UpdateVM(ctx, string(vm.ID), v1.UpdateVM{Name: &name}, client.IfGeneration(vm.Generation)); !hcp.IsCode(err, hcp.CodePreconditionFailed) {
		t.Errorf("an old generation: %v", err)
	}
	_, err = p.StopVM(ctx, "renamed", v1.StopVM{Mode: hcp.StopForce})
	must(t, err)
	if c := w.owner.last(); c.Stop.Mode != hcp.StopForce || c.Stop.Timeout != time.Minute {
		t.Errorf("the stop is %+v", c.Stop)
	}
	for i := range 12 {
		_, err := p.CreateVM(ctx, v1.CreateVM{Name: fmt.Sprint("vm-", i), Image: "debian", Flavor: "small"})
		must(t, err)
	}
	n := 0
	for _, err := range p.AllVMs(ctx, client.ListVMs{PageSize: 5}) {
		must(t, err)
		n++
	}
	if n != 13 {
		t.Errorf("walked over %d VMs", n)
	}
	plan, err := p.DryRunVM(ctx, v1.CreateVM{Name: "x", Image: "debian", Flavor: "small"})
	if err != nil || plan.Zone != "local" {
		t.Errorf("the dry run says %+v, %v", plan, err)
	}
	_, err = p.GetVM(ctx, "nobody")
	problem, is := errors.AsType[*client.Problem](err)
	if !is || problem.Code != hcp.CodeNotFound || problem.TraceID == "" || problem.RequestID == "" || hcp.CodeOf(err) != hcp.CodeNotFound {
		t.Errorf("a missing VM is %v", err)
	}
}

func TestClientWalksAnOperatorsDay(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	o := w.client(w.ops).Ops()
	_, err := o.CreateOrg(ctx, v1.CreateOrg{Name: "new"})
	must(t, err)
	p, err := o.CreateProject(ctx, v1.CreateProject{Name: "new-p", Org: "new"})
	must(t, err)
	b, err := o.CreateBinding(ctx, v1.CreateBinding{Subject: "bob", Role: "project-viewer", Project: "new-p"})
	must(t, err)
	bob := w.client(w.issue("bob", hcp.ScopeTenant))
	who, err := bob.WhoAmI(ctx)
	if err != nil || len(who.Projects) != 1 || who.Projects[0].ID != p.ID {
		t.Errorf("bob is %+v, %v", who, err)
	}
	q, err := o.SetQuota(ctx, hcp.QuotaUser, "new-p/bob", v1.SetQuota{Limits: map[hcp.Resource]hcp.Limit{hcp.ResourceVMs: hcp.LimitOf(3)}})
	if err != nil || q.ID != string(p.ID)+"/bob" || q.Lines[0].Limit != hcp.LimitOf(3) {
		t.Errorf("the quota is %+v, %v", q, err)
	}
	if q, err = o.GetQuota(ctx, hcp.QuotaUser, "new-p/bob"); err != nil || q.Lines[0].Limit != hcp.LimitOf(3) || !q.Lines[1].Limit.Unlimited {
		t.Errorf("the quota is %+v, %v", q, err)
	}
	if err := o.DeleteOrg(ctx, "new"); !hcp.IsCode(err, hcp.CodeConflict) {
		t.Errorf("an org in use: %v", err)
	}
	must(t, o.DeleteBinding(ctx, b.ID))
	must(t, o.DeleteProject(ctx, "new-p"))
	must(t, o.DeleteOrg(ctx, "new"))

	content := bytes.Repeat([]byte("image"), 1000)
	sum := sha256.Sum256(content)
	_, err = o.CreateImage(ctx, v1.CreateImage{Name: "img", Version: "1", SHA256: hex.EncodeToString(sum[:]), Firmware: hcp.FirmwareUEFI})
	must(t, err)
	img, err := o.UploadArtefact(ctx, "img", w.cluster.Name, bytes.NewReader(content), int64(len(content)))
	if err != nil || img.Artefacts[w.cluster.ID] == "" || !bytes.Equal(w.images.content, content) {
		t.Errorf("the image is %+v, %v", img, err)
	}
	cl, err := o.SetMaintenance(ctx, w.cluster.Name, true)
	if err != nil || !cl.Maintenance {
		t.Errorf("the cluster is %+v, %v", cl, err)
	}
	if _, err := o.ListOrphans(ctx, w.cluster.Name); err != nil {
		t.Error(err)
	}
	if _, err := o.Status(ctx); err != nil {
		t.Error(err)
	}
	rows, err := o.ListAudit(ctx, client.ListAudit{Action: "ops.org.write"})
	if err != nil || len(rows.Items) != 3 {
		t.Errorf("%d rows, %v", len(rows.Items), err)
	}
}

func TestClientRepeatsWhatIsSafeWithOneKey(t *testing.T) {
	w := newWorld(t)
	var keys []string
	var calls atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if calls.Add(1) < 3 {
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(503)
			fmt.Fprint(rw, `{"code":"UNAVAILABLE","detail":"not now","trace_id":"t"}`)
			return
		}
		rw.WriteHeader(202)
		fmt.Fprint(rw, `{"job_id":"job_1"}`)
	}))
	defer front.Close()
	c, err := client.New(front.URL, w.token)
	must(t, err)
	a, err := c.Project("demo").CreateVM(context.Background(), v1.CreateVM{Name: "x"})
	if err != nil || a.JobID != "job_1" || len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("%v with the keys %v", err, keys)
	}
	calls.Store(0)
	c, err = client.New(front.URL, w.token, client.WithRetries(0))
	must(t, err)
	if _, err := c.Project("demo").StartVM(context.Background(), "x"); !hcp.IsCode(err, hcp.CodeUnavailable) {
		t.Errorf("without retries: %v", err)
	}
}

func TestClientKnowsAWrongServer(t *testing.T) {
	for _, server := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://a b", "http://u:p@x", "http://x?y=z", "http://[::1"} {
		if _, err := client.New(server, ""); !hcp.IsCode(err, hcp.CodeInvalidRequest) || hcp.AsError(err).Reason != "bad_server" {
			t.Errorf("%q: %v", server, err)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>") }))
	defer page.Close()
	c, err := client.New(page.URL, "")
	must(t, err)
	if _, err := c.WhoAmI(context.Background()); hcp.AsError(err).Reason != "bad_answer" {
		t.Errorf("a web page: %v", err)
	}
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	c, err = client.New(none.URL, "")
	must(t, err)
	if _, err := c.WhoAmI(context.Background()); hcp.AsError(err).Reason != "not_hcp" || !hcp.IsCode(err, hcp.CodeNotFound) {
		t.Errorf("another server: %v", err)
	}
	addr := none.URL
	none.Close()
	c, err = client.New(addr, "", client.WithRetries(0))
	must(t, err)
	if _, err := c.WhoAmI(context.Background()); hcp.AsError(err).Reason != "unreachable" {
		t.Errorf("nobody there: %v", err)
	}
}

func TestClientWaitsForAJob(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	p := w.client(w.token).Project("demo")
	seen := 0
	go func() {
		eventually(t, "somebody waits", func() bool { return w.wakes.waiting(a.JobID) })
		w.finish(a)
		w.wakes.wakeJob(a.JobID)
	}()
	j, err := p.WaitJob(context.Background(), string(a.JobID), func(hcp.JobView) { seen++ })
	if err != nil || j.State != hcp.JobSucceeded || seen == 0 {
		t.Errorf("%s after %d looks: %v", j.State, seen, err)
	}
	b := w.created("web-2")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.WaitJob(ctx, string(b.JobID), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that is over: %v", err)
	}
}

// A stream that breaks is taken up again: no event is lost, none comes twice.
func TestClientStreamSurvivesABrokenConnection(t *testing.T) {
	w := newWorld(t)
	var cut atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, w.url+r.URL.RequestURI(), nil)
		req.Header = r.Header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		rw.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		rw.WriteHeader(resp.StatusCode)
		buf := make([]byte, 700) // cuts in the middle of events
		for reads := 0; ; reads++ {
			n, err := resp.Body.Read(buf)
			rw.Write(buf[:n])
			rw.(http.Flusher).Flush()
			if err != nil || reads == 5 && cut.Swap(false) {
				return
			}
		}
	}))
	defer front.Close()
	c, err := client.New(front.URL, w.token)
	must(t, err)
	var vms []hcp.VMID
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	got := make(chan hcp.VMID, 100)
	ended := make(chan error, 1)
	cut.Store(true)
	started := w.stream("/v1/projects/demo/events", w.token)
	mark, _ := started.next()
	stop := errors.New("enough")
	go func() {
		ended <- c.Project("demo").WatchEvents(ctx, client.WatchEvents{Cursor: mark.id}, func(r client.Received) error {
			got <- r.Event.VM
			if len(got) == 20 {
				return stop
			}
			return nil
		})
	}()
	for i := range 20 {
		vms = append(vms, w.created(fmt.Sprint("vm-", i)).ResourceID)
		w.publish()
	}
	if err := <-ended; err != stop {
		t.Fatalf("the stream ended with %v after %d events", err, len(got))
	}
	for i, vm := range vms {
		if g := <-got; g != vm {
			t.Fatalf("event %d is of %s", i, g)
		}
	}
	if cut.Load() {
		t.Error("the connection was never cut")
	}
	err = c.Project("demo").WatchEvents(ctx, client.WatchEvents{Cursor: "rubbish"}, func(client.Received) error { return nil })
	if !hcp.IsCode(err, hcp.CodeInvalidRequest) {
		t.Errorf("a bad cursor: %v", err)
	}
	if err := c.Project("nowhere").WatchEvents(ctx, client.WatchEvents{}, nil); !strings.Contains(err.Error(), "NOT_FOUND") {
		t.Errorf("a foreign project: %v", err)
	}
}
