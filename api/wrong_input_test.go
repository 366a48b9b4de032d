package api_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
)

func TestWrongInputIsAnsweredWell(t *testing.T) {
	w := newWorld(t)
	w.created("web")
	vms := "/v1/projects/demo/vms"
	long := strings.Repeat("n", 200)
	const marker = "MARKER-9f3a"
	type row struct {
		name   string
		method string
		path   string
		body   any
		status int
		code   hcp.Code
		reason string
		field  string
	}
	vm := func(change string) string {
		return `{"name":"x","image":"debian","flavor":"small"` + change + `}`
	}
	named := func(name string) map[string]any {
		return map[string]any{"name": name, "image": "debian", "flavor": "small"}
	}
	invalid := hcp.CodeInvalidRequest
	for _, r := range []row{
		{"bad JSON", "POST", vms, `{"name":`, 400, invalid, "bad_json", ""},
		{"trailing JSON", "POST", vms, vm("") + "{}", 400, invalid, "bad_json", ""},
		{"not UTF-8", "POST", vms, []byte("{\"name\":\"a\xff\"}"), 400, invalid, "bad_json", ""},
		{"no body", "POST", vms, nil, 400, invalid, "no_body", ""},
		{"an array", "POST", vms, `[]`, 400, invalid, "wrong_type", ""},
		{"null", "POST", vms, `null`, 400, invalid, "wrong_type", ""},
		{"deep nesting", "POST", vms, strings.Repeat("[", 100000), 400, invalid, "bad_json", ""},
		{"unknown field", "POST", vms, vm(`,"colour":"` + marker + `"`), 400, invalid, "unknown_field", "/colour"},
		{"field in another case", "POST", vms, vm(`,"Zone":"local"`), 400, invalid, "unknown_field", "/Zone"},
		{"wrong type", "POST", vms, `{"name":7,"image":"debian","flavor":"small"}`, 400, invalid, "wrong_type", "/name"},
		{"wrong type inside", "POST", vms, vm(`,"labels":{"a":1}`), 400, invalid, "wrong_type", "/labels/a"},
		{"missing field", "POST", vms, `{"name":"x","image":"debian"}`, 400, invalid, "required", "/flavor"},
		{"empty name", "POST", vms, named(""), 400, invalid, "wrong_length", "/name"},
		{"blank name", "POST", vms, named("  "), 400, invalid, "invalid_name", "/name"},
		{"200-character name", "POST", vms, named(long), 400, invalid, "invalid_name", "/name"},
		{"name with a slash", "POST", vms, named("a/b"), 400, invalid, "invalid_name", "/name"},
		{"name with a percent", "POST", vms, named("a%2Fb"), 400, invalid, "invalid_name", "/name"},
		{"name with a control character", "POST", vms, named("a\u0007b"), 400, invalid, "invalid_name", "/name"},
		{"name with a right-to-left override", "POST", vms, named("a\u202eb"), 400, invalid, "invalid_name", "/name"},
		{"name that is an id", "POST", vms, named("vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071"), 400, invalid, "invalid_name", "/name"},
		{"name that is another kind's id", "POST", vms, named("job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"), 400, invalid, "invalid_name", "/name"},
		{"name that is an LRN", "POST", vms, named("lrn:lotuscloud:x"), 400, invalid, "invalid_name", "/name"},
		{"name that is a path element", "POST", vms, named(".."), 400, invalid, "invalid_name", "/name"},
		{"unknown image", "POST", vms, `{"name":"x","image":"` + marker + `","flavor":"small"}`, 404, hcp.CodeNotFound, "not_found", "/image"},
		{"unknown flavor", "POST", vms, `{"name":"x","image":"debian","flavor":"nope"}`, 404, hcp.CodeNotFound, "not_found", "/flavor"},
		{"unknown zone", "POST", vms, vm(`,"zone":"nope"`), 404, hcp.CodeNotFound, "not_found", "/zone"},
		{"malformed LRN", "POST", vms, `{"name":"x","image":"lrn:lotuscloud:x","flavor":"small"}`, 400, invalid, "malformed_lrn", "/image"},
		{"LRN of another type", "POST", vms, `{"name":"x","image":"` + hcp.LRNOf("flavor", string(w.flavor.ID)) + `","flavor":"small"}`, 404, hcp.CodeNotFound, "not_found", "/image"},
		{"bad power", "POST", vms, vm(`,"power":"` + marker + `"`), 400, invalid, "not_allowed", "/power"},
		{"bad SSH key", "POST", vms, vm(`,"ssh_keys":["` + marker + `"]`), 400, invalid, "invalid_ssh_key", "/ssh_keys"},
		{"SSH key with a line break", "POST", vms, vm(`,"ssh_keys":["ssh-ed25519 AAAA\nroot"]`), 400, invalid, "invalid_ssh_key", "/ssh_keys"},
		{"bad base64", "POST", vms, vm(`,"user_data_base64":"` + marker + `"`), 400, invalid, "wrong_format", "/user_data_base64"},
		{"both user data", "POST", vms, vm(`,"user_data":"a","user_data_base64":"YQ=="`), 400, invalid, "not_both", "/user_data_base64"},
		{"user data too large", "POST", vms, vm(`,"user_data":"` + strings.Repeat("x", 65537) + `"`), 400, invalid, "user_data_too_large", "/user_data"},
		{"bad label", "POST", vms, vm(`,"labels":{"_":"x"}`), 400, invalid, "invalid_label", "/labels"},
		{"body over the limit", "POST", vms, vm(`,"user_data":"` + strings.Repeat("x", 2<<20) + `"`), 413, hcp.CodePayloadTooLarge, "body_too_large", ""},
		{"unknown parameter", "POST", vms + "?colour=" + marker, vm(""), 400, invalid, "unknown_parameter", "?colour"},
		{"bad dry_run", "POST", vms + "?dry_run=yes", vm(""), 400, invalid, "wrong_type", "?dry_run"},
		{"stop mode", "POST", vms + "/web/stop", `{"mode":"` + marker + `"}`, 400, invalid, "not_allowed", "/mode"},
		{"stop timeout zero", "POST", vms + "/web/stop", `{"timeout_s":0}`, 400, invalid, "out_of_range", "/timeout_s"},
		{"stop timeout fraction", "POST", vms + "/web/stop", `{"timeout_s":1.5}`, 400, invalid, "wrong_type", "/timeout_s"},
		{"body where none belongs", "POST", vms + "/web/start", `{"force":true}`, 400, invalid, "unknown_field", "/force"},

		{"page_size 0", "GET", vms + "?page_size=0", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size -1", "GET", vms + "?page_size=-1", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size 1e9", "GET", vms + "?page_size=1e9", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size 1000000000", "GET", vms + "?page_size=1000000000", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size abc", "GET", vms + "?page_size=abc", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size empty", "GET", vms + "?page_size=", nil, 400, invalid, "out_of_range", "?page_size"},
		{"page_size twice", "GET", vms + "?page_size=1&page_size=2", nil, 400, invalid, "repeated", "?page_size"},
		{"page_token of nobody", "GET", vms + "?page_token=" + marker, nil, 400, invalid, "bad_page_token", "?page_token"},
		{"unknown list parameter", "GET", vms + "?nmae=web", nil, 400, invalid, "unknown_parameter", "?nmae"},
		{"10 kB filter", "GET", vms + "?name=" + strings.Repeat("x", 10<<10), nil, 400, invalid, "too_long", "?"},
		{"3 kB filter", "GET", vms + "?name=" + strings.Repeat("x", 3<<10), nil, 400, invalid, "too_long", "?name"},
		{"bad state", "GET", vms + "?state=" + marker, nil, 400, invalid, "not_allowed", "?state"},
		{"bad label filter", "GET", vms + "?label=x", nil, 400, invalid, "malformed", "?label"},
		{"broken query escape", "GET", vms + "?name=%zz", nil, 400, invalid, "malformed", "?"},
		{"wait too long", "GET", "/v1/projects/demo/jobs/x/wait?timeout=1h", nil, 400, invalid, "out_of_range", "?timeout"},

		{"percent-encoded slash", "GET", vms + "/web%2Fstart", nil, 400, invalid, "invalid_path", "{vm}"},
		{"percent-encoded slash towards another route", "POST", vms + "/web%2Fstart", nil, 405, hcp.CodeMethodNotAllowed, "method_not_allowed", ""},
		{"percent-encoded slash in a verb", "POST", vms + "/a%2Fb/start", nil, 400, invalid, "invalid_path", "{vm}"},
		{"double-encoded slash", "GET", vms + "/web%252Fstart", nil, 404, hcp.CodeNotFound, "not_found", ""},
		{"broken path escape", "GET", vms + "/%C3%28", nil, 400, invalid, "invalid_path", "{vm}"},
		{"null byte", "GET", vms + "/web%00", nil, 400, invalid, "invalid_path", "{vm}"},
		{"dot dot", "GET", vms + "/%2e%2e", nil, 404, hcp.CodeNotFound, "not_found", ""},
		{"very long name", "GET", vms + "/" + strings.Repeat("x", 5000), nil, 400, invalid, "invalid_path", "{vm}"},
		{"id of nobody", "GET", vms + "/vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071", nil, 404, hcp.CodeNotFound, "not_found", ""},
		{"id of another kind", "GET", vms + "/" + string(w.project.ID), nil, 404, hcp.CodeNotFound, "not_found", ""},
		{"no such path", "GET", "/v1/nothing", nil, 404, hcp.CodeNotFound, "no_route", ""},
		{"trailing slash", "GET", vms + "/", nil, 404, hcp.CodeNotFound, "no_route", ""},
		{"another method", "PUT", vms, nil, 405, hcp.CodeMethodNotAllowed, "method_not_allowed", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := w.do(r.method, r.path, w.token, r.body, "Idempotency-Key", w.ids.New(hcp.KindCommand))
			p := got.problem(t)
			if got.status != r.status || p.Code != r.code || p.Reason != r.reason {
				t.Fatalf("answered %d %s %s: %.600s", got.status, p.Code, p.Reason, got.body)
			}
			if r.field != "" && (len(p.Errors) == 0 || p.Errors[0].Pointer != r.field) {
				t.Errorf("the errors are %+v, not at %s", p.Errors, r.field)
			}
			if strings.Contains(strings.ReplaceAll(string(got.body), p.Instance, ""), marker) {
				t.Errorf("the answer repeats what was sent: %s", got.body)
			}
			// 404 and 405 of the router are of no call.
			if p.Reason != "no_route" && p.Reason != "method_not_allowed" {
				if rows := w.auditOf(got); len(rows) != 1 || rows[0].Result != string(r.code) {
					t.Errorf("left the audit rows %+v", rows)
				}
			}
		})
	}
	if n := len(w.owner.commands()); n != 1 {
		t.Errorf("%d commands went out", n-1)
	}
	// The connection is still good for whoever comes next.
	if got := w.do("GET", vms, w.token, nil); got.status != 200 {
		t.Errorf("a list answered %d", got.status)
	}
}

func TestWrongOperatorInput(t *testing.T) {
	w := newWorld(t)
	flavor := func(v string) string { return `{"name":"f",` + v + `}` }
	for _, r := range []struct{ name, method, path, body, reason, field string }{
		{"zero flavor", "POST", "/flavors", flavor(`"vcpus":0,"memory_mib":64,"disk_gib":1`), "out_of_range", "/vcpus"},
		{"negative flavor", "POST", "/flavors", flavor(`"vcpus":1,"memory_mib":-64,"disk_gib":1`), "out_of_range", "/memory_mib"},
		{"absurd flavor", "POST", "/flavors", flavor(`"vcpus":1000000,"memory_mib":64,"disk_gib":1`), "out_of_range", "/vcpus"},
		{"overflowing flavor", "POST", "/flavors", flavor(`"vcpus":1e300,"memory_mib":64,"disk_gib":1`), "out_of_range", "/vcpus"},
		{"null limit", "PUT", "/quotas/project/demo", `{"limits":{"vms":null}}`, "invalid", "/limits/vms"},
		{"negative limit", "PUT", "/quotas/project/demo", `{"limits":{"vms":-1}}`, "invalid", "/limits/vms"},
		{"unknown resource", "PUT", "/quotas/project/demo", `{"limits":{"gpus":1}}`, "unknown_field", "/limits"},
		{"unknown quota scope", "PUT", "/quotas/planet/demo", `{"limits":{"vms":1}}`, "invalid_path", "{scope}"},
		{"user without project", "PUT", "/quotas/user/alice", `{"limits":{"vms":1}}`, "invalid_path", "{id}"},
		{"unknown role", "POST", "/role-bindings", `{"subject":"x","role":"king","project":"demo"}`, "unknown_role", "/role"},
		{"role without a place", "POST", "/role-bindings", `{"subject":"x","role":"project-owner"}`, "required", "/project"},
		{"ops role in a project", "POST", "/role-bindings", `{"subject":"x","role":"cloud-operator","project":"demo"}`, "not_allowed", "/project"},
		{"credentials that are no object", "POST", "/clusters", `{"name":"c","driver":"sim","endpoint":"http://x","credentials":"S3CR3T"}`, "wrong_type", "/credentials"},
		{"password in the endpoint", "POST", "/clusters", `{"name":"c","driver":"sim","endpoint":"http://u:S3CR3T@x"}`, "credentials_in_endpoint", "/endpoint"},
		{"bad sha256", "POST", "/images", `{"name":"i","version":"1","sha256":"S3CR3T","firmware":"bios"}`, "wrong_format", "/sha256"},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := w.do(r.method, "/v1/ops"+r.path, w.ops, r.body)
			p := got.problem(t)
			if got.status != 400 || p.Reason != r.reason || len(p.Errors) == 0 || p.Errors[0].Pointer != r.field {
				t.Errorf("answered %d: %s", got.status, got.body)
			}
			if strings.Contains(string(got.body), "S3CR3T") {
				t.Errorf("the answer repeats a secret: %s", got.body)
			}
			w.oneCallRow(got, r.name, "oscar", "INVALID_REQUEST")
		})
	}
	if strings.Contains(w.logs.String(), "S3CR3T") {
		t.Error("a secret stands in the log")
	}
}

func TestUnicodeNamesAreOneNameInEveryForm(t *testing.T) {
	w := newWorld(t)
	decomposed, composed := "cafe\u0301", "caf\u00e9"
	w.created(decomposed)
	for _, name := range []string{decomposed, composed} {
		got := w.do("GET", "/v1/projects/demo/vms/"+url.PathEscape(name), w.token, nil)
		var v hcp.VMView
		got.into(t, &v)
		if got.status != 200 || v.Name != composed {
			t.Errorf("%+q answered %d: %s", name, got.status, got.body)
		}
		list := w.do("GET", "/v1/projects/demo/vms?name="+url.QueryEscape(name), w.token, nil)
		if strings.Count(string(list.body), `"id":"vm_`) != 1 {
			t.Errorf("the filter %+q finds %s", name, list.body)
		}
	}
	for _, name := range []string{"服务器", "🚀 rocket", "ünïcode-1", "a b", "web.prod_1"} {
		w.created(name)
		if got := w.do("GET", "/v1/projects/demo/vms/"+url.PathEscape(name), w.token, nil); got.status != 200 {
			t.Errorf("%q answered %d: %s", name, got.status, got.body)
		}
	}
}
