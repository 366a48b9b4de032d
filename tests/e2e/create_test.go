package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

// A01: the clone was made and its answer lost; a retry must find it, not clone again.
func TestA01_LostAnswerOfCreateMakesNoSecondMachine(t *testing.T) {
	w := system(t, harness.Options{})
	ok(t, w.Sim.CommitThenDrop(t.Context(), simapi.OpClone, 1))
	a := w.P.Create(t, "web")
	w.P.Succeeds(t, a.JobID, 60*time.Second)
	count, err := w.Sim.Count(t.Context(), simapi.OpClone)
	ok(t, err)
	if count.Effects != 1 || machines(t, w) != 1 {
		t.Fatalf("%d clones took effect, %d machines; want 1 and 1", count.Effects, machines(t, w))
	}
}

// A01, second half: hcpd is killed between the end of the clone and the commit of it.
func TestA01_KillBetweenCloneAndCommitMakesNoSecondMachine(t *testing.T) {
	w := system(t, harness.Options{})
	for round := range 5 {
		ok(t, w.Sim.ResetCounts(t.Context()))
		// The answers of polls are slow, so that the clone ends before HCP can know.
		ok(t, w.Sim.Delay(t.Context(), simapi.OpClone, 200*time.Millisecond))
		ok(t, w.Sim.Delay(t.Context(), simapi.OpTask, 400*time.Millisecond))
		a := w.P.Create(t, name("web", round))
		harness.Eventually(t, 20*time.Second, "the clone is done on the hypervisor", func() string {
			list, err := w.Sim.List(t.Context())
			if err != nil {
				return err.Error()
			}
			for _, m := range list.Machines {
				if m.Marker == string(a.ResourceID) && m.Lock == nil {
					return ""
				}
			}
			return "not yet"
		})
		w.Kill()
		ok(t, w.Sim.Clear(t.Context()))
		w.Restart()
		w.P.Succeeds(t, a.JobID, 60*time.Second)
		count, err := w.Sim.Count(t.Context(), simapi.OpClone)
		ok(t, err)
		if count.Effects != 1 || machines(t, w) != round+1 {
			t.Fatalf("round %d: %d clones took effect, %d machines; want 1 and %d", round, count.Effects, machines(t, w), round+1)
		}
	}
}

// A02: a client timed out, kept no id and called again; each call made another VM.
func TestA02_SameKeySameVM(t *testing.T) {
	w := system(t, harness.Options{})
	ok(t, w.Sim.Delay(t.Context(), simapi.OpClone, 5*time.Second))
	cut, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	create := harness.Request{Method: http.MethodPost, Path: "/vms", Body: harness.VMSpec("web"), Header: map[string]string{"Idempotency-Key": "K"}}
	first := w.P.Do(cut, create)
	answers := make([]harness.Response, 50)
	parallel(len(answers), func(i int) { answers[i] = w.P.Do(t.Context(), create) })
	vms, jobs, replayed := map[hcp.VMID]int{}, map[hcp.JobID]int{}, 0
	all := answers
	if first.Err == nil {
		all = append(all, first)
	}
	for _, r := range all {
		a := harness.Accepted(t, r)
		vms[a.ResourceID]++
		jobs[a.JobID]++
		if r.Header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if len(vms) != 1 || len(jobs) != 1 {
		t.Fatalf("%d VMs and %d jobs for one key", len(vms), len(jobs))
	}
	// The first call was accepted even when its answer was cut, else one of the 50 was the first.
	if replayed < 49 || first.Err == nil && replayed != 50 {
		t.Fatalf("%d of %d answers are marked as replayed", replayed, len(all))
	}
	a := harness.Accepted(t, answers[0])
	w.P.Succeeds(t, a.JobID, 60*time.Second)
	if n := machines(t, w); n != 1 {
		t.Fatalf("%d machines for one key", n)
	}
}

// A02, after failure: the same key returns the failed job, a new one starts anew.
func TestA02_SameKeyAfterFailureReturnsTheFailedJob(t *testing.T) {
	w := system(t, harness.Options{})
	ok(t, w.Sim.Fail(t.Context(), simapi.OpClone, "400", simapi.Forever))
	a := w.P.Create(t, "web")
	if j := w.P.Ends(t, a.JobID, 60*time.Second); j.State != hcp.JobFailed {
		t.Fatalf("want a failed job: %s", harness.DescribeJob(j))
	}
	again := w.P.Post("/vms", "create-web", harness.VMSpec("web"))
	b := harness.Accepted(t, again)
	if b.JobID != a.JobID || b.ResourceID != a.ResourceID || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("the same key after a failure: %s", again)
	}
	ok(t, w.Sim.Clear(t.Context()))
	c := harness.Accepted(t, w.P.Post("/vms", "another-key", harness.VMSpec("web-2")))
	if c.ResourceID == a.ResourceID {
		t.Fatal("a new key returned the old VM")
	}
	w.P.Succeeds(t, c.JobID, 60*time.Second)
}

// A03: a key was reused with another body, and the first request was changed by it.
func TestA03_KeyReusedWithAnotherBodyIsRefused(t *testing.T) {
	w := system(t, harness.Options{})
	a := harness.Accepted(t, w.P.Post("/vms", "K", harness.VMSpec("web", harness.With("flavor", "small"))))
	r := w.P.Post("/vms", "K", harness.VMSpec("web", harness.With("flavor", "large")))
	if r.Status != http.StatusUnprocessableEntity || r.Code() != hcp.CodeIdempotencyKeyReused {
		t.Fatalf("want 422 IDEMPOTENCY_KEY_REUSED, got %s", r)
	}
	w.P.Succeeds(t, a.JobID, 60*time.Second)
	if v := w.P.VM(t, string(a.ResourceID)); v.Flavor.Name != "small" {
		t.Fatalf("the first VM was touched: %+v", v.Flavor)
	}
}

// A06: parallel creates picked one provider id, all but one failed; worse when
// another client takes ids behind our back.
func TestA06_ParallelCreatesGetDistinctIDs(t *testing.T) {
	w := system(t, harness.Options{})
	ok(t, w.Sim.Delay(t.Context(), simapi.OpClone, 200*time.Millisecond))
	jobs := make([]harness.Response, 50)
	oob := make([]error, 10)
	parallel(len(jobs)+len(oob), func(i int) {
		if i < len(jobs) {
			jobs[i] = w.P.Post("/vms", name("key", i), harness.VMSpec(name("web", i)))
			return
		}
		_, oob[i-len(jobs)] = w.Sim.OOB(t.Context(), simapi.OOBRequest{Verb: "create", Name: name("stranger", i), N: 1})
	})
	for _, err := range oob {
		ok(t, err)
	}
	for _, r := range jobs {
		w.P.Succeeds(t, harness.Accepted(t, r).JobID, 120*time.Second)
	}
	ids := map[string]bool{}
	for _, v := range w.VMs() {
		if v.ProviderRef != nil {
			ids[v.ProviderRef.ID] = true
		}
	}
	if len(ids) != 50 {
		t.Fatalf("%d distinct provider ids for 50 VMs", len(ids))
	}
}

// A09: the name of a deleted VM stayed taken on the hypervisor.
func TestA09_NameIsFreeAtOnceAfterDelete(t *testing.T) {
	w := system(t, harness.Options{})
	a := w.P.Made(t, "web")
	del := harness.Accepted(t, w.P.Delete("/vms/web"))
	b := harness.Accepted(t, w.P.Post("/vms", "second", harness.VMSpec("web")))
	if b.ResourceID == a.ID {
		t.Fatal("the second VM has the id of the first")
	}
	w.P.Succeeds(t, del.JobID, 60*time.Second)
	w.P.Succeeds(t, b.JobID, 60*time.Second)
	c := w.Q.Create(t, "web")
	w.Q.Succeeds(t, c.JobID, 60*time.Second)
	if taken := w.P.Post("/vms", "third", harness.VMSpec("web")); taken.Code() != hcp.CodeConflict {
		t.Fatalf("a second live web in one project: %s", taken)
	}
}

// A11: after a quota refusal a half record made every list fail.
func TestA11_RefusedCreateLeavesNothing(t *testing.T) {
	w := system(t, harness.Options{})
	if r := w.Ops.Put("/v1/ops/quotas/project/"+w.Ready.Project, map[string]any{"limits": map[string]any{"vms": 0}}); r.Status != http.StatusOK {
		t.Fatalf("set the quota: %s", r)
	}
	r := w.P.Post("/vms", "K", harness.VMSpec("web"))
	if r.Status != http.StatusTooManyRequests || r.Code() != hcp.CodeQuotaExceeded || r.Header.Get("Retry-After") != "" {
		t.Fatalf("want 429 QUOTA_EXCEEDED without Retry-After, got %s", r)
	}
	for _, list := range []string{"/vms", "/jobs"} {
		var page struct{ Items []any }
		if r := w.P.Get(list); r.Status != http.StatusOK || r.Into(&page) != nil || len(page.Items) != 0 {
			t.Fatalf("GET %s after the refusal: %s", list, r)
		}
	}
	if r := w.P.Get("/vms/web"); r.Status != http.StatusNotFound {
		t.Fatalf("GET by the refused name: %s", r)
	}
	// The key was not spent: the same call is accepted once the quota allows it.
	if r := w.Ops.Put("/v1/ops/quotas/project/"+w.Ready.Project, map[string]any{"limits": map[string]any{"vms": 1}}); r.Status != http.StatusOK {
		t.Fatalf("set the quota: %s", r)
	}
	w.P.Succeeds(t, harness.Accepted(t, w.P.Post("/vms", "K", harness.VMSpec("web"))).JobID, 60*time.Second)
}
