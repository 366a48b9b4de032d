package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

func TestG09_IfMatchIsEnforced(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	path := "/v1/projects/demo/vms/" + string(a.ResourceID)
	tag := w.do("GET", path, w.token, nil).header.Get("ETag")
	patch := func(headers ...string) reply {
		return w.do("PATCH", path, w.token, `{"labels":{"a":"b"}}`, append(headers, "Content-Type", "application/merge-patch+json")...)
	}
	if r := patch(); r.status != 428 || r.problem(t).Code != hcp.CodePreconditionRequired {
		t.Errorf("without If-Match: %d %s", r.status, r.body)
	}
	first := patch("If-Match", tag)
	if first.status != 200 || first.header.Get("ETag") == tag || first.header.Get("ETag") == "" {
		t.Errorf("the first answered %d with %s: %s", first.status, first.header.Get("ETag"), first.body)
	}
	if r := patch("If-Match", tag); r.status != 412 || r.problem(t).Code != hcp.CodePreconditionFailed {
		t.Errorf("the second answered %d: %s", r.status, r.body)
	}
	if r := patch("If-Match", first.header.Get("ETag")); r.status != 200 {
		t.Errorf("with the new ETag: %d %s", r.status, r.body)
	}
	if r := patch("If-Match", "rubbish"); r.status != 412 {
		t.Errorf("with rubbish: %d %s", r.status, r.body)
	}
}

// A 304 must not hide what the hypervisor shows: power and reachability change
// without a generation.
func TestG04_NotModifiedOnlyWhenNothingChanged(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.created("web")
	path := "/v1/projects/demo/vms/" + string(a.ResourceID)
	get := func(tag string) reply { return w.do("GET", path, w.token, nil, "If-None-Match", tag) }
	tag := w.do("GET", path, w.token, nil).header.Get("ETag")
	if r := get(tag); r.status != 304 || len(r.body) != 0 || r.header.Get("ETag") != tag {
		t.Errorf("unchanged: %d %s", r.status, r.body)
	}
	if r := get(`"x", W/` + tag); r.status != 304 {
		t.Errorf("in a list, weakly: %d", r.status)
	}
	must(t, w.store.PutObserved(ctx, []hcp.Observed{{VM: a.ResourceID, Cluster: w.cluster.ID, Power: hcp.PowerRunning, At: w.clock.Now()}}))
	r := get(tag)
	if r.status != 200 {
		t.Fatalf("with another power: %d", r.status)
	}
	tag = r.header.Get("ETag")
	if r := get(tag); r.status != 304 {
		t.Errorf("unchanged again: %d", r.status)
	}
	must(t, w.store.PutReachability(ctx, w.cluster.ID, hcp.Reachability{Reason: "unreachable", ChangedAt: w.clock.Now()}))
	if r := get(tag); r.status != 200 || !strings.Contains(string(r.body), `"power":"unknown"`) {
		t.Errorf("with a dead provider: %d %s", r.status, r.body)
	}
}

func TestG01_PagesHaveEveryVMOnce(t *testing.T) {
	w := newWorld(t)
	at := w.clock.Now()
	for i := range 100 {
		vm := hcp.VM{ID: hcp.VMID(w.ids.New(hcp.KindVM)), Name: fmt.Sprintf("vm-%d", i), Org: w.org.ID, Project: w.project.ID, Owner: "alice", Region: "here", Zone: w.zone.ID,
			ZoneName: "local", Cluster: w.cluster.ID, Lifecycle: hcp.LifecycleActive, Power: hcp.PowerRunning, Generation: 1, CreatedAt: at, UpdatedAt: at,
			Desired: hcp.Desired{Power: hcp.PowerRunning}, Labels: map[string]string{"half": fmt.Sprint(i % 2)}}
		w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm.ID)}, VM: &vm})
	}
	walk := func(query string) (ids []string, tokens []string) {
		token := ""
		for {
			r := w.do("GET", "/v1/projects/demo/vms?page_size=7&"+query+"&page_token="+url.QueryEscape(token), w.token, nil)
			var p v1.Page[hcp.VMView]
			r.into(t, &p)
			for _, v := range p.Items {
				ids = append(ids, string(v.ID))
			}
			if token = p.NextPageToken; token == "" {
				return ids, tokens
			}
			tokens = append(tokens, token)
		}
	}
	ids, tokens := walk("state=running")
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 100 {
		t.Errorf("%d different VMs", len(slices.Compact(ids)))
	}
	if half, _ := walk("label=half%3D1"); len(half) != 50 {
		t.Errorf("%d VMs with the label", len(half))
	}
	// A token is of its list, filter and project.
	w.bind("alice", "project-viewer", "", w.otherProject.ID)
	w.clock.move(3 * time.Second)
	tampered := []byte(tokens[0])
	tampered[len(tampered)/2] ^= 1
	for _, path := range []string{
		"/v1/projects/demo/vms?state=stopped&page_token=" + tokens[0], "/v1/projects/demo/vms?page_token=" + tokens[0],
		"/v1/projects/demo/jobs?state=running&page_token=" + tokens[0], "/v1/projects/other/vms?state=running&page_token=" + tokens[0],
		"/v1/projects/demo/vms?state=running&page_token=" + url.QueryEscape(string(tampered)),
	} {
		if r := w.do("GET", path, w.token, nil); r.status != 400 || r.problem(t).Reason != "bad_page_token" {
			t.Errorf("%s answered %d: %s", path, r.status, r.body)
		}
	}
}

func TestReferencesTakeIDNameAndLRN(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	for _, project := range []string{"demo", string(w.project.ID), hcp.LRNOf("project", string(w.project.ID))} {
		for _, vm := range []string{"web", string(a.ResourceID), a.Resource.LRN} {
			r := w.do("GET", "/v1/projects/"+url.PathEscape(project)+"/vms/"+url.PathEscape(vm), w.token, nil)
			if r.status != 200 {
				t.Errorf("%s %s answered %d: %s", project, vm, r.status, r.body)
			}
		}
	}
	body := map[string]any{"name": "by-lrn", "image": hcp.LRNOf("image", string(w.image.ID)), "flavor": string(w.flavor.ID), "zone": hcp.LRNOf("zone", string(w.zone.ID))}
	if r := w.do("POST", "/v1/projects/demo/vms", w.token, body, "Idempotency-Key", "k"); r.status != 202 {
		t.Errorf("a create by LRN answered %d: %s", r.status, r.body)
	}
	job := w.do("GET", "/v1/projects/demo/jobs/"+url.PathEscape(a.Job.LRN), w.token, nil)
	if job.status != 200 {
		t.Errorf("the job's LRN answered %d: %s", job.status, job.body)
	}
}

func TestAForeignVMReadsLikeNone(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	base := "/v1/projects/other/"
	unknown := "vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071"
	shape := func(r reply) string {
		p := r.problem(t)
		p.TraceID, p.RequestID, p.Instance = "", "", ""
		return fmt.Sprint(r.status, p)
	}
	for _, route := range []struct{ method, suffix string }{{"GET", ""}, {"DELETE", ""}, {"POST", "/start"}, {"GET", "/explain"}, {"GET", "/history"}} {
		want := shape(w.do(route.method, base+"vms/"+unknown+route.suffix, w.other, nil))
		for _, vm := range []string{string(a.ResourceID), url.PathEscape(a.Resource.LRN), "web"} {
			if got := shape(w.do(route.method, base+"vms/"+vm+route.suffix, w.other, nil)); got != want || !strings.HasPrefix(got, "404") {
				t.Errorf("%s %s%s reads %s, not %s", route.method, vm, route.suffix, got, want)
			}
		}
	}
	if r := w.do("GET", base+"jobs/"+string(a.JobID)+"/wait", w.other, nil); r.status != 404 {
		t.Errorf("a foreign job answered %d: %s", r.status, r.body)
	}
	if len(w.owner.commands()) != 1 {
		t.Error("a command went out for a foreign VM")
	}
}

func TestNoProviderDataReachesATenant(t *testing.T) {
	w := newWorld(t)
	a := w.created("web")
	ctx := context.Background()
	st, err := w.store.LoadVM(ctx, a.ResourceID)
	must(t, err)
	st.VM.Ref, st.VM.ProviderName = &hcp.ProviderRef{ID: "secret-ref", Host: "secret-host"}, "secret-pname"
	job := st.Jobs[0]
	job.Cause = "secret-cause"
	job.Steps[0].Task = &hcp.TaskRef{ID: "secret-task"}
	job.Residue = []hcp.Residue{{Kind: "vm", Name: "x", Ref: "secret-residue"}}
	w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(a.ResourceID)}, Epoch: st.Epoch, Seq: st.Seq, VM: &st.VM, Jobs: []hcp.Job{job}})
	must(t, w.store.PutObserved(ctx, []hcp.Observed{{VM: a.ResourceID, Cluster: w.cluster.ID, Power: hcp.PowerRunning, Host: "secret-host", At: w.clock.Now()}}))
	base := "/v1/projects/demo/"
	for _, path := range []string{"vms", "vms/web", "vms/web/explain", "vms/web/history", "jobs", "jobs/" + string(a.JobID), "images", "images/debian", "flavors", "zones", "quota", "quota/verify", "audit"} {
		r := w.do("GET", base+path, w.token, nil)
		if r.status != 200 || strings.Contains(string(r.body), "secret") || strings.Contains(string(r.body), string(w.cluster.ID)) {
			t.Errorf("%s answered %d: %s", path, r.status, r.body)
		}
	}
	for path, want := range map[string]string{"vms/" + string(a.ResourceID): "secret-ref", "jobs/" + string(a.JobID): "secret-cause", "vms/" + string(a.ResourceID) + "/explain": "secret-answer"} {
		if r := w.do("GET", "/v1/ops/"+path, w.ops, nil); r.status != 200 || !strings.Contains(string(r.body), want) {
			t.Errorf("an operator gets %d: %s", r.status, r.body)
		}
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	w := newWorld(t)
	before := w.store.Stats()
	r := w.do("POST", "/v1/projects/demo/vms?dry_run=true", w.token, map[string]any{"name": "web_1.prod", "image": "debian", "flavor": "small"}, "Idempotency-Key", "k")
	var d v1.DryRun
	r.into(t, &d)
	if r.status != 200 || d.Hostname != "web-1-prod" || d.Zone != "local" || len(d.Quota) != 3 || d.Quota[0].Lines[0].Used != 1 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	if after := w.store.Stats(); after.Commits != before.Commits || len(w.owner.commands()) != 0 {
		t.Error("the dry run wrote something")
	}
	if r := w.do("PUT", "/v1/ops/quotas/user/"+url.PathEscape("demo/alice"), w.ops, `{"limits":{"vms":0,"vcpus":"unlimited"}}`); r.status != 200 {
		t.Fatalf("the quota answered %d: %s", r.status, r.body)
	}
	r = w.do("POST", "/v1/projects/demo/vms?dry_run=true", w.token, w.vmBody("web"), "Idempotency-Key", "k")
	if p := r.problem(t); r.status != 429 || p.Code != hcp.CodeQuotaExceeded || p.Details["limit"] != 0.0 || p.Retryable {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	// A11: the real one is refused by the commit and leaves no half record.
	r = w.create("web", "Idempotency-Key", "k")
	if r.status != 429 {
		t.Errorf("the create answered %d: %s", r.status, r.body)
	}
	w.oneCallRow(r, "create", "alice", "QUOTA_EXCEEDED")
	if r := w.do("GET", "/v1/projects/demo/vms", w.token, nil); r.status != 200 || !strings.Contains(string(r.body), `"items":[]`) {
		t.Errorf("the list answered %d: %s", r.status, r.body)
	}
}

func TestPlacementRefusals(t *testing.T) {
	w := newWorld(t)
	ops := func(method, path, body string) {
		t.Helper()
		if r := w.do(method, "/v1/ops"+path, w.ops, body); r.status >= 300 {
			t.Fatalf("%s %s answered %d: %s", method, path, r.status, r.body)
		}
	}
	refused := func(what string, code hcp.Code, reason string) {
		t.Helper()
		r := w.create("x")
		if p := r.problem(t); p.Code != code || p.Reason != reason {
			t.Errorf("%s: answered %d: %s", what, r.status, r.body)
		}
	}
	ops("PATCH", "/images/debian", `{"min_disk_gib":100}`)
	refused("a small disk", hcp.CodeInvalidRequest, "flavor_too_small")
	ops("PATCH", "/images/debian", `{"min_disk_gib":1,"min_memory_mib":4096}`)
	refused("little memory", hcp.CodeInvalidRequest, "flavor_too_small")
	ops("PATCH", "/images/debian", `{"min_memory_mib":0,"state":"retired"}`)
	refused("a retired image", hcp.CodeConflict, "image_retired")
	ops("PATCH", "/images/debian", `{"state":"deprecated"}`)
	w.created("deprecated-is-good")
	ops("PATCH", "/flavors/small", `{"retired":true}`)
	refused("a retired flavor", hcp.CodeConflict, "flavor_retired")
	ops("PATCH", "/flavors/small", `{"retired":false}`)
	ops("POST", "/clusters/cl-secret-name/maintenance", `{"enabled":true}`)
	refused("maintenance", hcp.CodeNoCapacity, "maintenance")
	ops("POST", "/clusters/cl-secret-name/maintenance", `{"enabled":false}`)
	ops("PUT", "/zones/local", `{"name":"local","region":"here"}`)
	refused("an empty zone", hcp.CodeNoCapacity, "empty_zone")
}

// The claim is refused by the owner when the picture was old: another cluster
// gets the VM, and only then.
func TestAFullClusterIsPassedOver(t *testing.T) {
	w := newWorld(t)
	second := w.cluster
	second.ID, second.Name = hcp.ClusterID(w.ids.New(hcp.KindCluster)), "second"
	w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(second.ID)}, Cluster: &second,
		Capacity: []persistence.CapacityLimit{{Cluster: second.ID, Limit: hcp.Sizes{VCPUs: 1000, MemoryMiB: 1000000, DiskGiB: 100000}}}})
	must(t, w.store.PutReachability(context.Background(), second.ID, hcp.Reachability{Reachable: true, ChangedAt: w.clock.Now()}))
	for _, r := range []reply{
		w.do("PUT", "/v1/ops/zones/local", w.ops, map[string]any{"name": "local", "region": "here", "members": []any{map[string]any{"cluster": w.cluster.ID}, map[string]any{"cluster": "second"}}}),
		w.do("PUT", "/v1/ops/images/debian/artefacts/second", w.ops, `{"artefact":"here-too"}`),
	} {
		if r.status != 200 {
			t.Fatalf("answered %d: %s", r.status, r.body)
		}
	}
	first := hcp.ClusterID("")
	w.owner.refuse = func(c hcp.Command) (hcp.Answer, error, bool) {
		if first == "" {
			first = c.Cluster
			return hcp.Answer{Fault: hcp.Errorf(hcp.CodeNoCapacity, "no_room", "full").Wire()}, nil, true
		}
		return hcp.Answer{}, nil, false
	}
	r := w.create("web")
	all := w.owner.commands()
	if r.status != 202 || len(all) != 2 || all[0].Cluster == all[1].Cluster || all[0].VM != all[1].VM || all[1].Create.VM.Image.Artefact == all[0].Create.VM.Image.Artefact {
		t.Errorf("answered %d after %d commands: %s", r.status, len(all), r.body)
	}
	// No answer is no refusal: the first owner may have accepted.
	w.owner.refuse = func(hcp.Command) (hcp.Answer, error, bool) {
		return hcp.Answer{}, hcp.Errorf(hcp.CodeUnavailable, "timeout", "no answer"), true
	}
	r = w.create("web-2")
	if len(w.owner.commands()) != 3 || r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("answered %d after %d commands: %s", r.status, len(w.owner.commands()), r.body)
	}
	w.oneCallRow(r, "create", "alice", "UNAVAILABLE")
}

func TestUserDataIsSealedAndNeverShown(t *testing.T) {
	w := newWorld(t)
	raw := string([]byte{0, 0xff, 0xfe, 'S', '3', 'C'})
	for name, body := range map[string]map[string]any{
		"text":  {"user_data": "\ufeff#cloud-config S3C"},
		"bytes": {"user_data_base64": "AP/+UzND"},
	} {
		b := w.vmBody(name)
		for k, v := range body {
			b[k] = v
		}
		r := w.do("POST", "/v1/projects/demo/vms", w.token, b, "Idempotency-Key", name)
		sealed := w.owner.last().Create.VM
		plain, err := plainSealer{}.Open(sealed.UserData, hcp.UserDataContext(sealed.ID))
		must(t, err)
		want := raw
		if name == "text" {
			want = "\ufeff#cloud-config S3C"
		}
		if r.status != 202 || string(plain) != want {
			t.Errorf("%s: answered %d, sealed %q", name, r.status, plain)
		}
		if strings.Contains(string(r.body), "S3C") || strings.Contains(string(r.body), "user_data") {
			t.Errorf("the answer shows user data: %s", r.body)
		}
	}
	if strings.Contains(w.logs.String(), "S3C") {
		t.Error("the log shows user data")
	}
}

func TestCommanderErrorsBecomeProblems(t *testing.T) {
	w := newWorld(t)
	w.created("web")
	for _, row := range []struct {
		answer hcp.Answer
		err    error
		status int
		code   hcp.Code
	}{
		{hcp.Answer{Fault: hcp.Errorf(hcp.CodeConflict, "already_in_state", "the VM is already running").Wire()}, nil, 409, hcp.CodeConflict},
		{hcp.Answer{}, context.DeadlineExceeded, 503, hcp.CodeUnavailable},
		{hcp.Answer{}, errors.New("dial secret-host: refused"), 500, hcp.CodeInternal},
		{hcp.Answer{}, hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "no answer").WithRetryAfter(7 * time.Second), 503, hcp.CodeProviderUnavailable},
		{hcp.Answer{}, hcp.Errorf(hcp.CodeOutcomeUnknown, "x", "a job's code"), 500, hcp.CodeInternal},
	} {
		w.owner.refuse = func(hcp.Command) (hcp.Answer, error, bool) { return row.answer, row.err, true }
		r := w.do("POST", "/v1/projects/demo/vms/web/start", w.token, nil)
		if p := r.problem(t); r.status != row.status || p.Code != row.code || strings.Contains(string(r.body), "secret") {
			t.Errorf("%+v answered %d: %s", row, r.status, r.body)
		}
		w.oneCallRow(r, "start", "alice", string(row.code))
		if row.code == hcp.CodeProviderUnavailable && r.header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After is %s", r.header.Get("Retry-After"))
		}
	}
	w.owner.refuse = func(hcp.Command) (hcp.Answer, error, bool) { panic("S3CR3T") }
	if r := w.do("POST", "/v1/projects/demo/vms/web/start", w.token, nil); r.status != 500 || strings.Contains(string(r.body), "S3CR3T") {
		t.Errorf("a panic answered %d: %s", r.status, r.body)
	}
}

func TestTraceParentIsTakenAndRequestIDIsNot(t *testing.T) {
	w := newWorld(t)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := w.do("GET", "/v1/projects/demo/vms", w.token, nil, "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01", "Request-Id", "mine")
	if r.header.Get("Trace-Id") != trace || r.header.Get("Request-Id") == "mine" {
		t.Errorf("Trace-Id %s, Request-Id %s", r.header.Get("Trace-Id"), r.header.Get("Request-Id"))
	}
	for _, bad := range []string{"", "rubbish", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "00-" + strings.ToUpper(trace) + "-00f067aa0ba902b7-01"} {
		r := w.do("GET", "/v1/projects/demo/vms", w.token, nil, "Traceparent", bad)
		if id := r.header.Get("Trace-Id"); id == trace || len(id) != 32 {
			t.Errorf("%q gave the trace %q", bad, id)
		}
	}
}
