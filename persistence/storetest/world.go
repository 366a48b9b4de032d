package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// world makes the rows of a test: ids it can tell apart and times it owns.
type world struct {
	t     *testing.T
	ctx   context.Context
	store persistence.Store
	next  atomic.Int64
}

const (
	orgA     hcp.OrgID     = "org_a"
	projectP hcp.ProjectID = "prj_p"
	projectQ hcp.ProjectID = "prj_q"
	clusterC hcp.ClusterID = "cl_c"
	clusterD hcp.ClusterID = "cl_d"
	zoneZ    hcp.ZoneID    = "zone_z"
)

var epoch0 = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)

func (s *suite) world(t *testing.T) *world {
	t.Helper()
	return &world{t: t, ctx: t.Context(), store: s.open(t)}
}

// id makes well-formed ids that sort by age and differ in their last digits.
func (w *world) id(kind hcp.IDKind) string {
	n := w.next.Add(1)
	var u [16]byte
	for i := range 6 {
		u[5-i], u[15-i] = byte(n>>(8*i)), byte(n>>(8*i))
	}
	u[6], u[8] = 0x70, 0x80
	return hcp.FormatID(kind, u)
}

func (w *world) at(seconds int) time.Time { return epoch0.Add(time.Duration(seconds) * time.Second) }

func (w *world) vm(change ...func(*hcp.VM)) hcp.VM {
	id := hcp.VMID(w.id(hcp.KindVM))
	v := hcp.VM{
		ID: id, Name: "vm-" + id.Short(), Org: orgA, Project: projectP, Owner: "alice", Region: "r1", Zone: zoneZ, ZoneName: "local",
		Cluster: clusterC, Lifecycle: hcp.LifecycleCreating, Power: hcp.PowerUnknown, Activity: hcp.JobCreate,
		Desired: hcp.Desired{Power: hcp.PowerRunning}, Image: hcp.ImagePin{ID: "img_1", Name: "debian", Version: "12"},
		Flavor: hcp.FlavorPin{ID: "flv_1", Name: "small", VCPUs: 2, MemoryMiB: 512, DiskGiB: 10}, Hostname: "h",
		Generation: 1, CreatedAt: w.at(0), UpdatedAt: w.at(0),
	}
	for _, c := range change {
		c(&v)
	}
	return v
}

func (w *world) job(v hcp.VM, kind hcp.JobKind, queue int64, change ...func(*hcp.Job)) hcp.Job {
	j := hcp.Job{
		ID: hcp.JobID(w.id(hcp.KindJob)), Kind: kind, State: hcp.JobQueued, VM: v.ID, VMName: v.Name, Region: v.Region, Zone: v.Zone,
		Cluster: v.Cluster, Org: v.Org, Project: v.Project, Owner: v.Owner, Phase: hcp.PhaseForward, Queue: queue,
		Requests: []hcp.Request{{Actor: "alice", Via: "api", At: w.at(0)}}, Steps: []hcp.Step{{Name: "create", State: hcp.StepPending}},
		CreatedAt: w.at(0), Deadline: w.at(7200),
	}
	for _, c := range change {
		c(&j)
	}
	return j
}

func (w *world) event(v hcp.VM, typ hcp.EventType) hcp.Event {
	return hcp.Event{ID: hcp.EventID(w.id(hcp.KindEvent)), Type: typ, Subject: hcp.LRNOfVM(v.Region, v.Project, v.ID), Actor: "alice",
		Time: w.at(1), Org: v.Org, Project: v.Project, Owner: v.Owner, VM: v.ID}
}

func vmActor(id hcp.VMID) persistence.ActorRef {
	return persistence.ActorRef{Kind: persistence.ActorVM, ID: string(id)}
}

// create is the accept commit of a VM, with everything such a commit carries.
func (w *world) create(v hcp.VM) persistence.Commit {
	job := w.job(v, hcp.JobCreate, 1)
	return persistence.Commit{
		Actor: vmActor(v.ID), VM: &v, Jobs: []hcp.Job{job}, Wake: map[hcp.JobID]time.Time{job.ID: w.at(0)},
		Events: []hcp.Event{w.event(v, hcp.EventResourceCreated), w.event(v, hcp.EventJobQueued), w.event(v, hcp.EventJobStarted)},
		Holds:  []persistence.QuotaChange{holdOf(v)}, Claims: []persistence.CapacityChange{claimOf(v)},
		Key: &persistence.IdempotencyRecord{
			IdempotencyKey: hcp.IdempotencyKey{Principal: v.Owner, Project: v.Project, Method: "POST", Path: "/vms", Key: "key-" + string(v.ID), Fingerprint: "f"},
			Status:         202, Body: []byte(`{"resource_id":"` + string(v.ID) + `"}`), VM: v.ID, Job: job.ID, CreatedAt: w.at(0), ExpiresAt: w.at(86400)},
		Audit: []hcp.AuditRecord{{ID: hcp.AuditID(w.id(hcp.KindAudit)), Kind: hcp.AuditCall, Time: w.at(0), Actor: v.Owner, Action: "vm.create",
			Org: v.Org, Project: v.Project, Result: "accepted", Status: 202, RequestID: hcp.RequestID("req-" + string(v.ID))}},
	}
}

func holdOf(v hcp.VM) persistence.QuotaChange {
	return persistence.QuotaChange{VM: v.ID, Subjects: hcp.SubjectsOf(v.Org, v.Project, v.Owner), Amounts: hcp.HoldsOf(v.Flavor)}
}

func releaseOf(v hcp.VM) persistence.QuotaChange {
	return persistence.QuotaChange{VM: v.ID, Subjects: hcp.SubjectsOf(v.Org, v.Project, v.Owner)}
}

func claimOf(v hcp.VM) persistence.CapacityChange {
	return persistence.CapacityChange{Cluster: v.Cluster, Host: "h1", VM: v.ID, Sizes: v.Flavor.Sizes()}
}

// insert is the smallest commit that brings a VM into being.
func (w *world) insert(v hcp.VM) persistence.Commit {
	return persistence.Commit{Actor: vmActor(v.ID), VM: &v}
}

func (w *world) must(c persistence.Commit) {
	w.t.Helper()
	if err := w.store.Commit(w.ctx, c); err != nil {
		w.t.Fatalf("commit of %s: %v", c.Actor.ID, err)
	}
}

func (w *world) refused(c persistence.Commit, kind persistence.RefusalKind) *persistence.Refusal {
	w.t.Helper()
	err := w.store.Commit(w.ctx, c)
	r, is := persistence.RefusalOf(err)
	if !is || r.Kind != kind {
		w.t.Fatalf("commit of %s: got %v, want a refusal of kind %s", c.Actor.ID, err, kind)
	}
	if r.Err == nil || !r.Err.Code.Known() || r.Err.Message == "" {
		w.t.Fatalf("the refusal says nothing to the caller: %+v", r.Err)
	}
	return r
}

// room makes the cluster large.
func (w *world) room(clusters ...hcp.ClusterID) {
	w.t.Helper()
	for _, c := range clusters {
		w.must(persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: c, Limit: hcp.Sizes{VCPUs: 1 << 40, MemoryMiB: 1 << 40, DiskGiB: 1 << 40}}}})
	}
}

// active makes a VM that runs, without jobs.
func active(v *hcp.VM) {
	v.Lifecycle, v.Activity, v.Power, v.PowerAt = hcp.LifecycleActive, "", hcp.PowerRunning, epoch0
	v.Ref = &hcp.ProviderRef{ID: "ref-" + string(v.ID)}
}

// check fails the test with what was attempted.
func (w *world) check(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *world) wantCode(err error, code hcp.Code, what string) {
	w.t.Helper()
	if !hcp.IsCode(err, code) {
		w.t.Fatalf("%s: got %v, want %s", what, err, code)
	}
}

func page(n int) persistence.Page { return persistence.Page{Limit: n} }

// ok is the value of a call that must not fail: ok(store.LoadVM(ctx, id))(w).
func ok[T any](v T, err error) func(*world) T {
	return func(w *world) T {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
		return v
	}
}

// contents is everything a test can read of the store, a line each, to see that
// nothing changed.
func (w *world) contents(vms ...hcp.VMID) []string {
	w.t.Helper()
	var out []string
	add := func(what string, v any, err error) {
		b, jsonErr := json.Marshal(v)
		w.check(jsonErr, "rendering the contents")
		out = append(out, fmt.Sprintf("%s %s %s", what, b, hcp.CodeOf(err)))
	}
	known, err := w.store.ListVMs(w.ctx, persistence.VMFilter{WithDeleted: true, Page: page(1000)})
	add("VMs", known, err)
	for _, id := range vms {
		st, err := w.store.LoadVM(w.ctx, id)
		add("VM", st, err)
		h, err := w.store.VMHistory(w.ctx, id, 0, 1000)
		add("history", h, err)
	}
	jobs, err := w.store.ListJobs(w.ctx, persistence.JobFilter{Page: page(1000)})
	add("jobs", jobs, err)
	due, err := w.store.DueJobs(w.ctx, w.at(1<<20), 1000)
	add("due", due, err)
	audit, err := w.store.ListAudit(w.ctx, persistence.AuditFilter{Page: page(1000)})
	add("audit", audit, err)
	quota, err := w.store.Quota(w.ctx, append(hcp.SubjectsOf(orgA, projectP, "alice"), hcp.SubjectsOf(orgA, projectQ, "alice")...))
	add("quota", quota, err)
	capacity, err := w.store.ClusterCapacity(w.ctx)
	add("capacity", capacity, err)
	for _, kind := range []persistence.RecordKind{persistence.RecordOrg, persistence.RecordProject, persistence.RecordFlavor, persistence.RecordBinding} {
		records, err := w.store.ListRecords(w.ctx, kind, "")
		add("records", records, err)
	}
	clusters, err := w.store.ListClusters(w.ctx)
	add("clusters", clusters, err)
	secret, err := w.store.Secret(w.ctx, "s")
	add("secret", secret, err)
	last, err := w.store.LastPosition(w.ctx)
	add("position", last, err)
	return out
}

func contextWithCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// used checks the three counters of a VM's org, project and owner.
func (w *world) used(v hcp.VM, vms, vcpus, memory int64) {
	w.t.Helper()
	for _, u := range ok(w.store.Quota(w.ctx, hcp.SubjectsOf(v.Org, v.Project, v.Owner)))(w) {
		if len(u.Lines) != 3 || u.Lines[0].Used != vms || u.Lines[1].Used != vcpus || u.Lines[2].Used != memory {
			w.t.Errorf("%s %s uses %+v, want %d %d %d", u.Subject.Scope, u.Subject.ID, u.Lines, vms, vcpus, memory)
		}
	}
}

func (w *world) noDrift() {
	w.t.Helper()
	if d := ok(w.store.VerifyQuota(w.ctx, ""))(w); len(d) != 0 {
		w.t.Errorf("quota drift: %+v", d)
	}
	if d := ok(w.store.VerifyCapacity(w.ctx))(w); len(d) != 0 {
		w.t.Errorf("capacity drift: %+v", d)
	}
}
