package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

// A08: several power-on tasks for one VM.
func TestA08_ParallelStartsMakeOneProviderCall(t *testing.T) {
	w := system(t, harness.Options{})
	v := w.P.Made(t, "web", harness.With("power", "stopped"))
	ok(t, w.Sim.ResetCounts(t.Context()))
	ok(t, w.Sim.Delay(t.Context(), simapi.OpPowerOn, 300*time.Millisecond))
	answers := make([]harness.Response, 20)
	parallel(len(answers), func(i int) { answers[i] = w.P.Post("/vms/web/start", name("start", i), nil) })
	jobs := map[hcp.JobID]bool{}
	for _, r := range answers {
		switch {
		case r.Status == http.StatusAccepted:
			jobs[harness.Accepted(t, r).JobID] = true
		case r.Status == http.StatusConflict && r.Reason() == "already_in_state":
		default:
			t.Errorf("a parallel start: %s", r)
		}
	}
	if len(jobs) != 1 {
		t.Fatalf("%d jobs for one transition", len(jobs))
	}
	for id := range jobs {
		w.P.Succeeds(t, id, 30*time.Second)
	}
	count, err := w.Sim.Count(t.Context(), simapi.OpPowerOn)
	ok(t, err)
	if count.Calls != 1 || count.Effects != 1 {
		t.Fatalf("power_on: %+v, want one call and one effect", count)
	}
	if v = w.P.VM(t, string(v.ID)); v.State != hcp.StateRunning {
		t.Fatalf("the VM is %s", v.State)
	}
}
