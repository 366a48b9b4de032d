package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// ListJobs selects jobs; zero fields do not filter.
type ListJobs struct {
	VM    string // a VM's name, id or LRN; operators: its id
	Kind  hcp.JobKind
	State hcp.JobState
	// Operators only.
	Project string
	Cluster string

	PageSize  int
	PageToken string
}

func (l ListJobs) query() url.Values {
	q := url.Values{}
	set(q, "vm", l.VM)
	set(q, "kind", string(l.Kind))
	set(q, "state", string(l.State))
	set(q, "project", l.Project)
	set(q, "cluster", l.Cluster)
	page(q, l.PageSize, l.PageToken)
	return q
}

func (p *Project) ListJobs(ctx context.Context, l ListJobs) (v1.Page[hcp.JobView], error) {
	return get[v1.Page[hcp.JobView]](ctx, p.c, p.path+"/jobs", l.query())
}

func (p *Project) GetJob(ctx context.Context, job string) (hcp.JobView, error) {
	return get[hcp.JobView](ctx, p.c, p.path+"/jobs/"+escape(job), nil)
}

// WaitJobOnce waits on the server, at most timeout (0 to 60 s), and returns the job finished or not.
func (p *Project) WaitJobOnce(ctx context.Context, job string, timeout time.Duration) (hcp.JobView, error) {
	q := url.Values{"timeout": {strconv.FormatInt(timeout.Milliseconds(), 10) + "ms"}}
	return get[hcp.JobView](ctx, p.c, p.path+"/jobs/"+escape(job)+"/wait", q)
}

// WaitJob waits until the job is final or ctx ends. progress, when not nil, gets
// the job each time it was read. Trouble of the server within ctx is waited out.
func (p *Project) WaitJob(ctx context.Context, job string, progress func(hcp.JobView)) (hcp.JobView, error) {
	for {
		// Without anybody to tell there is no reason to come back early.
		step := 30 * time.Second
		if progress != nil {
			step = time.Second
		}
		j, err := p.WaitJobOnce(ctx, job, step)
		switch {
		case err != nil && ctx.Err() == nil && hcp.IsCode(err, hcp.CodeUnavailable):
			if c := p.c.sleep(ctx, time.Second); c != nil {
				return j, c
			}
			continue
		case err != nil:
			return j, err
		}
		if progress != nil {
			progress(j)
		}
		if j.State.Final() {
			return j, nil
		}
	}
}

// CancelJob asks the job to stop at the next point where it can.
func (p *Project) CancelJob(ctx context.Context, job string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/jobs/"+escape(job)+"/cancel", nil, opts)
}

// RetryJob tries a failed create again on the same VM.
func (p *Project) RetryJob(ctx context.Context, job string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/jobs/"+escape(job)+"/retry", nil, opts)
}
