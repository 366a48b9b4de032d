package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Reads are the reading methods of persistence.Store, for an engine to embed.
type Reads struct{ DB Snapshotter }

func checkPage(p persistence.Page) error {
	if p.Limit < 1 || p.Limit > persistence.MaxLimit {
		return hcp.Errorf(hcp.CodeInternal, "malformed_page", "a page has between 1 and %d rows", persistence.MaxLimit)
	}
	return nil
}

// LoadVM reads everything in one statement, so that it is one moment.
func (r Reads) LoadVM(ctx context.Context, id hcp.VMID) (persistence.VMState, error) {
	var st persistence.VMState
	rows, err := r.DB.Query(ctx, `
		select 0 as part, 0 as queue, epoch, seq, body from vms where id = $1
		union all select 1, queue, 0, 0, body from jobs where vm = $1 and final = 0
		union all select 2, 0, 0, 0, body from (select body from jobs where vm = $1 and final = 1 order by finished_at desc, queue desc limit 1) as last
		order by part, queue`, id)
	if err != nil {
		return st, err
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var part, queue, epoch, seq int64
		var body []byte
		if err := rows.Scan(&part, &queue, &epoch, &seq, &body); err != nil {
			return st, err
		}
		if part == 0 {
			found, st.Epoch, st.Seq = true, epoch, seq
			if err := json.Unmarshal(body, &st.VM); err != nil {
				return st, damaged("VM", err)
			}
			continue
		}
		job, err := decodeJob(body)
		if err != nil {
			return st, err
		}
		if part == 1 {
			st.Jobs = append(st.Jobs, job)
		} else {
			st.Last = &job
		}
	}
	if err := rows.Err(); err != nil {
		return st, err
	}
	if !found {
		return persistence.VMState{}, hcp.NotFound("VM")
	}
	return st, nil
}

func decodeJob(body []byte) (hcp.Job, error) {
	var j hcp.Job
	if err := json.Unmarshal(body, &j); err != nil {
		return j, damaged("job", err)
	}
	return j, nil
}

const knownColumns = `v.body, o.body, r.body`

const knownJoins = ` left join observed o on o.vm = v.id left join reachability r on r.cluster = v.cluster`

func scanKnown(row Row) (hcp.Known, error) {
	var k hcp.Known
	var body, observed, reach []byte
	if err := row.Scan(&body, &observed, &reach); err != nil {
		return k, err
	}
	if err := json.Unmarshal(body, &k.VM); err != nil {
		return k, damaged("VM", err)
	}
	if observed != nil {
		k.Observed = &hcp.Observed{}
		if err := json.Unmarshal(observed, k.Observed); err != nil {
			return k, damaged("observation", err)
		}
	}
	if reach != nil {
		k.Reachability = &hcp.Reachability{}
		if err := json.Unmarshal(reach, k.Reachability); err != nil {
			return k, damaged("reachability", err)
		}
	}
	return k, nil
}

func one[T any](v T, err error, kind string) (T, error) {
	if err == nil {
		return v, nil
	}
	var zero T
	if err == ErrNoRows {
		return zero, hcp.NotFound(kind)
	}
	return zero, err
}

// GetVM prefers the id: a name never reads as one.
func (r Reads) GetVM(ctx context.Context, project hcp.ProjectID, idOrName string) (hcp.Known, error) {
	query := `select ` + knownColumns + ` from vms v` + knownJoins
	var row Row
	switch {
	case project == "":
		row = r.DB.QueryRow(ctx, query+` where v.id = $1`, idOrName)
	case hcp.IsID(hcp.KindVM, idOrName):
		row = r.DB.QueryRow(ctx, query+` where v.id = $1 and v.project = $2`, idOrName, project)
	default:
		row = r.DB.QueryRow(ctx, query+` where v.name = $1 and v.project = $2 and v.holds_name = 1`, idOrName, project)
	}
	k, err := scanKnown(row)
	return one(k, err, "VM")
}

// VMByRef finds the holder of a provider id.
func (r Reads) VMByRef(ctx context.Context, cluster hcp.ClusterID, refID string) (hcp.Known, error) {
	if refID == "" {
		return hcp.Known{}, hcp.NotFound("VM")
	}
	k, err := scanKnown(r.DB.QueryRow(ctx, `select `+knownColumns+` from vms v`+knownJoins+` where v.cluster = $1 and v.ref_id = $2 and v.ref_id <> ''`, cluster, refID))
	return one(k, err, "VM")
}
