package harness

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
)

// VMSpec is the body of a create; zone local is the simulated hypervisor.
func VMSpec(name string, more ...func(map[string]any)) map[string]any {
	m := map[string]any{"name": name, "image": "tiny", "flavor": "tiny", "zone": "local"}
	for _, f := range more {
		f(m)
	}
	return m
}

// With sets one field of a VMSpec.
func With(field string, value any) func(map[string]any) {
	return func(m map[string]any) { m[field] = value }
}

// Accepted checks a 202 and returns its body.
func Accepted(t testing.TB, r Response) hcp.AcceptedView {
	t.Helper()
	var a hcp.AcceptedView
	if r.Err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("want 202, got %s", r)
	}
	if err := r.Into(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// Create asks for a VM under the key "create-NAME" and returns the 202.
func (c *Client) Create(t testing.TB, name string, more ...func(map[string]any)) hcp.AcceptedView {
	t.Helper()
	return Accepted(t, c.Post("/vms", "create-"+name, VMSpec(name, more...)))
}

// Made creates a VM and waits for its job to succeed.
func (c *Client) Made(t testing.TB, name string, more ...func(map[string]any)) hcp.VMView {
	t.Helper()
	a := c.Create(t, name, more...)
	c.Succeeds(t, a.JobID, 60*time.Second)
	return c.VM(t, string(a.ResourceID))
}

// VM reads one VM.
func (c *Client) VM(t testing.TB, id string) hcp.VMView {
	t.Helper()
	var v hcp.VMView
	r := c.Get("/vms/" + url.PathEscape(id))
	if r.Status != http.StatusOK {
		t.Fatalf("GET vm %s: %s", id, r)
	}
	if err := r.Into(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Job reads one job.
func (c *Client) Job(t testing.TB, id hcp.JobID) hcp.JobView {
	t.Helper()
	j, err := c.job(id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (c *Client) job(id hcp.JobID) (j hcp.JobView, err error) {
	r := c.Get("/jobs/" + string(id))
	if r.Err == nil && r.Status != http.StatusOK {
		return j, fmt.Errorf("GET job %s: %s", id, r)
	}
	return j, r.Into(&j)
}

// Ends waits for the job to be final.
func (c *Client) Ends(t testing.TB, id hcp.JobID, bound time.Duration) hcp.JobView {
	t.Helper()
	j, why := c.TryEnds(id, bound)
	if why != "" {
		t.Fatalf("job %s: not final within %v: %s\nexplain: %s", id, bound, why, c.Get("/vms/"+string(j.Target.ID)+"/explain"))
	}
	return j
}

// TryEnds is Ends for goroutines that are not the test's; why is "" when the job is final.
func (c *Client) TryEnds(id hcp.JobID, bound time.Duration) (last hcp.JobView, why string) {
	why = Poll(bound, func() string {
		j, err := c.job(id)
		if err != nil {
			return err.Error()
		}
		last = j
		if j.State.Final() {
			return ""
		}
		return DescribeJob(j)
	})
	return last, why
}

// Succeeds waits for the job and demands success.
func (c *Client) Succeeds(t testing.TB, id hcp.JobID, bound time.Duration) hcp.JobView {
	t.Helper()
	j := c.Ends(t, id, bound)
	if j.State != hcp.JobSucceeded {
		t.Fatalf("want success: %s", DescribeJob(j))
	}
	return j
}

// DescribeJob is a job in one line.
func DescribeJob(j hcp.JobView) string {
	s := fmt.Sprintf("%s %s is %s (%s)", j.Kind, j.ID, j.State, j.Phase)
	for _, st := range j.Steps {
		s += fmt.Sprintf(" [%s %s x%d", st.Name, st.State, st.Attempts)
		if st.Note != "" {
			s += " " + st.Note
		}
		if st.Error != nil {
			s += fmt.Sprintf(" %s/%s", st.Error.Code, st.Error.Reason)
		}
		s += "]"
	}
	if j.Error != nil {
		s += fmt.Sprintf(" error %s/%s: %s", j.Error.Code, j.Error.Reason, j.Error.Message)
	}
	for _, r := range j.Residue {
		s += " residue " + r.Kind + " " + r.Name
	}
	return s
}

// Gone waits until the VM is a 404.
func (c *Client) Gone(t testing.TB, id hcp.VMID, bound time.Duration) {
	t.Helper()
	Eventually(t, bound, "the VM is gone", func() string {
		if r := c.Get("/vms/" + string(id)); r.Status != http.StatusNotFound {
			return r.String()
		}
		return ""
	})
}
