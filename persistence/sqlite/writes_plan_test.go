package sqlite

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func TestNoWriteScansATable(t *testing.T) {
	// The question whether a provider id is taken missed its partial index and read
	// every VM of the cluster: all that the lane ever runs is looked at, not some of it.
	s, _ := failing(t)
	everyWrite(t, s)
	type statement struct{ query, plan string }
	var scans []statement
	looked := 0
	err := s.lane.exec(t.Context(), func(ctx context.Context, q querier) error {
		for _, query := range slices.Sorted(maps.Keys(s.lane.conn.stmts)) {
			if slices.Contains([]string{"begin immediate", "commit", "rollback"}, query) {
				continue
			}
			rows, err := q.Query(ctx, "explain query plan "+query, make([]any, parameters(query))...)
			if err != nil {
				return err
			}
			looked++
			for rows.Next() {
				var id, parent, unused int64
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if readsMany(detail) {
					scans = append(scans, statement{query, detail})
				}
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 40 {
		t.Errorf("only %d statements were looked at", looked)
	}
	for _, sc := range scans {
		t.Errorf("%s\n  of %s", sc.plan, sc.query)
	}
}

// parameters is the highest placeholder of a statement.
func parameters(query string) int {
	highest := 0
	for _, part := range strings.Split(query, "$")[1:] {
		n := 0
		for _, r := range part {
			if r < '0' || r > '9' {
				break
			}
			n = 10*n + int(r-'0')
		}
		highest = max(highest, n)
	}
	return highest
}

// readsMany tells a step of a plan that reads a number of rows that grows: a scan,
// or a walk along an index made for lists.
func readsMany(detail string) bool {
	for _, list := range []string{"vms_all", "vms_project", "vms_state", "vms_cluster", "vm_labels_value", "jobs_all", "jobs_project", "jobs_vm",
		"audit_project", "audit_request", "quota_holds_project", "observed_cluster", "records_parent"} {
		if strings.Contains(detail, "INDEX "+list) {
			return true
		}
	}
	// The members are few, a subquery has found few, and the events are read in order up to a limit.
	few := strings.HasPrefix(detail, "SCAN members") || strings.HasPrefix(detail, "SCAN (subquery") || strings.HasSuffix(detail, "ROW VALUES CLAUSE") || strings.HasPrefix(detail, "SCAN u") || strings.Contains(detail, "events USING INDEX events_")
	return strings.HasPrefix(detail, "SCAN") && !few
}

// everyWrite makes the lane run each of its statements.
func everyWrite(t *testing.T, s *Store) {
	t.Helper()
	ctx, at := t.Context(), time.UnixMicro(1_000_000).UTC()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	v := hcp.VM{ID: "vm_1", Name: "a", Org: "o", Project: "p", Owner: "u", Cluster: "c", Lifecycle: hcp.LifecycleActive,
		Ref: &hcp.ProviderRef{ID: "1"}, Labels: map[string]string{"a": "b"}, Flavor: hcp.FlavorPin{VCPUs: 1, MemoryMiB: 1}, CreatedAt: at}
	actor := persistence.ActorRef{Kind: persistence.ActorVM, ID: "vm_1"}
	job := hcp.Job{ID: "job_1", VM: v.ID, State: hcp.JobRunning, CreatedAt: at}
	key := hcp.IdempotencyKey{Principal: "u", Key: "k"}
	sizes := v.Flavor.Sizes()
	record := func(version int64, drop bool) persistence.RecordChange {
		return persistence.RecordChange{Record: persistence.Record{Kind: persistence.RecordZone, ID: "z", Name: "z", Version: version}, Delete: drop}
	}
	event := []hcp.Event{{ID: "evt_1", Time: at}}
	check(s.Commit(ctx, persistence.Commit{Actor: actor, VM: &v, Jobs: []hcp.Job{job}, Events: event,
		Holds:    []persistence.QuotaChange{{VM: v.ID, Subjects: hcp.SubjectsOf("o", "p", "u"), Amounts: hcp.HoldsOf(v.Flavor)}},
		Claims:   []persistence.CapacityChange{{Cluster: "c", VM: v.ID, Sizes: sizes}},
		Capacity: []persistence.CapacityLimit{{Cluster: "c", Limit: sizes}}, Records: []persistence.RecordChange{record(0, false)},
		Key: &persistence.IdempotencyRecord{IdempotencyKey: key}, Audit: []hcp.AuditRecord{{ID: "aud_1"}}, Secrets: []persistence.SecretChange{{Name: "s", Sealed: hcp.Sealed{1}}}}))
	check(s.PutObserved(ctx, []hcp.Observed{{VM: v.ID, Cluster: "c", Power: hcp.PowerRunning, At: at}}))
	for seq, change := range []func(){func() {}, func() { v.Activity = hcp.JobStop }, func() { v.Name, v.Ref, v.Labels = "b", &hcp.ProviderRef{ID: "2"}, nil }} {
		change()
		check(s.Commit(ctx, persistence.Commit{Actor: actor, Epoch: 1, Seq: int64(seq + 1), VM: &v, Jobs: []hcp.Job{job}}))
	}
	job.State = hcp.JobFailed
	check(s.Commit(ctx, persistence.Commit{Actor: actor, Epoch: 1, Seq: 4, Jobs: []hcp.Job{job}, DropObserved: []hcp.VMID{v.ID},
		Holds: []persistence.QuotaChange{{VM: v.ID}}, Claims: []persistence.CapacityChange{{Cluster: "c", VM: v.ID}},
		Records: []persistence.RecordChange{record(1, false), record(2, true)}, Secrets: []persistence.SecretChange{{Name: "s"}}}))
	cl := hcp.Cluster{ID: "c", Name: "c"}
	clusterActor := persistence.ActorRef{Kind: persistence.ActorCluster, ID: "c"}
	check(s.Commit(ctx, persistence.Commit{Actor: clusterActor, Cluster: &cl}))
	check(s.Commit(ctx, persistence.Commit{Actor: clusterActor, Epoch: 1, Seq: 1}))
	check(s.Commit(ctx, persistence.Commit{Actor: clusterActor, Epoch: 1, Seq: 2, Cluster: &cl}))
	check(s.PutReachability(ctx, "c", hcp.Reachability{}))
	_, err := s.Publish(ctx, 10)
	check(err)
	_, err = s.PurgeEvents(ctx, at)
	check(err)
	_, err = s.PurgeKeys(ctx, at)
	check(err)
	_, err = s.RingKey(ctx, "k", hcp.Sealed{1})
	check(err)
	incarnation, err := s.Join(ctx, persistence.Member{Node: "n"})
	check(err)
	check(s.Renew(ctx, "n", incarnation, at))
	check(s.Leave(ctx, "n", incarnation))
}
