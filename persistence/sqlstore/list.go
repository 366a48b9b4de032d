package sqlstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// where gathers conditions and their arguments. Every ? of a condition becomes
// the next placeholder.
type where struct {
	conds []string
	args  []any
}

func (w *where) and(cond string, args ...any) {
	var b strings.Builder
	for _, part := range strings.SplitAfter(cond, "?") {
		if text, isArg := strings.CutSuffix(part, "?"); isArg {
			w.args = append(w.args, args[0])
			args = args[1:]
			b.WriteString(text + "$" + strconv.Itoa(len(w.args)))
		} else {
			b.WriteString(part)
		}
	}
	w.conds = append(w.conds, b.String())
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " where " + strings.Join(w.conds, " and ")
}

// after adds the keyset of a page, for rows ordered by two columns descending.
func (w *where) after(p persistence.Page, created, id string) {
	if p.After != nil {
		w.and("("+created+", "+id+") < (?, ?)", micros(p.After.CreatedAt), p.After.ID)
	}
}

// ListVMs walks an index in list order: by project, project and state, cluster,
// label, name, or over all. Living and deleted VMs are two walks, merged.
func (r Reads) ListVMs(ctx context.Context, f persistence.VMFilter) ([]hcp.Known, error) {
	if err := checkPage(f.Page); err != nil {
		return nil, err
	}
	if f.State != "" && !slices.Contains(hcp.States(), f.State) {
		return nil, nil
	}
	anyCut, err := r.anyUnreachable(ctx, f.State)
	if err != nil {
		return nil, err
	}
	wantsDeleted := f.State == hcp.StateDeleted || f.Lifecycle == hcp.LifecycleDeleted
	var out []hcp.Known
	if !wantsDeleted {
		if out, err = r.walkVMs(ctx, f, false, anyCut); err != nil {
			return nil, err
		}
	}
	if !f.WithDeleted && !wantsDeleted {
		return out, nil
	}
	deleted, err := r.walkVMs(ctx, f, true, anyCut)
	if err != nil {
		return nil, err
	}
	out = append(out, deleted...)
	slices.SortStableFunc(out, func(a, b hcp.Known) int {
		return cmp.Or(cmp.Compare(micros(b.VM.CreatedAt), micros(a.VM.CreatedAt)), cmp.Compare(b.VM.ID, a.VM.ID))
	})
	return out[:min(len(out), f.Page.Limit)], nil
}

// anyUnreachable lets the search for unknown VMs use the state's index while
// every cluster answers. A cluster lost between the two reads changes nothing:
// what is unknown while reached is unknown while cut off.
func (r Reads) anyUnreachable(ctx context.Context, s hcp.State) (bool, error) {
	if s != hcp.StateUnknown {
		return false, nil
	}
	var n int64
	err := r.DB.QueryRow(ctx, `select count(*) from reachability where reachable = 0`).Scan(&n)
	return n > 0, err
}

func (r Reads) walkVMs(ctx context.Context, f persistence.VMFilter, gone, anyCut bool) ([]hcp.Known, error) {
	var w where
	from, created, id := `vms v`, `v.created_at`, `v.id`
	labels := slices.Sorted(maps.Keys(f.Labels))
	switch {
	case f.Name != "":
		w.and("v.id = n.id")
		from = `(select id from vms where name = $1 and holds_name = 1 union all select id from vms where name = $1 and holds_name = 0) as n cross join vms v`
		w.args = append(w.args, f.Name)
	case len(labels) > 0:
		first := labels[0]
		labels = labels[1:]
		from, created, id = `vm_labels l cross join vms v`, `l.created_at`, `l.vm`
		w.and("v.id = l.vm")
		w.and("l.label = ? and l.value = ? and l.gone = ?", first, f.Labels[first], flag(gone))
		if f.Project != "" {
			w.and("l.project = ?", f.Project)
		}
	}
	for _, k := range labels {
		w.and("exists (select 1 from vm_labels x where x.vm = v.id and x.label = ? and x.value = ?)", k, f.Labels[k])
	}
	if f.State != "" && f.Project != "" {
		w.and("+v.gone = ?", flag(gone)) // the plus leaves the state's index as the only good one
	} else {
		w.and("v.gone = ?", flag(gone))
	}
	w.equal("v.project", string(f.Project))
	w.equal("v.org", string(f.Org))
	w.equal("v.zone", string(f.Zone))
	w.equal("v.cluster", string(f.Cluster))
	w.equal("v.lifecycle", string(f.Lifecycle))
	w.state(f.State, anyCut)
	w.after(f.Page, created, id)
	rows, err := r.DB.Query(ctx, `select `+knownColumns+` from `+from+knownJoins+w.String()+
		` order by `+created+` desc, `+id+` desc limit `+strconv.Itoa(f.Page.Limit), w.args...)
	return collect(rows, err, func(rows Rows) (hcp.Known, error) { return scanKnown(rows) })
}

func (w *where) equal(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

// state picks the word that holds by the reachability of the VM's cluster. A VM's
// word while cut off is either its word while reached, or unknown.
func (w *where) state(s hcp.State, anyCut bool) {
	switch {
	case s == "":
	case s != hcp.StateUnknown:
		w.and("v.state = ? and (v.state_cut = ? or coalesce(r.reachable, 1) = 1)", s, s)
	case anyCut:
		w.and("v.state_cut = ? and (v.state = ? or coalesce(r.reachable, 1) = 0)", s, s)
	default:
		w.and("v.state = ?", s)
	}
}

// GetJob is one indexed read.
func (r Reads) GetJob(ctx context.Context, project hcp.ProjectID, id hcp.JobID) (hcp.Job, error) {
	var body []byte
	var owner string
	err := r.DB.QueryRow(ctx, `select project, body from jobs where id = $1`, id).Scan(&owner, &body)
	if err == nil && project != "" && owner != string(project) {
		err = ErrNoRows
	}
	if err != nil {
		return one(hcp.Job{}, err, "job")
	}
	return decodeJob(body)
}

// ListJobs walks the index of the VM, of the project, or of all.
func (r Reads) ListJobs(ctx context.Context, f persistence.JobFilter) ([]hcp.Job, error) {
	if err := checkPage(f.Page); err != nil {
		return nil, err
	}
	var w where
	if f.VM != "" {
		w.equal("coalesce(project, '')", string(f.Project)) // a VM has few jobs: leave its index as the only good one
	} else {
		w.equal("project", string(f.Project))
	}
	w.equal("vm", string(f.VM))
	w.equal("cluster", string(f.Cluster))
	w.equal("kind", string(f.Kind))
	w.equal("state", string(f.State))
	w.after(f.Page, "created_at", "id")
	rows, err := r.DB.Query(ctx, `select body from jobs`+w.String()+` order by created_at desc, id desc limit `+strconv.Itoa(f.Page.Limit), w.args...)
	return collect(rows, err, func(rows Rows) (hcp.Job, error) {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return hcp.Job{}, err
		}
		return decodeJob(body)
	})
}
