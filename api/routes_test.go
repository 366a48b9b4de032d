package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/persistence"
)

// concrete fills a route's path with things that exist in the world.
func (w *world) concrete(r api.Route, project, vm, job string) string {
	values := map[string]string{"project": project, "vm": vm, "job": job, "image": "debian", "flavor": "small", "zone": "local", "cluster": string(w.cluster.ID),
		"org": "acme", "scope": "project", "id": "demo", "binding": "none"}
	return regexp.MustCompile(`\{[^}]+\}`).ReplaceAllStringFunc(r.Path, func(p string) string {
		v, known := values[strings.Trim(p, "{}")]
		if !known {
			w.t.Fatalf("the route %s has a parameter that the tests do not know: %s", r.ID, p)
		}
		return url.PathEscape(v)
	})
}

// bodies are valid requests, so that what is refused is not the body.
func (w *world) validBody(r api.Route) any {
	bodies := map[string]string{
		"vms.create": `{"name":"fresh","image":"debian","flavor":"small"}`, "vms.update": `{"description":"x"}`,
		"ops.clusters.register": `{"name":"new","driver":"sim","endpoint":"http://x"}`, "ops.clusters.update": `{"endpoint":"http://y"}`,
		"ops.clusters.maintenance": `{"enabled":true}`, "ops.clusters.credentials": `{"credentials":{"user":"u"}}`,
		"ops.zones.create": `{"name":"z2","region":"here"}`, "ops.zones.put": `{"name":"local","region":"here"}`,
		"ops.images.create": `{"name":"i2","version":"1","sha256":"` + strings.Repeat("00", 32) + `","firmware":"bios"}`, "ops.images.update": `{"state":"deprecated"}`,
		"ops.images.artefact": `{"artefact":"a"}`, "ops.flavors.create": `{"name":"f2","vcpus":1,"memory_mib":64,"disk_gib":1}`, "ops.flavors.update": `{"retired":true}`,
		"ops.orgs.create": `{"name":"o2"}`, "ops.projects.create": `{"name":"p2","org":"acme"}`, "ops.quotas.set": `{"limits":{"vms":5}}`,
		"ops.role_bindings.create": `{"subject":"x","role":"project-viewer","project":"demo"}`,
	}
	b, has := bodies[r.ID]
	if has != (r.Body != nil && !r.BodyOptional) {
		w.t.Fatalf("the tests have no body for %s, or one too many", r.ID)
	}
	if !has {
		return nil
	}
	return b
}

func (w *world) callRoute(r api.Route, project, vm, job, token string, headers ...string) reply {
	w.t.Helper()
	if r.Mutates() {
		headers = append(headers, "Idempotency-Key", w.ids.New(hcp.KindCommand))
	}
	if r.ID == "vms.update" {
		headers = append(headers, "If-Match", "*")
	}
	return w.do(r.Method, w.concrete(r, project, vm, job), token, w.validBody(r), headers...)
}

// oneCallRow asserts that the request left exactly one row of kind call, with its trace.
func (w *world) oneCallRow(r reply, id, actor, result string) {
	w.t.Helper()
	rows := w.auditOf(r)
	if len(rows) != 1 {
		w.t.Errorf("%s left %d audit rows", id, len(rows))
		return
	}
	if row := rows[0]; row.TraceID != r.header.Get("Trace-Id") || row.Actor != actor || row.Result != result || row.Action == "" || row.Target == "" {
		w.t.Errorf("%s left the audit row %+v, not of %s with %s", id, row, actor, result)
	}
}

func TestEveryRouteRefusesACallWithoutAToken(t *testing.T) {
	w := newWorld(t)
	for _, r := range api.Routes() {
		if r.Action == auth.Public {
			continue
		}
		got := w.callRoute(r, "demo", "web", "job", "")
		if got.status != 401 || got.problem(t).Reason != "no_token" || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s answered %d: %s", r.ID, got.status, got.body)
		}
		w.oneCallRow(got, r.ID, "anonymous", "UNAUTHORIZED")
	}
}

// The same body for a project of somebody else and for one that does not exist.
func TestEveryTenantRouteAnswers404ForAForeignProject(t *testing.T) {
	w := newWorld(t)
	unvary := regexp.MustCompile(`"(trace_id|request_id|instance)":"[^"]*"`)
	for _, r := range api.Routes() {
		if r.Scope != hcp.ScopeTenant {
			continue
		}
		foreign := w.callRoute(r, "other", "web", "job", w.token)
		foreignID := w.callRoute(r, string(w.otherProject.ID), "web", "job", w.token)
		foreignLRN := w.callRoute(r, hcp.LRNOf("project", string(w.otherProject.ID)), "web", "job", w.token)
		unknown := w.callRoute(r, "nowhere", "web", "job", w.token)
		want := unvary.ReplaceAll(unknown.body, nil)
		for _, got := range []reply{foreign, foreignID, foreignLRN, unknown} {
			if got.status != 404 || !bytes.Equal(unvary.ReplaceAll(got.body, nil), want) {
				t.Errorf("%s answered %d: %s", r.ID, got.status, got.body)
			}
			w.oneCallRow(got, r.ID, "alice", "NOT_FOUND")
		}
	}
}

func TestEveryRouteAnswers403ForARoleWithoutTheAction(t *testing.T) {
	w := newWorld(t)
	w.bind("vera", auth.ProjectViewer, "", w.project.ID)
	w.bind("sam", auth.SecurityAuditor, "", "")
	viewer, auditor := w.issue("vera", hcp.ScopeTenant), w.issue("sam", hcp.ScopeOps)
	nobody := w.issue("nobody", hcp.ScopeOps)
	viewerRole, _ := auth.RoleNamed(auth.ProjectViewer)
	auditorRole, _ := auth.RoleNamed(auth.SecurityAuditor)
	for _, r := range api.Routes() {
		switch r.Scope {
		case hcp.ScopeTenant:
			if !viewerRole.Allows(r.Action) {
				got := w.callRoute(r, "demo", "web", "job", viewer)
				w.refused(got, r.ID, "vera", "missing_role")
			}
			w.refused(w.callRoute(r, "demo", "web", "job", w.ops), r.ID, "oscar", "wrong_scope")
		case hcp.ScopeOps:
			w.refused(w.callRoute(r, "demo", "web", "job", w.token), r.ID, "alice", "wrong_scope")
			w.refused(w.callRoute(r, "demo", "web", "job", nobody), r.ID, "nobody", "missing_role")
			if !auditorRole.Allows(r.Action) {
				w.refused(w.callRoute(r, "demo", "web", "job", auditor), r.ID, "sam", "missing_role")
			}
		}
	}
	if n := len(w.owner.commands()); n != 0 {
		t.Errorf("%d commands went out for callers that may not", n)
	}
}

func (w *world) refused(r reply, id, actor, reason string) {
	w.t.Helper()
	if r.status != 403 || r.problem(w.t).Reason != reason {
		w.t.Errorf("%s answered %d: %s", id, r.status, r.body)
	}
	w.oneCallRow(r, id, actor, "FORBIDDEN")
}

// Every route works for who may call it, and leaves the row its entry names.
func TestEveryRouteWorksAndLeavesItsAuditRow(t *testing.T) {
	w := newWorld(t)
	binding := w.bind("temp", auth.ProjectViewer, "", w.project.ID)
	for _, r := range api.Routes() {
		if r.Stream || r.ID == "ops.role_bindings.delete" {
			continue // have their own tests
		}
		a := w.created("vm-" + strings.ReplaceAll(r.ID, ".", "-"))
		token, vm := w.token, string(a.ResourceID)
		if r.Scope == hcp.ScopeOps {
			token = w.ops
		}
		var headers []string
		if r.ID == "jobs.wait" {
			continue
		}
		got := w.callRoute(r, "demo", vm, string(a.JobID), token, headers...)
		if got.status != r.Status && !isInUse(t, got, r) {
			t.Errorf("%s answered %d, not %d: %s", r.ID, got.status, r.Status, got.body)
			continue
		}
		rows := w.auditOf(got)
		wantRow := got.status >= 400 || r.Mutates() || r.Audit == api.AuditRead
		if (len(rows) == 1) != wantRow || len(rows) > 1 {
			t.Errorf("%s left %d audit rows", r.ID, len(rows))
		}
		if r.Mutates() != (r.Audit == api.AuditOwn || r.Audit == api.AuditActor) {
			t.Errorf("the audit entry of %s is %q", r.ID, r.Audit)
		}
		// The catalogue is needed by the routes to come.
		w.restore(r)
	}
	got := w.do("DELETE", "/v1/ops/role-bindings/"+binding.ID, w.ops, nil)
	if got.status != 204 {
		t.Errorf("the binding's delete answered %d: %s", got.status, got.body)
	}
	w.oneCallRow(got, "ops.role_bindings.delete", "oscar", "ok")
}

// Deletes of what VMs use are refused; that is their working here.
func isInUse(t *testing.T, got reply, r api.Route) bool {
	return r.Method == "DELETE" && got.status == 409 && got.problem(t).Reason == "in_use"
}

// restore puts back what a route's call changed, behind the server's back.
func (w *world) restore(r api.Route) {
	w.t.Helper()
	switch r.ID {
	case "ops.clusters.delete", "ops.clusters.maintenance", "ops.clusters.update":
		st, err := w.store.LoadCluster(context.Background(), string(w.cluster.ID))
		must(w.t, err)
		cl := w.cluster
		w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(cl.ID)}, Epoch: st.Epoch, Seq: st.Seq, Cluster: &cl})
	case "ops.zones.put":
		got := w.do("PUT", "/v1/ops/zones/local", w.ops, map[string]any{"name": "local", "region": "here", "members": []any{map[string]any{"cluster": string(w.cluster.ID)}}})
		if got.status != 200 {
			w.t.Fatalf("the zone could not be put back: %s", got.body)
		}
	case "ops.images.artefact":
		got := w.do("PUT", "/v1/ops/images/debian/artefacts/"+string(w.cluster.ID), w.ops, `{"artefact":"secret-artefact"}`)
		if got.status != 200 {
			w.t.Fatalf("the artefact could not be put back: %s", got.body)
		}
	case "ops.flavors.update":
		w.do("PATCH", "/v1/ops/flavors/small", w.ops, `{"retired":false}`)
	case "ops.flavors.delete":
		got := w.do("POST", "/v1/ops/flavors", w.ops, `{"name":"small","vcpus":1,"memory_mib":256,"disk_gib":4}`)
		if got.status != 201 {
			w.t.Fatalf("the flavor could not be put back: %s", got.body)
		}
	case "ops.quotas.set":
		w.do("PUT", "/v1/ops/quotas/project/demo", w.ops, `{"limits":{"vms":"unlimited"}}`)
	}
}

func TestRouteTableIsSound(t *testing.T) {
	ids, paths := map[string]bool{}, map[string]bool{}
	for _, r := range api.Routes() {
		if ids[r.ID] || paths[r.Method+" "+r.Path] {
			t.Errorf("%s %s stands twice", r.ID, r.Path)
		}
		ids[r.ID], paths[r.Method+" "+r.Path] = true, true
		if r.CLI == "" || r.Summary == "" {
			t.Errorf("%s names no command or summary", r.ID)
		}
		if r.Async && (r.Status != 202 || !r.Mutates()) {
			t.Errorf("%s is async and answers %d", r.ID, r.Status)
		}
		if r.KeyRequired != (r.ID == "vms.create") {
			t.Errorf("%s: KeyRequired is %v", r.ID, r.KeyRequired)
		}
		ofOps := strings.HasPrefix(r.Path, "/v1/ops/")
		if ofOps != (r.Scope == hcp.ScopeOps) || ofOps != strings.HasPrefix(string(r.Action), "ops.") {
			t.Errorf("%s %s has scope %q and action %q", r.ID, r.Path, r.Scope, r.Action)
		}
		granted := r.Action == auth.Public || r.Action == auth.WhoAmI
		for _, role := range auth.Roles() {
			granted = granted || role.Allows(r.Action)
		}
		if !granted {
			t.Errorf("no role allows %s of %s", r.Action, r.ID)
		}
	}
}

// The routes with action and command, for people and diffs.
func TestRouteListIsTheGoldenFile(t *testing.T) {
	var b strings.Builder
	for _, r := range api.Routes() {
		fmt.Fprintf(&b, "%-28s %-6s %-55s %-26s %s\n", r.ID, r.Method, r.Path, r.Action, r.CLI)
	}
	const file = "testdata/routes.golden"
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if b.String() != string(want) {
		t.Error("testdata/routes.golden is stale; run go test ./api -run RouteList -update")
	}
}

func TestKeyIsRequiredOnlyForCreate(t *testing.T) {
	w := newWorld(t)
	r := w.do("POST", "/v1/projects/demo/vms", w.token, w.vmBody("web"))
	if p := r.problem(t); r.status != 400 || p.Reason != "missing_idempotency_key" {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	a := w.created("web")
	if r := w.do("POST", "/v1/projects/demo/vms/"+string(a.ResourceID)+"/start", w.token, nil); r.status != 202 {
		t.Errorf("a start without key answered %d: %s", r.status, r.body)
	}
}
