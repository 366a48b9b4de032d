package sqlite_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// planner answers every query, and notes how the engine means to find its rows.
type planner struct {
	sqlstore.Snapshotter
	t     *testing.T
	plans []string
}

func (p *planner) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	p.explain(ctx, query, args)
	return p.Snapshotter.Query(ctx, query, args...)
}

func (p *planner) QueryRow(ctx context.Context, query string, args ...any) sqlstore.Row {
	p.explain(ctx, query, args)
	return p.Snapshotter.QueryRow(ctx, query, args...)
}

func (p *planner) explain(ctx context.Context, query string, args []any) {
	rows, err := p.Snapshotter.Query(ctx, "explain query plan "+query, args...)
	must(p.t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		must(p.t, rows.Scan(&id, &parent, &unused, &detail))
		p.plans = append(p.plans, detail)
	}
	must(p.t, rows.Err())
}

func TestListsWalkAnIndexInTheirOwnOrder(t *testing.T) {
	// A list that scans or sorts is quick in every test and slow at 100,000 rows.
	s := open(t, filepath.Join(t.TempDir(), "hcp.db"), true)
	must(t, s.PutReachability(t.Context(), "cl_2", hcp.Reachability{}))
	after := &persistence.Position{CreatedAt: time.Unix(1, 0), ID: "x"}
	page := persistence.Page{Limit: 100, After: after}
	labels := map[string]string{"a": "1", "b": "2"}
	vms := func(f persistence.VMFilter) func(sqlstore.Reads) error {
		f.Page = page
		return func(r sqlstore.Reads) error { _, err := r.ListVMs(t.Context(), f); return err }
	}
	for name, c := range map[string]struct {
		run   func(sqlstore.Reads) error
		index string // which must be walked
		sorts bool   // few rows by nature
	}{
		"all":               {vms(persistence.VMFilter{}), "vms_all", false},
		"project":           {vms(persistence.VMFilter{Project: "p"}), "vms_project", false},
		"with deleted":      {vms(persistence.VMFilter{Project: "p", WithDeleted: true}), "vms_project", false},
		"state":             {vms(persistence.VMFilter{Project: "p", State: hcp.StateError}), "vms_state", false},
		"deleted":           {vms(persistence.VMFilter{Project: "p", State: hcp.StateDeleted}), "vms_state", false},
		"cluster":           {vms(persistence.VMFilter{Cluster: "c"}), "vms_cluster", false},
		"label":             {vms(persistence.VMFilter{Project: "p", Labels: labels}), "vm_labels_value", false},
		"label and state":   {vms(persistence.VMFilter{Project: "p", Labels: labels, State: hcp.StateRunning}), "vm_labels_value", false},
		"name":              {vms(persistence.VMFilter{Name: "n"}), "vms_name", true},
		"name in a project": {vms(persistence.VMFilter{Project: "p", Name: "n", State: hcp.StateRunning}), "vms_name", true},
		"jobs of a project": {func(r sqlstore.Reads) error {
			_, err := r.ListJobs(t.Context(), persistence.JobFilter{Project: "p", Page: page})
			return err
		}, "jobs_project", false},
		"jobs": {func(r sqlstore.Reads) error {
			_, err := r.ListJobs(t.Context(), persistence.JobFilter{Page: page})
			return err
		}, "jobs_all", false},
		"jobs of a VM": {func(r sqlstore.Reads) error {
			_, err := r.ListJobs(t.Context(), persistence.JobFilter{Project: "p", VM: "v", Page: page})
			return err
		}, "jobs_vm", true},
		"due jobs": {func(r sqlstore.Reads) error { _, err := r.DueJobs(t.Context(), time.Unix(1, 0), 10); return err }, "jobs_due", false},
		"audit": {func(r sqlstore.Reads) error {
			_, err := r.ListAudit(t.Context(), persistence.AuditFilter{Page: page})
			return err
		}, "sqlite_autoindex_audit", false},
		"audit of a project": {func(r sqlstore.Reads) error {
			_, err := r.ListAudit(t.Context(), persistence.AuditFilter{Project: "p", Page: page})
			return err
		}, "audit_project", false},
		"audit of a request": {func(r sqlstore.Reads) error {
			_, err := r.ListAudit(t.Context(), persistence.AuditFilter{RequestID: "r", Page: page})
			return err
		}, "audit_request", true},
		"unpublished": {func(r sqlstore.Reads) error { _, err := r.Unpublished(t.Context()); return err }, "events_unpublished", false},
		"history":     {func(r sqlstore.Reads) error { _, err := r.VMHistory(t.Context(), "v", 5, 10); return err }, "events_actor", false},
		"observed":    {func(r sqlstore.Reads) error { _, err := r.ListObserved(t.Context(), "c"); return err }, "observed_cluster", false},
		"get by name": {func(r sqlstore.Reads) error { _, err := r.GetVM(t.Context(), "p", "n"); return ignoreNotFound(err) }, "vms_name", false},
		"load":        {func(r sqlstore.Reads) error { _, err := r.LoadVM(t.Context(), "v"); return ignoreNotFound(err) }, "jobs_vm", true},
		"by ref":      {func(r sqlstore.Reads) error { _, err := r.VMByRef(t.Context(), "c", "1"); return ignoreNotFound(err) }, "vms_ref", false},
	} {
		p := &planner{Snapshotter: s.Reads.DB, t: t}
		must(t, c.run(sqlstore.Reads{DB: p}))
		plan := strings.Join(p.plans, "\n")
		if !strings.Contains(plan, c.index) {
			t.Errorf("%s does not walk %s:\n%s", name, c.index, plan)
		}
		for _, line := range p.plans {
			if strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "INDEX") && !strings.Contains(line, "reachability") && !strings.HasPrefix(line, "SCAN n") && !strings.HasPrefix(line, "SCAN last") ||
				!c.sorts && strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("%s scans or sorts: %s\nin:\n%s", name, line, plan)
			}
		}
	}
}

func ignoreNotFound(err error) error {
	if hcp.IsCode(err, hcp.CodeNotFound) {
		return nil
	}
	return err
}

func TestAdmissionAsksAnIndexOfItsOwn(t *testing.T) {
	// The question whether a provider id is taken read every VM of the cluster: the
	// partial index was not used, and a create cost more with each VM there was.
	s := open(t, filepath.Join(t.TempDir(), "hcp.db"), true)
	for query, index := range sqlstore.AdmissionQueries() {
		p := &planner{Snapshotter: s.Reads.DB, t: t}
		p.explain(t.Context(), query, []any{"a", "b", "c"})
		if plan := strings.Join(p.plans, "; "); !strings.Contains(plan, "USING COVERING INDEX "+index) && !strings.Contains(plan, "USING INDEX "+index) {
			t.Errorf("%s\nis answered by: %s\nwant the index %s", query, plan, index)
		}
	}
}
