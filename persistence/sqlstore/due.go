package sqlstore

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// DueJobs reads a range of the index of live jobs.
func (r Reads) DueJobs(ctx context.Context, now time.Time, limit int) ([]persistence.DueJob, error) {
	rows, err := r.DB.Query(ctx, `select id, vm, cluster, wake_at from jobs where final = 0 and wake_at <= $1 order by wake_at, id limit $2`, micros(now), limit)
	return collect(rows, err, func(rows Rows) (persistence.DueJob, error) {
		var d persistence.DueJob
		var at int64
		err := rows.Scan((*string)(&d.Job), (*string)(&d.VM), (*string)(&d.Cluster), &at)
		d.WakeAt = fromMicros(at)
		return d, err
	})
}

// CountJobs walks the live jobs only.
func (r Reads) CountJobs(ctx context.Context) (map[hcp.JobKind]map[hcp.JobState]int, error) {
	rows, err := r.DB.Query(ctx, `select kind, state, count(*) from jobs where final = 0 group by kind, state`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[hcp.JobKind]map[hcp.JobState]int{}
	for rows.Next() {
		var kind, state string
		var n int
		if err := rows.Scan(&kind, &state, &n); err != nil {
			return nil, err
		}
		if out[hcp.JobKind(kind)] == nil {
			out[hcp.JobKind(kind)] = map[hcp.JobState]int{}
		}
		out[hcp.JobKind(kind)][hcp.JobState(state)] = n
	}
	return out, rows.Err()
}

// CheckFence is one statement, so that what it finds was true at one moment.
func (r Reads) CheckFence(ctx context.Context, f persistence.Fence) error {
	if f.Turn == (persistence.Turn{}) {
		return fenced("no turn is journalled for this provider call")
	}
	var member, cluster, epoch, turn bool
	err := r.DB.QueryRow(ctx, `select
		case when exists (select 1 from members where node = $1 and incarnation = $2 and gone = 0) then 1 else 0 end,
		case when exists (select 1 from clusters where id = $3 and epoch = $4) then 1 else 0 end,
		case when v.epoch = $5 then 1 else 0 end,
		case when v.turn_job = $6 and v.turn_step = $7 and v.turn_attempt = $8 then 1 else 0 end
		from vms v where v.id = $9`,
		f.Node, f.Incarnation, f.Cluster, f.ClusterEpoch, f.VMEpoch, f.Turn.Job, f.Turn.Step, f.Turn.Attempt, f.VM).
		Scan(&member, &cluster, &epoch, &turn)
	switch {
	case err == ErrNoRows:
		return fenced("the VM is not there any more")
	case err != nil:
		return err
	case !member:
		return fenced("this node is no member any more")
	case !cluster:
		return fenced("another owner has taken over the cluster")
	case !epoch:
		return fenced("another owner has taken over the VM")
	case !turn:
		return fenced("the turn has passed to another step")
	}
	return nil
}
