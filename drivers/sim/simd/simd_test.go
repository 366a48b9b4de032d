package simd_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/simd"
)

func TestMain(m *testing.M) {
	if runAsSim() {
		return
	}
	goleak.VerifyTestMain(m)
}

// raw speaks to a sim without driver and without client.
type raw struct {
	t     testing.TB
	url   string
	token string
	http  *http.Client
}

func serve(t testing.TB, cfg simd.Config) *raw {
	t.Helper()
	s, err := simd.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(func() { _ = s.Close(); hs.Close() })
	return dial(t, hs.URL)
}

func dial(t testing.TB, url string) *raw {
	r := &raw{t: t, url: url, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(r.http.CloseIdleConnections)
	return r
}

func (r *raw) post(path, body string) (int, string) {
	r.t.Helper()
	status, answer, err := r.try(path, body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", path, body, err)
	}
	return status, answer
}

func (r *raw) try(path, body string) (int, string, error) {
	req, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set(simapi.TokenHeader, r.token)
	res, err := r.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func (r *raw) login() {
	r.t.Helper()
	var a simapi.LoginAnswer
	r.decode("/api/login", `{}`, &a)
	r.token = a.Token
}

func (r *raw) decode(path, body string, into any) {
	r.t.Helper()
	status, answer := r.post(path, body)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", path, body, status, answer)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(answer)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.t.Fatalf("%s: %v in %s", path, err, answer)
	}
}

func (r *raw) want(path, body string, status int, text string) {
	r.t.Helper()
	got, answer := r.post(path, body)
	if got != status || !strings.Contains(answer, text) {
		r.t.Errorf("%s %s: got %d %s, want %d with %q", path, body, got, answer, status, text)
	}
}

const cloneBody = `{"id":"5000","name":"web","marker":"vm_a","image":"debian-12","vcpus":1,"memory_mib":64,"disk_gib":1}`

func TestRequestsAreCheckedStrictly(t *testing.T) {
	r := serve(t, simd.Config{})
	r.want("/api/get", `{"id":"1"}`, 401, "log in")
	r.login()
	for _, row := range []struct {
		path, body string
		status     int
		text       string
	}{
		{"/", "{}", 404, "no path"},
		{"/api", "{}", 404, "no operation"},
		{"/api/fly", "{}", 404, `no operation \"fly\"`},
		{"/api/get/5000", "{}", 404, "no operation"},
		{"/api/get?id=1", "{}", 400, "query"},
		{"/api/get", `{"id":"1","colour":"red"}`, 400, `unknown field \"colour\"`},
		{"/api/get", `{"id":1}`, 400, "cannot unmarshal number"},
		{"/api/get", `{"id":"1"} {}`, 400, "more than one"},
		{"/api/get", `[`, 400, "the body is wrong"},
		{"/api/get", ``, 404, "no machine"},
		{"/api/clone", `{"naem":"x"}`, 400, `unknown field \"naem\"`},
		{"/api/clone", `{"id":"5000"}`, 400, "name is missing"},
		{"/api/clone", strings.Replace(cloneBody, `"5000"`, `"05"`, 1), 400, "leading zero"},
		{"/api/clone", strings.Replace(cloneBody, `"5000"`, `"-5"`, 1), 400, "number"},
		{"/api/clone", strings.Replace(cloneBody, `"memory_mib":64`, `"memory_mib":-1`, 1), 400, "at least 1"},
		{"/api/clone", strings.Replace(cloneBody, "debian-12", "beos", 1), 404, "no image"},
		{"/api/list", `{"limit":1001}`, 400, "limit"},
		{"/api/power_on", `{"id":"1","force":true}`, 400, "unknown field"},
		{"/api/power_on", `{"id":"1"}`, 404, "no machine"},
		{"/control/explode", `{}`, 400, "there is no control"},
		{"/control/delay", `{"op":"fly","ms":1}`, 400, "no operation"},
		{"/control/delay", `{"op":"clone","ms":-1}`, 400, "negative"},
		{"/control/fail", `{"op":"clone"}`, 400, "code is missing"},
		{"/control/fail", `{"op":"clone","code":200}`, 400, "no HTTP error"},
		{"/control/fail", `{"op":"clone","code":"weather"}`, 400, "unknown"},
		{"/control/fail", `{"op":"get","code":500,"in_task":true}`, 400, "makes no task"},
		{"/control/hang", `{"op":"get","answer":true}`, 400, "makes a task"},
		{"/control/lose_task", `{"op":"clone","when":"never"}`, 400, "before or after"},
		{"/control/commit_noop", `{"op":"get"}`, 400, "changes something"},
		{"/control/down", `{"mode":"slowly"}`, 400, "refuse or cut"},
		{"/control/oob", `{"verb":"paint","vm":"1"}`, 400, "is unknown"},
		{"/control/oob", `{"verb":"delete","vm":"1"}`, 404, "no machine"},
		{"/control/oob", `{"verb":"create","id":"5","n":2}`, 400, "both"},
		{"/control/omit", `{"vm":"1","n":1}`, 404, "no machine"},
		{"/control/host", `{"name":"new"}`, 400, "no host"},
		{"/control/count", `{"op":"fly"}`, 400, "no operation"},
	} {
		r.want(row.path, row.body, row.status, row.text)
	}
	req, _ := http.NewRequest(http.MethodGet, r.url+"/api/get", nil)
	res, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET is answered %d", res.StatusCode)
	}
	r.want("/api/clone", strings.Repeat(" ", 5<<20), 400, "over")
}

func TestEveryControlRefusesUnknownFields(t *testing.T) {
	r := serve(t, simd.Config{})
	for _, name := range simd.Controls() {
		r.want("/control/"+name, `{"no_such_field":1}`, 400, `unknown field \"no_such_field\"`)
	}
}

func TestControlsAnswerWhileTheAPIIsDown(t *testing.T) {
	r := serve(t, simd.Config{})
	r.login()
	r.want("/control/down", `{}`, 200, "")
	r.want("/api/get", `{"id":"1"}`, 503, "down")
	r.want("/control/down", `{"mode":"cut"}`, 200, "")
	if status, answer, err := r.try("/api/get", `{"id":"1"}`); err == nil {
		t.Errorf("a cut API answers %d %s", status, answer)
	}
	r.want("/control/status", `{}`, 200, `"down":"cut"`)
	r.want("/control/up", `{}`, 200, "")
	r.want("/api/get", `{"id":"1"}`, 404, "no machine")
}

func TestCloneIsNotIdempotent(t *testing.T) {
	r := serve(t, simd.Config{})
	r.login()
	noID := strings.Replace(cloneBody, `"id":"5000",`, "", 1)
	for range 2 {
		r.want("/api/clone", noID, 200, `"done"`)
	}
	r.want("/api/clone", cloneBody, 200, `"done"`)
	r.want("/api/clone", cloneBody, 409, "taken")
	var found simapi.MachinesAnswer
	r.decode("/api/find", `{"marker":"vm_a"}`, &found)
	if len(found.Machines) != 3 {
		t.Errorf("three clones made %d machines", len(found.Machines))
	}
	var c simapi.CountAnswer
	r.decode("/control/count", `{"op":"clone"}`, &c)
	if c.Ops["clone"] != (simapi.Count{Calls: 4, Effects: 3}) {
		t.Errorf("count is %+v, want 4 calls and 3 effects", c.Ops["clone"])
	}
}

// The operations of later drivers change the world as well: none only pretends.
func TestLaterOperations(t *testing.T) {
	r := serve(t, simd.Config{})
	r.login()
	r.want("/api/clone", cloneBody, 200, `"done"`)
	get := func() (m simapi.Machine) { r.t.Helper(); r.decode("/api/get", `{"id":"5000"}`, &m); return m }

	r.want("/api/snapshot", `{"id":"5000","snapshot":"before"}`, 200, `"done"`)
	r.want("/api/snapshot", `{"id":"5000","snapshot":"before"}`, 409, "exists")
	r.want("/api/resize", `{"id":"5000","vcpus":4,"disk_gib":2}`, 200, `"done"`)
	r.want("/api/resize", `{"id":"5000","disk_gib":1}`, 400, "shrink")
	if m := get(); m.VCPUs != 4 || m.DiskGiB != 2 || len(m.Snapshots) != 1 {
		t.Errorf("after resize: %+v", m)
	}
	r.want("/api/power_on", `{"id":"5000"}`, 200, `"done"`)
	r.want("/api/revert", `{"id":"5000","snapshot":"before"}`, 409, "not_stopped")
	r.want("/api/configure", `{"id":"5000","vcpus":4}`, 200, `"done"`) // changes nothing
	r.want("/api/configure", `{"id":"5000","vcpus":5}`, 409, "not_stopped")
	r.want("/api/reset", `{"id":"5000"}`, 200, `"done"`)
	if m := get(); m.Boots != 2 {
		t.Errorf("boots after reset: %d", m.Boots)
	}
	r.want("/api/open_console", `{"id":"5000","console":"c1"}`, 200, `"done"`)
	r.want("/control/count", `{}`, 200, `"open_consoles":1`)
	r.want("/api/close_console", `{"id":"5000","console":"c1"}`, 200, `"done"`)
	r.want("/api/open_console", `{"id":"5000","console":"c2"}`, 200, `"done"`)
	r.want("/api/power_off", `{"id":"5000"}`, 200, `"done"`)
	r.want("/control/count", `{}`, 200, `"open_consoles":0`)
	r.want("/api/open_console", `{"id":"5000","console":"c3"}`, 409, "not_running")
	r.want("/api/reset", `{"id":"5000"}`, 409, "not_running")
	r.want("/api/revert", `{"id":"5000","snapshot":"before"}`, 200, `"done"`)
	r.want("/api/delete_snapshot", `{"id":"5000","snapshot":"before"}`, 200, `"done"`)
	r.want("/api/revert", `{"id":"5000","snapshot":"before"}`, 404, "no_such_snapshot")
	if m := get(); m.VCPUs != 1 || m.DiskGiB != 1 || len(m.Snapshots) != 0 {
		t.Errorf("after revert: %+v", m)
	}

	r.want("/api/create_volume", `{"volume":"data","gib":5}`, 200, `"done"`)
	r.want("/api/attach", `{"id":"5000","volume":"data"}`, 200, `"done"`)
	r.want("/api/attach", `{"id":"5000","volume":"data"}`, 409, "in_use")
	r.want("/api/delete_volume", `{"volume":"data"}`, 409, "in_use")
	if m := get(); len(m.Volumes) != 1 {
		t.Errorf("after attach: %+v", m)
	}
	r.want("/api/detach", `{"id":"5000","volume":"data"}`, 200, `"done"`)
	r.want("/api/delete_volume", `{"volume":"data"}`, 200, `"done"`)
	r.want("/control/oob", `{"verb":"add_disk","vm":"vm_a","gib":3}`, 200, "5000")
	r.want("/api/delete", `{"id":"5000","expect_marker":"vm_b"}`, 409, "foreign")
	r.want("/api/delete", `{"id":"5000","expect_marker":"vm_a"}`, 200, `"done"`)
	var l simapi.ListAnswer
	r.decode("/control/list", ``, &l)
	if len(l.Machines) != 0 || len(l.Volumes) != 0 {
		t.Errorf("delete left %+v", l)
	}
}

func TestOutOfBandActs(t *testing.T) {
	r := serve(t, simd.Config{})
	r.login()
	r.want("/api/clone", cloneBody, 200, `"done"`)
	r.want("/control/oob", `{"verb":"start","vm":"vm_a"}`, 200, "5000")
	r.want("/control/oob", `{"verb":"set_cpu","vm":"5000","vcpus":9}`, 200, "5000")
	r.want("/control/oob", `{"verb":"migrate","vm":"vm_a","host":"host-3"}`, 200, "5000")
	r.want("/control/oob", `{"verb":"create","n":3}`, 200, "100")
	var l simapi.ListAnswer
	r.decode("/control/list", `{}`, &l)
	ours := 0
	for _, m := range l.Machines {
		if m.Ours {
			ours++
			if m.VCPUs != 9 || m.Host != "host-3" || m.Power != simapi.Running {
				t.Errorf("our machine is %+v", m)
			}
		}
	}
	if len(l.Machines) != 4 || ours != 1 {
		t.Errorf("%d machines, %d ours; want 4 and 1", len(l.Machines), ours)
	}
	r.want("/control/oob", `{"verb":"stop","vm":"vm_a"}`, 200, "5000")
	r.want("/control/oob", `{"verb":"unmark","vm":"vm_a"}`, 200, "5000")
	r.want("/api/find", `{"marker":"vm_a"}`, 200, `"machines":[]`)
	r.want("/control/count", `{"op":"power_on"}`, 200, `"effects":0`)
}
