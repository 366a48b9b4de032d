package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

// C07: a new VM showed up in lists only half an hour later.
func TestC07_OwnChangesAtOnceForeignOnesWithinAPoll(t *testing.T) {
	w := system(t, harness.Options{}) // polls each second
	a := w.P.Create(t, "web")
	w.P.Succeeds(t, a.JobID, 60*time.Second)
	var page v1.Page[hcp.VMView]
	if r := w.P.Get("/vms"); r.Into(&page) != nil || len(page.Items) != 1 || page.Items[0].State != hcp.StateRunning {
		t.Fatalf("the list right after the job: %s", r)
	}
	ids, err := w.Sim.OOB(t.Context(), simapi.OOBRequest{Verb: "create", Name: "stranger"})
	ok(t, err)
	harness.Eventually(t, 2*time.Second, "the stranger is listed as an orphan", func() string {
		var orphans struct {
			Items []struct {
				Ref  hcp.ProviderRef `json:"ref"`
				Name string          `json:"name"`
			} `json:"items"`
		}
		r := w.Ops.Get("/v1/ops/clusters/local-sim/orphans")
		if err := r.Into(&orphans); err != nil {
			return err.Error()
		}
		for _, o := range orphans.Items {
			if o.Name == "stranger" && len(ids) == 1 {
				return ""
			}
		}
		return r.String()
	})
}

// C09: a build could hang for ever, as no deadline was set by default.
func TestC09_AHangingCallEndsTheJob(t *testing.T) {
	w := system(t, harness.Options{Env: map[string]string{"HCP_JOBS__STEP_TIMEOUT": "2s", "HCP_PROVIDER__CALL_TIMEOUT": "1s",
		"HCP_JOBS__UNDO_TIMEOUT": "1s"}})
	ok(t, w.Sim.Hang(t.Context(), simapi.OpClone, 0))
	began := time.Now()
	a := w.P.Create(t, "web")
	named := false
	j := hcp.JobView{}
	harness.Eventually(t, 8*time.Second, "the job ends", func() string {
		var e hcp.Explanation
		if r := w.P.Get("/vms/web/explain"); r.Status == http.StatusOK && r.Into(&e) == nil {
			named = named || e.InFlight != nil && !e.InFlight.Since.IsZero() && !e.InFlight.Since.Before(began.Add(-time.Second))
		}
		if j = w.P.Job(t, a.JobID); j.State.Final() {
			return ""
		}
		return harness.DescribeJob(j)
	})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the job took %v to end, want 5 s at most", took)
	}
	if j.State != hcp.JobFailed && j.State != hcp.JobNeedsAttention || j.Error == nil || j.Error.Code != hcp.CodeProviderTimeout {
		t.Errorf("want a job that failed with PROVIDER_TIMEOUT: %s", harness.DescribeJob(j))
	}
	if !named {
		t.Error("explain never named the hung call with its start")
	}
	if v := w.P.VM(t, string(a.ResourceID)); v.State != hcp.StateError {
		t.Errorf("the VM is %s, want error", v.State)
	}
	// The hung call completes late: its machine is found and removed.
	_, err := w.Sim.Release(t.Context(), simapi.OpClone)
	ok(t, err)
	harness.Eventually(t, 30*time.Second, "what came late is removed", func() string {
		list, err := w.Sim.List(t.Context())
		if err != nil {
			return err.Error()
		}
		if len(list.Machines) > 0 {
			return harness.DescribeJob(w.P.Job(t, a.JobID))
		}
		return ""
	})
}

// C09, defaults: with no configuration every deadline is above zero.
func TestC09_EveryDeadlineIsSetByDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("the binaries are not built with -short")
	}
	dir, err := harness.Bin()
	ok(t, err)
	cmd := exec.Command(filepath.Join(dir, "hcpd"), "config", "print")
	cmd.Env = append(harness.CleanEnv(), "XDG_DATA_HOME="+t.TempDir())
	out, err := cmd.Output()
	ok(t, err)
	for _, key := range []string{"step_timeout", "job_timeout", "undo_timeout", "call_timeout"} {
		if !regexp.MustCompile(key + `"?:? *"?[1-9][0-9]*(h|m|s)`).Match(out) {
			t.Errorf("%s has no deadline by default:\n%s", key, out)
		}
	}
}

// D16: jobs had no end time, so that nobody could tell how long they took. The
// sums check this for every job of every test; here for each kind and ending.
func TestD16_EveryJobHasItsTimes(t *testing.T) {
	w := system(t, harness.Options{})
	w.P.Made(t, "web")
	for _, verb := range []string{"stop", "start", "reboot"} {
		w.P.Succeeds(t, harness.Accepted(t, w.P.Post("/vms/web/"+verb, "", nil)).JobID, 60*time.Second)
	}
	ok(t, w.Sim.Fail(t.Context(), simapi.OpClone, "400", 1))
	failed := w.P.Create(t, "bad")
	if j := w.P.Ends(t, failed.JobID, 60*time.Second); j.State != hcp.JobFailed {
		t.Fatalf("want a failed create: %s", harness.DescribeJob(j))
	}
	ok(t, w.Sim.Delay(t.Context(), simapi.OpClone, 2*time.Second))
	cancelled := w.P.Create(t, "never")
	harness.Accepted(t, w.P.Post("/jobs/"+string(cancelled.JobID)+"/cancel", "", nil))
	if j := w.P.Ends(t, cancelled.JobID, 60*time.Second); j.State != hcp.JobCancelled {
		t.Fatalf("want a cancelled create: %s", harness.DescribeJob(j))
	}
	w.P.Succeeds(t, harness.Accepted(t, w.P.Delete("/vms/web")).JobID, 60*time.Second)
	kinds := map[hcp.JobKind]int{}
	for _, j := range w.Jobs() {
		kinds[j.Kind]++
		if why := harness.TimesInOrder(j.JobView); why != "" {
			t.Errorf("%s: %s", harness.DescribeJob(j.JobView), why)
		}
	}
	if kinds[hcp.JobCreate] != 3 || kinds[hcp.JobStop] != 1 || kinds[hcp.JobStart] != 1 || kinds[hcp.JobReboot] != 1 || kinds[hcp.JobDelete] != 1 {
		t.Fatalf("the jobs are %v", kinds)
	}
}
