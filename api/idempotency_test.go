package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func TestA02_SameKeyIsTheSameAnswer(t *testing.T) {
	w := newWorld(t)
	const n = 51
	replies := make([]reply, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i] = w.create("web", "Idempotency-Key", "k-1") })
	}
	all.Wait()
	replayed, bodies := 0, map[string]bool{}
	for _, r := range replies {
		if r.status != 202 {
			t.Fatalf("answered %d: %s", r.status, r.body)
		}
		if r.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
		bodies[string(r.body)+r.header.Get("Location")] = true
		if rows := w.auditOf(r); len(rows) != 1 {
			t.Errorf("a call left %d audit rows", len(rows))
		}
	}
	if replayed != n-1 || len(bodies) != 1 {
		t.Errorf("%d replays, %d different answers", replayed, len(bodies))
	}
	vms, err := w.store.ListVMs(context.Background(), persistence.VMFilter{Project: w.project.ID, Page: persistence.Page{Limit: 10}})
	must(t, err)
	if len(vms) != 1 {
		t.Errorf("%d VMs", len(vms))
	}
	// Order of fields and white space are not the request; the quoted form is the same key.
	r := w.do("POST", "/v1/projects/"+string(w.project.ID)+"/vms", w.token, "{ \"flavor\":\"small\",\n\"image\":\"debian\", \"name\":\"web\"}", "Idempotency-Key", `"k-1"`)
	if !bodies[string(r.body)+r.header.Get("Location")] || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same request in another form answered %d: %s", r.status, r.body)
	}
}

func TestA03_KeyWithAnotherBodyIsRefused(t *testing.T) {
	w := newWorld(t)
	first := w.create("web", "Idempotency-Key", "k")
	second := w.create("web-2", "Idempotency-Key", "k")
	if p := second.problem(t); first.status != 202 || second.status != 422 || p.Code != hcp.CodeIdempotencyKeyReused {
		t.Errorf("answered %d, %d: %s", first.status, second.status, second.body)
	}
	w.oneCallRow(second, "second", "alice", "IDEMPOTENCY_KEY_REUSED")
	// Another principal's key is another key.
	w.bind("amy", "project-owner", "", w.project.ID)
	r := w.do("POST", "/v1/projects/demo/vms", w.issue("amy", hcp.ScopeTenant), w.vmBody("amys"), "Idempotency-Key", "k")
	if r.status != 202 || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another principal got %d: %s", r.status, r.body)
	}
}

// A delete by name that is sent again found a new VM of the same name and
// deleted that: the key's record must be found by the name that was sent.
func TestARepeatedDeleteByNameDoesNotTouchTheNextVMOfThatName(t *testing.T) {
	w := newWorld(t)
	old := w.created("web")
	first := w.do("DELETE", "/v1/projects/demo/vms/web", w.token, nil, "Idempotency-Key", "del")
	if first.status != 202 {
		t.Fatalf("answered %d: %s", first.status, first.body)
	}
	next := w.created("web")
	again := w.do("DELETE", "/v1/projects/demo/vms/web", w.token, nil, "Idempotency-Key", "del")
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		t.Errorf("answered %d: %s", again.status, again.body)
	}
	k, err := w.store.GetVM(context.Background(), w.project.ID, string(next.ResourceID))
	must(t, err)
	if k.VM.Lifecycle == hcp.LifecycleDeleting || old.ResourceID == next.ResourceID {
		t.Error("the second VM was deleted")
	}
	w.oneCallRow(again, "again", "alice", "replayed")
}

func TestCatalogueMutationsReplay(t *testing.T) {
	w := newWorld(t)
	const body = `{"name":"huge","vcpus":64,"memory_mib":1024,"disk_gib":10}`
	var all sync.WaitGroup
	replies := make([]reply, 20)
	for i := range replies {
		all.Go(func() { replies[i] = w.do("POST", "/v1/ops/flavors", w.ops, body, "Idempotency-Key", "f") })
	}
	all.Wait()
	replayed := 0
	for _, r := range replies {
		if r.status != 201 || string(r.body) != string(replies[0].body) {
			t.Errorf("answered %d: %s", r.status, r.body)
		}
		if r.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
		if len(w.auditOf(r)) != 1 {
			t.Errorf("left %d audit rows", len(w.auditOf(r)))
		}
	}
	if replayed != len(replies)-1 {
		t.Errorf("%d replays", replayed)
	}
	if r := w.do("POST", "/v1/ops/flavors", w.ops, body, "Idempotency-Key", "g"); r.status != 409 || r.problem(t).Reason != "name_taken" {
		t.Errorf("the same name answered %d: %s", r.status, r.body)
	}
	del := w.do("DELETE", "/v1/ops/flavors/huge", w.ops, nil, "Idempotency-Key", "d")
	again := w.do("DELETE", "/v1/ops/flavors/huge", w.ops, nil, "Idempotency-Key", "d")
	if del.status != 204 || again.status != 204 || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("answered %d, then %d: %s", del.status, again.status, again.body)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{`"`, `""`, `"a`, "a b", `"a"b"`, `"a\x"`, strings.Repeat("k", 256), "käy"} {
		r := w.create("web", "Idempotency-Key", key)
		if r.status != 400 || r.problem(t).Reason != "bad_idempotency_key" {
			t.Errorf("%q answered %d: %s", key, r.status, r.body)
		}
	}
	if r := w.create("web", "Idempotency-Key", strings.Repeat("k", 255)); r.status != 202 {
		t.Errorf("a key of 255 answered %d: %s", r.status, r.body)
	}
}

// Values of the framework alias a buffer that the next request overwrites: what
// a command, a record or a row keeps must still say what it said.
func TestWhatIsKeptOfARequestStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		name := fmt.Sprintf("vm-%03d", i)
		if r := w.create(name, "Idempotency-Key", "key-"+name, "User-Agent", name); r.status != 202 {
			t.Fatalf("answered %d: %s", r.status, r.body)
		}
		w.do("GET", "/v1/projects/other/vms/zzzzzzzz", w.other, nil, "Idempotency-Key", "zzzzzzzzzz")
	}
	for i, c := range w.owner.commands() {
		name := fmt.Sprintf("vm-%03d", i)
		if c.Create.VM.Name != name || c.Key.Key != "key-"+name || c.Key.Principal != "alice" || c.Call.Path != "/v1/projects/demo/vms" || c.Call.Method != http.MethodPost {
			t.Fatalf("the command of %s reads %+v %+v", name, c.Key, c.Call)
		}
	}
}

func TestA04_TwoGatewaysOneKeyOneVM(t *testing.T) {
	w := newWorld(t)
	second := w.secondGateway()
	for round := range 100 {
		key := fmt.Sprint("round-", round)
		var pair [2]reply
		var all sync.WaitGroup
		for i, url := range []string{w.url, second} {
			all.Go(func() {
				pair[i] = w.at(url).do("POST", "/v1/projects/demo/vms", w.token, w.vmBody(key), "Idempotency-Key", key)
			})
		}
		all.Wait()
		if pair[0].status != 202 || pair[1].status != 202 || string(pair[0].body) != string(pair[1].body) {
			t.Fatalf("round %d answered %d and %d: %s %s", round, pair[0].status, pair[1].status, pair[0].body, pair[1].body)
		}
		for _, r := range pair {
			if n := len(w.auditOf(r)); n != 1 {
				t.Errorf("round %d: a call left %d audit rows", round, n)
			}
		}
	}
	vms, err := w.store.ListVMs(context.Background(), persistence.VMFilter{Project: w.project.ID, Page: persistence.Page{Limit: 1000}})
	must(t, err)
	if len(vms) != 100 {
		t.Errorf("%d VMs", len(vms))
	}
}
