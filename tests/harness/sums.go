package harness

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// CheckSums is what holds after every test: no job is left, no counter drifts, the
// hypervisor has exactly the machines that HCP knows of, every call left the audit
// rows it must, and no tenant has read anything of the provider.
func (w *World) CheckSums() {
	w.T.Helper()
	w.checkJobs()
	w.checkQuota()
	w.checkMachines()
	w.checkDomains()
	w.checkAudit()
	w.checkLeaks()
}

// pages reads a whole list of operators.
func pages[T any](w *World, path string) []T {
	w.T.Helper()
	var all []T
	for token := ""; ; {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		var p v1.Page[T]
		r := w.Ops.Get(path + sep + "page_size=1000&page_token=" + url.QueryEscape(token))
		if r.Status != http.StatusOK {
			w.T.Fatalf("GET %s: %s", path, r)
		}
		if err := r.Into(&p); err != nil {
			w.T.Fatal(err)
		}
		all = append(all, p.Items...)
		if token = p.NextPageToken; token == "" {
			return all
		}
	}
}

// Jobs lists the jobs of all projects, VMs what is not deleted.
func (w *World) Jobs() []v1.OpsJob { w.T.Helper(); return pages[v1.OpsJob](w, "/v1/ops/jobs") }
func (w *World) VMs() []v1.OpsVM   { w.T.Helper(); return pages[v1.OpsVM](w, "/v1/ops/vms") }

// checkJobs: each job is final, and its times are in order (D16).
func (w *World) checkJobs() {
	w.T.Helper()
	Eventually(w.T, 30*time.Second, "all jobs are final", func() string {
		for _, j := range w.Jobs() {
			if !j.State.Final() {
				return DescribeJob(j.JobView)
			}
		}
		return ""
	})
	for _, j := range w.Jobs() {
		if why := TimesInOrder(j.JobView); why != "" {
			w.T.Errorf("D16: %s: %s", DescribeJob(j.JobView), why)
		}
	}
}

// TimesInOrder says what is wrong with the times of a final job: created, started,
// finished in that order, and its steps inside.
func TimesInOrder(j hcp.JobView) string {
	if j.FinishedAt == nil {
		return "no finished_at"
	}
	if j.FinishedAt.Before(j.CreatedAt) {
		return "finished before it was created"
	}
	if j.StartedAt == nil { // cancelled while it was queued
		if j.State == hcp.JobCancelled {
			return ""
		}
		return "no started_at"
	}
	if j.StartedAt.Before(j.CreatedAt) || j.FinishedAt.Before(*j.StartedAt) {
		return "created, started, finished are out of order"
	}
	for _, s := range j.Steps {
		switch {
		case s.State == hcp.StepPending || s.State == hcp.StepSkipped:
		case s.StartedAt == nil || s.FinishedAt == nil:
			return "step " + s.Name + " lacks a time"
		case s.StartedAt.Before(*j.StartedAt) || s.FinishedAt.Before(*s.StartedAt) || s.FinishedAt.After(*j.FinishedAt):
			return "step " + s.Name + " is not inside the job"
		}
	}
	return ""
}

func (w *World) checkQuota() {
	w.T.Helper()
	for _, c := range []*Client{w.P, w.Q} {
		var v v1.QuotaVerify
		r := c.Get("/quota/verify")
		if err := r.Into(&v); err != nil || r.Status != http.StatusOK {
			w.T.Fatalf("quota verify: %s", r)
		}
		if v.Drift != 0 {
			w.T.Errorf("the quota has drifted: %s", r)
		}
	}
}

// checkMachines: as many marked machines as VM records with a provider_ref, and
// the same ones. Cleanup jobs may still be on their way, so it is a level.
func (w *World) checkMachines() {
	w.T.Helper()
	Eventually(w.T, 20*time.Second, "the hypervisor has what HCP knows of", func() string {
		list, err := w.Sim.List(w.Context())
		if err != nil {
			return err.Error()
		}
		marked := map[string]string{}
		for _, m := range list.Machines {
			if !m.Ours {
				continue
			}
			if other, twice := marked[m.Marker]; twice {
				return fmt.Sprintf("%s is there twice: %s and %s", m.Marker, other, m.ID)
			}
			marked[m.Marker] = m.ID
		}
		for _, v := range w.VMs() {
			if v.ProviderRef == nil || v.Zone != "local" {
				continue
			}
			if marked[string(v.ID)] != v.ProviderRef.ID {
				return fmt.Sprintf("VM %s (%s) is recorded as machine %s, the hypervisor says %q", v.ID, v.State, v.ProviderRef.ID, marked[string(v.ID)])
			}
			delete(marked, string(v.ID))
		}
		if len(marked) > 0 {
			return fmt.Sprintf("%d machines that no record names: %v", len(marked), marked)
		}
		return ""
	})
}

// checkAudit: exactly one row of kind call for each mutation and each refused
// call, with the trace id of the answer; none for reads that succeeded.
func (w *World) checkAudit() {
	w.T.Helper()
	calls := w.calls.snapshot()
	rows := map[string][]hcp.AuditRecord{}
	for _, r := range pages[hcp.AuditRecord](w, "/v1/ops/audit?kind=call") {
		rows[string(r.RequestID)] = append(rows[string(r.RequestID)], r)
	}
	for _, c := range calls {
		if c.request == "" || c.trace == "" {
			w.T.Errorf("%s %s %d: no Request-Id or no Trace-Id", c.method, c.path, c.status)
			continue
		}
		if strings.HasPrefix(c.path, "/v1/ops/audit") {
			continue // read while the rows are read
		}
		got, want := rows[c.request], 1
		if c.method == http.MethodGet && c.status < 400 {
			want = 0
		}
		if len(got) != want {
			w.T.Errorf("%s %s %d (%s): %d audit rows, want %d", c.method, c.path, c.status, c.request, len(got), want)
			continue
		}
		for _, r := range got {
			if r.TraceID != c.trace {
				w.T.Errorf("%s %s %d (%s): the audit row has trace %s, the answer %s", c.method, c.path, c.status, c.request, r.TraceID, c.trace)
			}
		}
	}
}

// checkLeaks looks for words of the provider in everything a tenant has read.
func (w *World) checkLeaks() {
	w.T.Helper()
	words := []string{`"provider_ref"`, `"artefact"`, `"endpoint"`, `"cause"`, `"cl_`, w.Ready.Token, w.Ready.OpsToken, w.Ready.OtherToken,
		strings.TrimPrefix(w.simURL, "http://")}
	status, err := w.Sim.Status(w.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	if w.opt.Libvirt != nil {
		words = append(words, "qemu+", "libvirt-sock", "/var/lib/libvirt")
	}
	for _, h := range status.Hosts {
		words = append(words, `"`+h.Name+`"`, h.Name+".")
	}
	for _, v := range pages[v1.OpsVM](w, "/v1/ops/vms?deleted=true") {
		if v.ProviderRef != nil {
			words = append(words, `"`+v.ProviderRef.ID+`"`)
		}
	}
	for _, c := range w.calls.snapshot() {
		if !c.tenant {
			continue
		}
		for _, word := range words {
			if bytes.Contains(c.body, []byte(word)) {
				w.T.Errorf("a tenant read %q in the answer of %s %s: %s", word, c.method, c.path, c.body)
				return
			}
		}
	}
}
