package client

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

const ops = "/v1/ops"

// --- clusters ---

func (o *Ops) ListClusters(ctx context.Context) (v1.Page[hcp.ClusterView], error) {
	return get[v1.Page[hcp.ClusterView]](ctx, o.c, ops+"/clusters", nil)
}

func (o *Ops) GetCluster(ctx context.Context, cluster string) (hcp.ClusterView, error) {
	return get[hcp.ClusterView](ctx, o.c, ops+"/clusters/"+escape(cluster), nil)
}

func (o *Ops) RegisterCluster(ctx context.Context, in v1.RegisterCluster, opts ...CallOption) (hcp.ClusterView, error) {
	return mutate[hcp.ClusterView](ctx, o.c, http.MethodPost, ops+"/clusters", in, opts)
}

func (o *Ops) UpdateCluster(ctx context.Context, cluster string, in v1.UpdateCluster, opts ...CallOption) (hcp.ClusterView, error) {
	return mutate[hcp.ClusterView](ctx, o.c, http.MethodPatch, ops+"/clusters/"+escape(cluster), in, opts)
}

func (o *Ops) DeleteCluster(ctx context.Context, cluster string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/clusters/"+escape(cluster), opts)
}

// ProbeCluster looks at the cluster now.
func (o *Ops) ProbeCluster(ctx context.Context, cluster string, opts ...CallOption) (hcp.ClusterView, error) {
	return mutate[hcp.ClusterView](ctx, o.c, http.MethodPost, ops+"/clusters/"+escape(cluster)+"/probe", nil, opts)
}

func (o *Ops) SetMaintenance(ctx context.Context, cluster string, enabled bool, opts ...CallOption) (hcp.ClusterView, error) {
	return mutate[hcp.ClusterView](ctx, o.c, http.MethodPost, ops+"/clusters/"+escape(cluster)+"/maintenance", v1.SetMaintenance{Enabled: enabled}, opts)
}

func (o *Ops) SetCredentials(ctx context.Context, cluster string, in v1.SetCredentials, opts ...CallOption) (hcp.ClusterView, error) {
	return mutate[hcp.ClusterView](ctx, o.c, http.MethodPost, ops+"/clusters/"+escape(cluster)+"/credentials", in, opts)
}

func (o *Ops) ListOrphans(ctx context.Context, cluster string) (hcp.OrphanList, error) {
	return get[hcp.OrphanList](ctx, o.c, ops+"/clusters/"+escape(cluster)+"/orphans", nil)
}

// --- zones ---

func (o *Ops) ListZones(ctx context.Context) (v1.Page[v1.OpsZone], error) {
	return get[v1.Page[v1.OpsZone]](ctx, o.c, ops+"/zones", nil)
}

func (o *Ops) GetZone(ctx context.Context, zone string) (v1.OpsZone, error) {
	return get[v1.OpsZone](ctx, o.c, ops+"/zones/"+escape(zone), nil)
}

func (o *Ops) CreateZone(ctx context.Context, in v1.PutZone, opts ...CallOption) (v1.OpsZone, error) {
	return mutate[v1.OpsZone](ctx, o.c, http.MethodPost, ops+"/zones", in, opts)
}

// PutZone replaces name, region and members of a zone.
func (o *Ops) PutZone(ctx context.Context, zone string, in v1.PutZone, opts ...CallOption) (v1.OpsZone, error) {
	return mutate[v1.OpsZone](ctx, o.c, http.MethodPut, ops+"/zones/"+escape(zone), in, opts)
}

func (o *Ops) DeleteZone(ctx context.Context, zone string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/zones/"+escape(zone), opts)
}

// --- images ---

func (o *Ops) ListImages(ctx context.Context) (v1.Page[v1.OpsImage], error) {
	return get[v1.Page[v1.OpsImage]](ctx, o.c, ops+"/images", nil)
}

func (o *Ops) GetImage(ctx context.Context, image string) (v1.OpsImage, error) {
	return get[v1.OpsImage](ctx, o.c, ops+"/images/"+escape(image), nil)
}

func (o *Ops) CreateImage(ctx context.Context, in v1.CreateImage, opts ...CallOption) (v1.OpsImage, error) {
	return mutate[v1.OpsImage](ctx, o.c, http.MethodPost, ops+"/images", in, opts)
}

func (o *Ops) UpdateImage(ctx context.Context, image string, in v1.UpdateImage, opts ...CallOption) (v1.OpsImage, error) {
	return mutate[v1.OpsImage](ctx, o.c, http.MethodPatch, ops+"/images/"+escape(image), in, opts)
}

func (o *Ops) DeleteImage(ctx context.Context, image string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/images/"+escape(image), opts)
}

// SetArtefact registers an artefact that the cluster already has.
func (o *Ops) SetArtefact(ctx context.Context, image, cluster, artefact string, opts ...CallOption) (v1.OpsImage, error) {
	return mutate[v1.OpsImage](ctx, o.c, http.MethodPut, artefactPath(image, cluster), v1.SetArtefact{Artefact: artefact}, opts)
}

// UploadArtefact streams the image file to the cluster; the server checks the
// sha256 of the image record while it passes. size is the file's length.
func (o *Ops) UploadArtefact(ctx context.Context, image, cluster string, content io.Reader, size int64, opts ...CallOption) (v1.OpsImage, error) {
	var out v1.OpsImage
	r := request{method: http.MethodPut, path: artefactPath(image, cluster), stream: content, size: size}
	for _, op := range opts {
		op(&r)
	}
	_, err := o.c.call(ctx, r, &out)
	return out, err
}

func artefactPath(image, cluster string) string {
	return ops + "/images/" + escape(image) + "/artefacts/" + escape(cluster)
}

// --- flavors ---

func (o *Ops) ListFlavors(ctx context.Context) (v1.Page[v1.Flavor], error) {
	return get[v1.Page[v1.Flavor]](ctx, o.c, ops+"/flavors", nil)
}

func (o *Ops) GetFlavor(ctx context.Context, flavor string) (v1.Flavor, error) {
	return get[v1.Flavor](ctx, o.c, ops+"/flavors/"+escape(flavor), nil)
}

func (o *Ops) CreateFlavor(ctx context.Context, in v1.CreateFlavor, opts ...CallOption) (v1.Flavor, error) {
	return mutate[v1.Flavor](ctx, o.c, http.MethodPost, ops+"/flavors", in, opts)
}

func (o *Ops) UpdateFlavor(ctx context.Context, flavor string, in v1.UpdateFlavor, opts ...CallOption) (v1.Flavor, error) {
	return mutate[v1.Flavor](ctx, o.c, http.MethodPatch, ops+"/flavors/"+escape(flavor), in, opts)
}

func (o *Ops) DeleteFlavor(ctx context.Context, flavor string, opts ...CallOption) error {
	return remove(ctx, o.c, ops+"/flavors/"+escape(flavor), opts)
}

// --- VMs, jobs, audit, system ---

func (o *Ops) ListVMs(ctx context.Context, l ListVMs) (v1.Page[v1.OpsVM], error) {
	return get[v1.Page[v1.OpsVM]](ctx, o.c, ops+"/vms", l.query())
}

func (o *Ops) AllVMs(ctx context.Context, l ListVMs) iter.Seq2[v1.OpsVM, error] {
	return All(func(token string) (v1.Page[v1.OpsVM], error) {
		l.PageToken = token
		return o.ListVMs(ctx, l)
	})
}

// GetVM takes a VM id or LRN: names are a project's.
func (o *Ops) GetVM(ctx context.Context, vm string) (v1.OpsVM, error) {
	return get[v1.OpsVM](ctx, o.c, ops+"/vms/"+escape(vm), nil)
}

// ExplainVM also shows the provider's words.
func (o *Ops) ExplainVM(ctx context.Context, vm string) (hcp.Explanation, error) {
	return get[hcp.Explanation](ctx, o.c, ops+"/vms/"+escape(vm)+"/explain", nil)
}

func (o *Ops) ListJobs(ctx context.Context, l ListJobs) (v1.Page[v1.OpsJob], error) {
	return get[v1.Page[v1.OpsJob]](ctx, o.c, ops+"/jobs", l.query())
}

func (o *Ops) GetJob(ctx context.Context, job string) (v1.OpsJob, error) {
	return get[v1.OpsJob](ctx, o.c, ops+"/jobs/"+escape(job), nil)
}

func (o *Ops) ListAudit(ctx context.Context, l ListAudit) (v1.Page[hcp.AuditRecord], error) {
	return get[v1.Page[hcp.AuditRecord]](ctx, o.c, ops+"/audit", l.query())
}

func (o *Ops) Status(ctx context.Context) (v1.SystemStatus, error) {
	return get[v1.SystemStatus](ctx, o.c, ops+"/system/status", nil)
}

func mutate[T any](ctx context.Context, c *Client, method, path string, body any, opts []CallOption) (T, error) {
	out, _, err := send[T](ctx, c, method, path, body, opts)
	return out, err
}

func remove(ctx context.Context, c *Client, path string, opts []CallOption) error {
	_, _, err := send[struct{}](ctx, c, http.MethodDelete, path, nil, opts)
	return err
}
