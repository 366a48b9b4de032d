package harness

import (
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// spy stands in for the test of a world and keeps what it would have failed with.
type spy struct {
	testing.TB
	said []string
}

func (s *spy) Helper() {}
func (s *spy) Errorf(format string, args ...any) {
	s.said = append(s.said, format)
}
func (s *spy) Fatalf(format string, args ...any) {
	s.said = append(s.said, format)
	runtime.Goexit()
}

// Each of the sums notices what it is for: a check that cannot fail proves nothing.
func TestTheSumsNoticeWhatIsWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole system is not started with -short")
	}
	w := Start(t, Options{})
	v := w.P.Made(t, "web")
	if r := w.P.Get("/vms/nobody"); r.Status != http.StatusNotFound {
		t.Fatal(r)
	}
	expect := func(what, format string, check func()) {
		t.Helper()
		s := &spy{TB: t}
		w.T = s
		done := make(chan struct{})
		go func() { defer close(done); check() }()
		<-done
		w.T = t
		if format == "" && len(s.said) == 0 {
			return
		}
		for _, said := range s.said {
			if format != "" && strings.Contains(said, format) {
				return
			}
		}
		t.Errorf("%s: want %q, the sums said %q", what, format, s.said)
	}
	expect("nothing is wrong", "", w.CheckSums)

	all := w.calls.all
	w.calls.add(entry{method: http.MethodPost, path: "/v1/x", status: 202, request: "req_none", trace: "t"})
	expect("a mutation without its audit row", "audit rows, want", w.checkAudit)
	w.calls.all = append([]entry(nil), all...)
	for i := range w.calls.all {
		w.calls.all[i].trace = "another"
	}
	expect("another trace", "the audit row has trace", w.checkAudit)
	w.calls.all = append(all[:len(all):len(all)], entry{method: http.MethodGet, path: "/v1/x", status: 200, tenant: true, body: []byte(`{"endpoint":"x"}`)})
	expect("a leak", "a tenant read", w.checkLeaks)
	w.calls.all = all

	if _, err := w.Sim.OOB(t.Context(), simapi.OOBRequest{Verb: "create", Name: "twin", Marker: string(v.ID)}); err != nil {
		t.Fatal(err)
	}
	expect("two machines with one marker", "not within", w.checkMachines)
	list, err := w.Sim.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Machines {
		if m.Name == "twin" {
			if _, err := w.Sim.OOB(t.Context(), simapi.OOBRequest{Verb: "delete", VM: m.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
