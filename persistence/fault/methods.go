package fault

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Every other method that takes a context, under the rules of its own name. A
// test compares this list with the contract.

func (f *Store) Generation(ctx context.Context) (string, error) {
	return around(ctx, f, "Generation", func() (string, error) { return f.Store.Generation(ctx) })
}

func (f *Store) LoadVM(ctx context.Context, id hcp.VMID) (persistence.VMState, error) {
	return around(ctx, f, "LoadVM", func() (persistence.VMState, error) { return f.Store.LoadVM(ctx, id) })
}

func (f *Store) GetVM(ctx context.Context, project hcp.ProjectID, idOrName string) (hcp.Known, error) {
	return around(ctx, f, "GetVM", func() (hcp.Known, error) { return f.Store.GetVM(ctx, project, idOrName) })
}

func (f *Store) ListVMs(ctx context.Context, filter persistence.VMFilter) ([]hcp.Known, error) {
	return around(ctx, f, "ListVMs", func() ([]hcp.Known, error) { return f.Store.ListVMs(ctx, filter) })
}

func (f *Store) VMByRef(ctx context.Context, cluster hcp.ClusterID, refID string) (hcp.Known, error) {
	return around(ctx, f, "VMByRef", func() (hcp.Known, error) { return f.Store.VMByRef(ctx, cluster, refID) })
}

func (f *Store) GetJob(ctx context.Context, project hcp.ProjectID, id hcp.JobID) (hcp.Job, error) {
	return around(ctx, f, "GetJob", func() (hcp.Job, error) { return f.Store.GetJob(ctx, project, id) })
}

func (f *Store) ListJobs(ctx context.Context, filter persistence.JobFilter) ([]hcp.Job, error) {
	return around(ctx, f, "ListJobs", func() ([]hcp.Job, error) { return f.Store.ListJobs(ctx, filter) })
}

func (f *Store) DueJobs(ctx context.Context, now time.Time, limit int) ([]persistence.DueJob, error) {
	return around(ctx, f, "DueJobs", func() ([]persistence.DueJob, error) { return f.Store.DueJobs(ctx, now, limit) })
}

func (f *Store) CountJobs(ctx context.Context) (map[hcp.JobKind]map[hcp.JobState]int, error) {
	return around(ctx, f, "CountJobs", func() (map[hcp.JobKind]map[hcp.JobState]int, error) { return f.Store.CountJobs(ctx) })
}

func (f *Store) Publish(ctx context.Context, limit int) ([]hcp.Event, error) {
	return around(ctx, f, "Publish", func() ([]hcp.Event, error) { return f.Store.Publish(ctx, limit) })
}

func (f *Store) EventsAfter(ctx context.Context, filter persistence.EventFilter, pos int64, limit int) (events []hcp.Event, searched int64, err error) {
	events, err = around(ctx, f, "EventsAfter", func() ([]hcp.Event, error) {
		var found []hcp.Event
		found, searched, err = f.Store.EventsAfter(ctx, filter, pos, limit)
		return found, err
	})
	return events, searched, err
}

func (f *Store) FirstPosition(ctx context.Context) (int64, error) {
	return around(ctx, f, "FirstPosition", func() (int64, error) { return f.Store.FirstPosition(ctx) })
}

func (f *Store) LastPosition(ctx context.Context) (int64, error) {
	return around(ctx, f, "LastPosition", func() (int64, error) { return f.Store.LastPosition(ctx) })
}

func (f *Store) VMHistory(ctx context.Context, vm hcp.VMID, beforeSeq int64, limit int) ([]hcp.Event, error) {
	return around(ctx, f, "VMHistory", func() ([]hcp.Event, error) { return f.Store.VMHistory(ctx, vm, beforeSeq, limit) })
}

func (f *Store) PurgeEvents(ctx context.Context, before time.Time) (int64, error) {
	return around(ctx, f, "PurgeEvents", func() (int64, error) { return f.Store.PurgeEvents(ctx, before) })
}

func (f *Store) ListAudit(ctx context.Context, filter persistence.AuditFilter) ([]hcp.AuditRecord, error) {
	return around(ctx, f, "ListAudit", func() ([]hcp.AuditRecord, error) { return f.Store.ListAudit(ctx, filter) })
}

func (f *Store) Quota(ctx context.Context, subjects []hcp.QuotaSubject) ([]persistence.QuotaUse, error) {
	return around(ctx, f, "Quota", func() ([]persistence.QuotaUse, error) { return f.Store.Quota(ctx, subjects) })
}

func (f *Store) VerifyQuota(ctx context.Context, project hcp.ProjectID) ([]persistence.QuotaDrift, error) {
	return around(ctx, f, "VerifyQuota", func() ([]persistence.QuotaDrift, error) { return f.Store.VerifyQuota(ctx, project) })
}

func (f *Store) VerifyCapacity(ctx context.Context) ([]persistence.QuotaDrift, error) {
	return around(ctx, f, "VerifyCapacity", func() ([]persistence.QuotaDrift, error) { return f.Store.VerifyCapacity(ctx) })
}

func (f *Store) ClusterCapacity(ctx context.Context) (map[hcp.ClusterID]persistence.Capacity, error) {
	return around(ctx, f, "ClusterCapacity", func() (map[hcp.ClusterID]persistence.Capacity, error) { return f.Store.ClusterCapacity(ctx) })
}

func (f *Store) GetRecord(ctx context.Context, kind persistence.RecordKind, idOrName string) (persistence.Record, error) {
	return around(ctx, f, "GetRecord", func() (persistence.Record, error) { return f.Store.GetRecord(ctx, kind, idOrName) })
}

func (f *Store) ListRecords(ctx context.Context, kind persistence.RecordKind, parent string) ([]persistence.Record, error) {
	return around(ctx, f, "ListRecords", func() ([]persistence.Record, error) { return f.Store.ListRecords(ctx, kind, parent) })
}

func (f *Store) LoadCluster(ctx context.Context, idOrName string) (persistence.ClusterState, error) {
	return around(ctx, f, "LoadCluster", func() (persistence.ClusterState, error) { return f.Store.LoadCluster(ctx, idOrName) })
}

func (f *Store) ListClusters(ctx context.Context) ([]persistence.ClusterState, error) {
	return around(ctx, f, "ListClusters", func() ([]persistence.ClusterState, error) { return f.Store.ListClusters(ctx) })
}

func (f *Store) Reachability(ctx context.Context) (map[hcp.ClusterID]hcp.Reachability, error) {
	return around(ctx, f, "Reachability", func() (map[hcp.ClusterID]hcp.Reachability, error) { return f.Store.Reachability(ctx) })
}

func (f *Store) PutReachability(ctx context.Context, cluster hcp.ClusterID, r hcp.Reachability) error {
	return aroundErr(ctx, f, "PutReachability", func() error { return f.Store.PutReachability(ctx, cluster, r) })
}

func (f *Store) PutObserved(ctx context.Context, rows []hcp.Observed) error {
	return aroundErr(ctx, f, "PutObserved", func() error { return f.Store.PutObserved(ctx, rows) })
}

func (f *Store) ListObserved(ctx context.Context, cluster hcp.ClusterID) ([]hcp.Observed, error) {
	return around(ctx, f, "ListObserved", func() ([]hcp.Observed, error) { return f.Store.ListObserved(ctx, cluster) })
}

func (f *Store) Secret(ctx context.Context, name string) (hcp.Sealed, error) {
	return around(ctx, f, "Secret", func() (hcp.Sealed, error) { return f.Store.Secret(ctx, name) })
}

func (f *Store) FindKey(ctx context.Context, k hcp.IdempotencyKey) (persistence.IdempotencyRecord, error) {
	return around(ctx, f, "FindKey", func() (persistence.IdempotencyRecord, error) { return f.Store.FindKey(ctx, k) })
}

func (f *Store) PurgeKeys(ctx context.Context, now time.Time) (int64, error) {
	return around(ctx, f, "PurgeKeys", func() (int64, error) { return f.Store.PurgeKeys(ctx, now) })
}

func (f *Store) RingKey(ctx context.Context, purpose string, fresh hcp.Sealed) (hcp.Sealed, error) {
	return around(ctx, f, "RingKey", func() (hcp.Sealed, error) { return f.Store.RingKey(ctx, purpose, fresh) })
}

func (f *Store) Join(ctx context.Context, m persistence.Member) (int64, error) {
	return around(ctx, f, "Join", func() (int64, error) { return f.Store.Join(ctx, m) })
}

func (f *Store) Renew(ctx context.Context, node string, incarnation int64, at time.Time) error {
	return aroundErr(ctx, f, "Renew", func() error { return f.Store.Renew(ctx, node, incarnation, at) })
}

func (f *Store) Leave(ctx context.Context, node string, incarnation int64) error {
	return aroundErr(ctx, f, "Leave", func() error { return f.Store.Leave(ctx, node, incarnation) })
}

func (f *Store) ListMembers(ctx context.Context) ([]persistence.Member, error) {
	return around(ctx, f, "ListMembers", func() ([]persistence.Member, error) { return f.Store.ListMembers(ctx) })
}
