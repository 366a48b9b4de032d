package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/tests/harness"
)

// G01: the same id stood on two pages while others were missing. 1,000 VMs made
// by 32 clients at once, so that many share a moment, while more are being made.
func TestG01_PagesHoldEachVMOnce(t *testing.T) {
	w := system(t, harness.Options{})
	const n, clients = 1000, 32
	jobs := make([]harness.Response, n)
	parallel(clients, func(c int) {
		for i := c; i < n; i += clients {
			jobs[i] = w.P.Post("/vms", name("key", i), harness.VMSpec(name("web", i), harness.With("power", "stopped")))
		}
	})
	want := map[hcp.VMID]bool{}
	for _, r := range jobs {
		want[harness.Accepted(t, r).ResourceID] = true
	}
	seen, token := map[hcp.VMID]int{}, ""
	for pages := 0; ; pages++ {
		var p v1.Page[hcp.VMView]
		r := w.P.Get("/vms?page_size=7&page_token=" + url.QueryEscape(token))
		if r.Status != http.StatusOK || r.Into(&p) != nil {
			t.Fatalf("page %d: %s", pages, r)
		}
		if pages == 10 { // a newer one must not shift the pages
			w.P.Create(t, "late", harness.With("power", "stopped"))
		}
		for _, v := range p.Items {
			seen[v.ID]++
		}
		if token = p.NextPageToken; token == "" {
			break
		}
	}
	for id := range want {
		if seen[id] != 1 {
			t.Fatalf("%s stands on %d pages", id, seen[id])
		}
	}
	if len(seen) != n {
		t.Fatalf("%d distinct VMs, want %d", len(seen), n)
	}
	for _, r := range jobs {
		w.P.Succeeds(t, harness.Accepted(t, r).JobID, 120*time.Second)
	}
}

// G12: odd page sizes, filters and tokens gave 500 or everything.
func TestG12_AbuseOfListsIs400(t *testing.T) {
	w := system(t, harness.Options{})
	for i := range 3 {
		w.P.Made(t, name("web", i), harness.With("power", "stopped"))
	}
	var p v1.Page[hcp.VMView]
	if err := w.P.Get("/vms?page_size=1").Into(&p); err != nil || p.NextPageToken == "" {
		t.Fatalf("the first page: %v", err)
	}
	token := p.NextPageToken
	tampered := []byte(token)
	tampered[len(tampered)/2] ^= 1
	for _, query := range []string{
		"page_size=0", "page_size=-1", "page_size=1000000000", "page_size=abc", "page_size=", "page_size=1.5", "page_size=99999999999999999999",
		"surprise=1", "sort=name", "state=nonsense", "label=novalue", "name=" + strings.Repeat("x", 10_000), "label=" + strings.Repeat("k", 10_000) + "=v",
		"page_token=" + url.QueryEscape(string(tampered)), "page_token=abc", "page_token=" + url.QueryEscape(token) + "&name=web-1",
		"page_token=" + strings.Repeat("A", 10_000), "page_size=1&page_size=2", "page_token=%00", "name=%ff%fe",
	} {
		for _, list := range []string{"/vms?", "/jobs?"} {
			if list == "/jobs?" && (strings.HasPrefix(query, "name=") || strings.HasPrefix(query, "label=")) {
				continue // parameters of VMs only; unknown ones are tried above
			}
			r := w.P.Get(list + query)
			if r.Status != http.StatusBadRequest || r.Code() != hcp.CodeInvalidRequest {
				t.Errorf("GET %s%.60s: want 400 INVALID_REQUEST, got %s", list, query, r)
			}
		}
	}
	// A token of one project is worthless in another.
	if r := w.Q.Get("/vms?page_size=1&page_token=" + url.QueryEscape(token)); r.Status != http.StatusBadRequest {
		t.Errorf("another project's token: %s", r)
	}
}
