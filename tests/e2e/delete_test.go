package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

// B01: a delete during the clone left a running VM. 20 offsets at once, over the
// whole length of the clone and a little beyond it.
func TestB01_DeleteDuringCreateLeavesNothing(t *testing.T) {
	w := system(t, harness.Options{Env: map[string]string{"HCP_PROVIDER__CONCURRENCY": "32"}})
	const seed = 20261201
	random := rand.New(rand.NewPCG(seed, 1))
	ok(t, w.Sim.Delay(t.Context(), simapi.OpClone, 10*time.Second))
	offsets := make([]time.Duration, 20)
	for i := range offsets {
		offsets[i] = time.Duration(random.Int64N(int64(12 * time.Second)))
	}
	wrong := make([]string, len(offsets))
	parallel(len(offsets), func(i int) {
		wrong[i] = deleteDuringCreate(w, name("web", i), offsets[i])
	})
	for i, why := range wrong {
		if why != "" {
			t.Errorf("seed %d, delete after %v: %s", seed, offsets[i], why)
		}
	}
	if n := machines(t, w); n != 0 {
		t.Errorf("%d machines are left", n)
	}
}

func deleteDuringCreate(w *harness.World, name string, offset time.Duration) string {
	var a, d hcp.AcceptedView
	if r := w.P.Post("/vms", name, harness.VMSpec(name)); r.Status != http.StatusAccepted || r.Into(&a) != nil {
		return r.String()
	}
	harness.Pause(offset)
	if r := w.P.Delete("/vms/" + string(a.ResourceID)); r.Status != http.StatusAccepted || r.Into(&d) != nil {
		return r.String()
	}
	deleted, why := w.P.TryEnds(d.JobID, 60*time.Second)
	if why != "" || deleted.State != hcp.JobSucceeded {
		return fmt.Sprintf("the delete: %s %s", why, harness.DescribeJob(deleted))
	}
	created, why := w.P.TryEnds(a.JobID, time.Second)
	// Past the point of no return the create had succeeded before the delete came.
	if why != "" || created.State != hcp.JobCancelled && created.State != hcp.JobSucceeded ||
		created.State == hcp.JobSucceeded && offset < 9*time.Second || len(created.Residue) > 0 {
		return fmt.Sprintf("the create: %s %s", why, harness.DescribeJob(created))
	}
	if r := w.P.Get("/vms/" + string(a.ResourceID)); r.Status != http.StatusNotFound {
		return "the VM is still there: " + r.String()
	}
	return ""
}

// B03: the object was already gone on the hypervisor, and the delete looped.
func TestB03_DeleteOfWhatIsGoneSucceedsWithANote(t *testing.T) {
	w := system(t, harness.Options{})
	v := w.P.Made(t, "web")
	_, err := w.Sim.OOB(t.Context(), simapi.OOBRequest{Verb: "delete", VM: string(v.ID)})
	ok(t, err)
	j := w.P.Succeeds(t, harness.Accepted(t, w.P.Delete("/vms/"+string(v.ID))).JobID, 60*time.Second)
	noted := false
	for _, s := range j.Steps {
		noted = noted || s.Note == "already_absent"
	}
	if !noted {
		t.Fatalf("no step says already_absent: %s", harness.DescribeJob(j))
	}
	w.P.Gone(t, v.ID, 5*time.Second)
}

// B03, second half: absence is believed only from a healthy hypervisor.
func TestB03_DeleteDuringAnOutageKeepsTheRecord(t *testing.T) {
	w := system(t, harness.Options{})
	v := w.P.Made(t, "web")
	ok(t, w.Sim.Down(t.Context(), ""))
	a := harness.Accepted(t, w.P.Delete("/vms/"+string(v.ID)))
	harness.Eventually(t, 30*time.Second, "the delete waits for the hypervisor", func() string {
		j := w.P.Job(t, a.JobID)
		if j.State.Final() {
			t.Fatalf("the delete ended during the outage: %s", harness.DescribeJob(j))
		}
		for _, s := range j.Steps {
			if s.Error != nil && s.Error.Code == hcp.CodeProviderUnavailable {
				return ""
			}
		}
		return harness.DescribeJob(j)
	})
	if r := w.P.Get("/vms/" + string(v.ID)); r.Status != http.StatusOK {
		t.Fatalf("the record went during the outage: %s", r)
	}
	ok(t, w.Sim.Up(t.Context()))
	w.P.Succeeds(t, a.JobID, 90*time.Second)
	w.P.Gone(t, v.ID, 5*time.Second)
}

// B04: a delete was refused because the VM ran.
func TestB04_DeleteStopsARunningVM(t *testing.T) {
	w := system(t, harness.Options{})
	v := w.P.Made(t, "web")
	if v.State != hcp.StateRunning {
		t.Fatalf("the VM is %s", v.State)
	}
	j := w.P.Succeeds(t, harness.Accepted(t, w.P.Delete("/vms/web")).JobID, 60*time.Second)
	steps := map[string]hcp.StepState{}
	for _, s := range j.Steps {
		steps[s.Name] = s.State
	}
	if steps["stop"] != hcp.StepSucceeded || steps["delete"] != hcp.StepSucceeded {
		t.Fatalf("want the steps stop and delete: %s", harness.DescribeJob(j))
	}
	if n := machines(t, w); n != 0 {
		t.Fatalf("%d machines are left", n)
	}
}

// B05: the hypervisor said "deleted" and had not done it; HCP forgot the VM.
func TestB05_DeleteThatDidNothingIsNoticed(t *testing.T) {
	w := system(t, harness.Options{})
	v := w.P.Made(t, "web")
	ok(t, w.Sim.CommitNoop(t.Context(), simapi.OpDelete, simapi.Forever))
	j := w.P.Ends(t, harness.Accepted(t, w.P.Delete("/vms/"+string(v.ID))).JobID, 60*time.Second)
	if j.State != hcp.JobNeedsAttention {
		t.Fatalf("want needs_attention: %s", harness.DescribeJob(j))
	}
	if r := w.P.Get("/vms/" + string(v.ID)); r.Status != http.StatusOK {
		t.Fatalf("the record went: %s", r)
	}
	ok(t, w.Sim.Clear(t.Context()))
	w.P.Succeeds(t, harness.Accepted(t, w.P.Delete("/vms/"+string(v.ID))).JobID, 60*time.Second)
	w.P.Gone(t, v.ID, 5*time.Second)
}
