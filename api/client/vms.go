package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// Accepted is the answer to a command: the VM as it is now and the job that works on it.
type Accepted struct {
	hcp.AcceptedView
	Meta Meta `json:"-"`
}

// ListVMs selects VMs; zero fields do not filter.
type ListVMs struct {
	Name      string
	State     hcp.State
	Lifecycle hcp.Lifecycle
	Zone      string
	Labels    map[string]string
	Deleted   bool // also those whose deletion is done
	// Operators only.
	Project string
	Org     string
	Cluster string

	PageSize  int // 0: the server's default
	PageToken string
}

func (l ListVMs) query() url.Values {
	q := url.Values{}
	set(q, "name", l.Name)
	set(q, "state", string(l.State))
	set(q, "lifecycle", string(l.Lifecycle))
	set(q, "zone", l.Zone)
	set(q, "project", l.Project)
	set(q, "org", l.Org)
	set(q, "cluster", l.Cluster)
	for k, v := range l.Labels {
		q.Add("label", k+"="+v)
	}
	if l.Deleted {
		q.Set("deleted", "true")
	}
	page(q, l.PageSize, l.PageToken)
	return q
}

func set(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

func page(q url.Values, size int, token string) {
	if size != 0 {
		q.Set("page_size", strconv.Itoa(size))
	}
	set(q, "page_token", token)
}

// All walks every page of a list. It ends after the first error.
func All[T any](next func(pageToken string) (v1.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		token := ""
		for {
			p, err := next(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if token = p.NextPageToken; token == "" {
				return
			}
		}
	}
}

func (p *Project) CreateVM(ctx context.Context, in v1.CreateVM, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/vms", in, opts)
}

// DryRunVM says what CreateVM would do and writes nothing.
func (p *Project) DryRunVM(ctx context.Context, in v1.CreateVM, opts ...CallOption) (v1.DryRun, error) {
	out, _, err := send[v1.DryRun](ctx, p.c, http.MethodPost, p.path+"/vms?dry_run=true", in, opts)
	return out, err
}

func (p *Project) ListVMs(ctx context.Context, l ListVMs) (v1.Page[hcp.VMView], error) {
	return get[v1.Page[hcp.VMView]](ctx, p.c, p.path+"/vms", l.query())
}

// AllVMs walks every page.
func (p *Project) AllVMs(ctx context.Context, l ListVMs) iter.Seq2[hcp.VMView, error] {
	return All(func(token string) (v1.Page[hcp.VMView], error) {
		l.PageToken = token
		return p.ListVMs(ctx, l)
	})
}

func (p *Project) GetVM(ctx context.Context, vm string) (hcp.VMView, error) {
	return get[hcp.VMView](ctx, p.c, p.path+"/vms/"+escape(vm), nil)
}

// UpdateVM needs IfGeneration or IfAny among the options.
func (p *Project) UpdateVM(ctx context.Context, vm string, in v1.UpdateVM, opts ...CallOption) (hcp.VMView, Meta, error) {
	return send[hcp.VMView](ctx, p.c, http.MethodPatch, p.path+"/vms/"+escape(vm), in, opts)
}

func (p *Project) DeleteVM(ctx context.Context, vm string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodDelete, "/vms/"+escape(vm), nil, opts)
}

func (p *Project) StartVM(ctx context.Context, vm string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/vms/"+escape(vm)+"/start", nil, opts)
}

func (p *Project) StopVM(ctx context.Context, vm string, in v1.StopVM, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/vms/"+escape(vm)+"/stop", in, opts)
}

func (p *Project) RebootVM(ctx context.Context, vm string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/vms/"+escape(vm)+"/reboot", nil, opts)
}

// RefreshVM reads the hypervisor now.
func (p *Project) RefreshVM(ctx context.Context, vm string, opts ...CallOption) (Accepted, error) {
	return p.command(ctx, http.MethodPost, "/vms/"+escape(vm)+"/refresh", nil, opts)
}

// ExplainVM says why the VM is where it is and what may be done.
func (p *Project) ExplainVM(ctx context.Context, vm string) (hcp.Explanation, error) {
	return get[hcp.Explanation](ctx, p.c, p.path+"/vms/"+escape(vm)+"/explain", nil)
}

// HistoryVM lists the VM's events, newest first.
func (p *Project) HistoryVM(ctx context.Context, vm string, pageSize int, pageToken string) (v1.Page[v1.Event], error) {
	q := url.Values{}
	page(q, pageSize, pageToken)
	return get[v1.Page[v1.Event]](ctx, p.c, p.path+"/vms/"+escape(vm)+"/history", q)
}

func (p *Project) command(ctx context.Context, method, path string, body any, opts []CallOption) (Accepted, error) {
	out, meta, err := send[hcp.AcceptedView](ctx, p.c, method, p.path+path, body, opts)
	return Accepted{out, meta}, err
}
