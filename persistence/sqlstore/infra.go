package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func scanCluster(row Row) (persistence.ClusterState, error) {
	var st persistence.ClusterState
	var body []byte
	if err := row.Scan(&st.Epoch, &st.Seq, &body); err != nil {
		return st, err
	}
	if err := json.Unmarshal(body, &st.Cluster); err != nil {
		return st, damaged("cluster", err)
	}
	return st, nil
}

// LoadCluster finds by id, or by the name of a cluster that is not deleted.
func (r Reads) LoadCluster(ctx context.Context, idOrName string) (persistence.ClusterState, error) {
	st, err := scanCluster(r.DB.QueryRow(ctx, `select epoch, seq, body from clusters where id = $1`, idOrName))
	if err == ErrNoRows {
		st, err = scanCluster(r.DB.QueryRow(ctx, `select epoch, seq, body from clusters where name = $1 and deleted = 0`, idOrName))
	}
	return one(st, err, "cluster")
}

func (r Reads) ListClusters(ctx context.Context) ([]persistence.ClusterState, error) {
	rows, err := r.DB.Query(ctx, `select epoch, seq, body from clusters where deleted = 0 order by name`)
	return collect(rows, err, func(rows Rows) (persistence.ClusterState, error) { return scanCluster(rows) })
}

func (r Reads) Reachability(ctx context.Context) (map[hcp.ClusterID]hcp.Reachability, error) {
	rows, err := r.DB.Query(ctx, `select cluster, body from reachability`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[hcp.ClusterID]hcp.Reachability{}
	for rows.Next() {
		var id string
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return nil, err
		}
		var reach hcp.Reachability
		if err := json.Unmarshal(body, &reach); err != nil {
			return nil, damaged("reachability", err)
		}
		out[hcp.ClusterID(id)] = reach
	}
	return out, rows.Err()
}

// PutReachability writes one row.
func PutReachability(ctx context.Context, q Querier, cluster hcp.ClusterID, reach hcp.Reachability) error {
	body, err := render(reach)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `insert into reachability (cluster, reachable, body) values ($1, $2, $3)
		on conflict (cluster) do update set reachable = excluded.reachable, body = excluded.body`, cluster, flag(reach.Reachable), body)
	return err
}

// PutObserved writes rows and derives the states that follow from them.
func PutObserved(ctx context.Context, q Querier, rows []hcp.Observed) error {
	for i := range rows {
		o := &rows[i]
		body, err := render(o)
		if err != nil {
			return err
		}
		if _, err := q.Exec(ctx, `insert into observed (vm, cluster, power, missing, at, body) values ($1, $2, $3, $4, $5, $6)
			on conflict (vm) do update set cluster = excluded.cluster, power = excluded.power, missing = excluded.missing, at = excluded.at, body = excluded.body`,
			o.VM, o.Cluster, o.Power, flag(o.Missing), micros(o.At), body); err != nil {
			return err
		}
		if err := refreshState(ctx, q, o.VM, o); err != nil {
			return err
		}
	}
	return nil
}

func (r Reads) ListObserved(ctx context.Context, cluster hcp.ClusterID) ([]hcp.Observed, error) {
	rows, err := r.DB.Query(ctx, `select body from observed where cluster = $1 order by vm`, cluster)
	return collect(rows, err, func(rows Rows) (hcp.Observed, error) {
		var o hcp.Observed
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return o, err
		}
		if err := json.Unmarshal(body, &o); err != nil {
			return o, damaged("observation", err)
		}
		return o, nil
	})
}

// Secret returns sealed bytes.
func (r Reads) Secret(ctx context.Context, name string) (hcp.Sealed, error) {
	var b []byte
	err := r.DB.QueryRow(ctx, `select sealed from secrets where name = $1`, name).Scan(&b)
	return one(hcp.Sealed(b), err, "secret")
}
