package client

import (
	"context"
	"net/url"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (p *Project) ListImages(ctx context.Context) (v1.Page[v1.Image], error) {
	return get[v1.Page[v1.Image]](ctx, p.c, p.path+"/images", nil)
}

func (p *Project) GetImage(ctx context.Context, image string) (v1.Image, error) {
	return get[v1.Image](ctx, p.c, p.path+"/images/"+escape(image), nil)
}

func (p *Project) ListFlavors(ctx context.Context) (v1.Page[v1.Flavor], error) {
	return get[v1.Page[v1.Flavor]](ctx, p.c, p.path+"/flavors", nil)
}

func (p *Project) GetFlavor(ctx context.Context, flavor string) (v1.Flavor, error) {
	return get[v1.Flavor](ctx, p.c, p.path+"/flavors/"+escape(flavor), nil)
}

func (p *Project) ListZones(ctx context.Context) (v1.Page[v1.Zone], error) {
	return get[v1.Page[v1.Zone]](ctx, p.c, p.path+"/zones", nil)
}

func (p *Project) GetZone(ctx context.Context, zone string) (v1.Zone, error) {
	return get[v1.Zone](ctx, p.c, p.path+"/zones/"+escape(zone), nil)
}

func (p *Project) Quota(ctx context.Context) (v1.Quota, error) {
	return get[v1.Quota](ctx, p.c, p.path+"/quota", nil)
}

func (p *Project) VerifyQuota(ctx context.Context) (v1.QuotaVerify, error) {
	return get[v1.QuotaVerify](ctx, p.c, p.path+"/quota/verify", nil)
}

// ListAudit selects audit rows; zero fields do not filter.
type ListAudit struct {
	Actor     string
	Action    string
	Kind      hcp.AuditKind
	RequestID string
	Project   string // operators only
	PageSize  int
	PageToken string
}

func (l ListAudit) query() url.Values {
	q := url.Values{}
	set(q, "actor", l.Actor)
	set(q, "action", l.Action)
	set(q, "kind", string(l.Kind))
	set(q, "request_id", l.RequestID)
	set(q, "project", l.Project)
	page(q, l.PageSize, l.PageToken)
	return q
}

func (p *Project) ListAudit(ctx context.Context, l ListAudit) (v1.Page[hcp.AuditRecord], error) {
	return get[v1.Page[hcp.AuditRecord]](ctx, p.c, p.path+"/audit", l.query())
}
