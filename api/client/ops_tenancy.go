package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (o *Ops) ListOrgs(ctx context.Context) (v1.Page[v1.Org], error) {
	return get[v1.Page[v1.Org]](ctx, o.c, ops+"/orgs", nil)
}

func (o *Ops) GetOrg(ctx context.Context, org string) (v1.Org, error) {
	return get[v1.Org](ctx, o.c, ops+"/orgs/"+escape(org), nil)
}

func (o *Ops) CreateOrg(ctx context.Context, in v1.CreateOrg, opts ...CallOption) (v1.Org, error) {
	return mutate[v1.Org](ctx, o.c, http.MethodPost, ops+"/orgs", in, opts)
}

func (o *Ops) DeleteOrg(ctx context.Context, org string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/orgs/"+escape(org), opts)
}

// ListProjects lists all, or those of one org.
func (o *Ops) ListProjects(ctx context.Context, org string) (v1.Page[v1.Project], error) {
	q := url.Values{}
	set(q, "org", org)
	return get[v1.Page[v1.Project]](ctx, o.c, ops+"/projects", q)
}

func (o *Ops) GetProject(ctx context.Context, project string) (v1.Project, error) {
	return get[v1.Project](ctx, o.c, ops+"/projects/"+escape(project), nil)
}

func (o *Ops) CreateProject(ctx context.Context, in v1.CreateProject, opts ...CallOption) (v1.Project, error) {
	return mutate[v1.Project](ctx, o.c, http.MethodPost, ops+"/projects", in, opts)
}

func (o *Ops) DeleteProject(ctx context.Context, project string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/projects/"+escape(project), opts)
}

// GetQuota shows one counter: org and project by name or id, a user as
// project/subject.
func (o *Ops) GetQuota(ctx context.Context, scope hcp.QuotaScope, id string) (v1.QuotaSubject, error) {
	return get[v1.QuotaSubject](ctx, o.c, ops+"/quotas/"+escape(string(scope))+"/"+escape(id), nil)
}

// SetQuota sets the limits that are present.
func (o *Ops) SetQuota(ctx context.Context, scope hcp.QuotaScope, id string, in v1.SetQuota, opts ...CallOption) (v1.QuotaSubject, error) {
	return mutate[v1.QuotaSubject](ctx, o.c, http.MethodPut, ops+"/quotas/"+escape(string(scope))+"/"+escape(id), in, opts)
}

func (o *Ops) ListBindings(ctx context.Context, subject string) (v1.Page[hcp.RoleBinding], error) {
	q := url.Values{}
	set(q, "subject", subject)
	return get[v1.Page[hcp.RoleBinding]](ctx, o.c, ops+"/role-bindings", q)
}

func (o *Ops) CreateBinding(ctx context.Context, in v1.CreateBinding, opts ...CallOption) (hcp.RoleBinding, error) {
	return mutate[hcp.RoleBinding](ctx, o.c, http.MethodPost, ops+"/role-bindings", in, opts)
}

func (o *Ops) DeleteBinding(ctx context.Context, id string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/role-bindings/"+escape(id), opts)
}

func (o *Ops) ListRoles(ctx context.Context) (v1.Page[v1.Role], error) {
	return get[v1.Page[v1.Role]](ctx, o.c, ops+"/roles", nil)
}
