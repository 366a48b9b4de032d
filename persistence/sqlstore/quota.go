package sqlstore

import (
	"context"
	"database/sql"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Quota reads the counters of the subjects; one that was never touched is
// unlimited and unused.
func (r Reads) Quota(ctx context.Context, subjects []hcp.QuotaSubject) ([]persistence.QuotaUse, error) {
	var out []persistence.QuotaUse
	err := r.DB.Snapshot(ctx, func(q Querier) error {
		for _, s := range subjects {
			use, err := quotaUse(ctx, q, s)
			if err != nil {
				return err
			}
			out = append(out, use)
		}
		return nil
	})
	return out, err
}

func quotaUse(ctx context.Context, q Querier, s hcp.QuotaSubject) (persistence.QuotaUse, error) {
	use := persistence.QuotaUse{Subject: s}
	rows, err := q.Query(ctx, `select resource, cap, used from quota_counters where scope = $1 and id = $2`, s.Scope, s.ID)
	if err != nil {
		return use, err
	}
	defer rows.Close()
	lines := map[hcp.Resource]hcp.QuotaLine{}
	for rows.Next() {
		var line hcp.QuotaLine
		var limit sql.Null[int64]
		if err := rows.Scan((*string)(&line.Resource), &limit, &line.Used); err != nil {
			return use, err
		}
		line.Limit = limitOf(limit)
		lines[line.Resource] = line
	}
	for _, resource := range hcp.QuotaResources() {
		line, ok := lines[resource]
		if !ok {
			line = hcp.QuotaLine{Resource: resource, Limit: hcp.NoLimit()}
		}
		use.Lines = append(use.Lines, line)
	}
	return use, rows.Err()
}

// ClusterCapacity reads one row per cluster.
func (r Reads) ClusterCapacity(ctx context.Context) (map[hcp.ClusterID]persistence.Capacity, error) {
	rooms, err := rooms(ctx, r.DB)
	if err != nil {
		return nil, err
	}
	out := make(map[hcp.ClusterID]persistence.Capacity, len(rooms))
	for id, room := range rooms {
		out[id] = persistence.Capacity{Limit: room.limit, Claimed: room.claimed}
	}
	return out, nil
}

func rooms(ctx context.Context, q Querier) (map[hcp.ClusterID]room, error) {
	rows, err := q.Query(ctx, `select cluster, limited, limit_vcpus, limit_memory_mib, limit_disk_gib, claimed_vcpus, claimed_memory_mib, claimed_disk_gib from capacity`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[hcp.ClusterID]room{}
	for rows.Next() {
		var id string
		var r room
		if err := rows.Scan(&id, &r.limited, &r.limit.VCPUs, &r.limit.MemoryMiB, &r.limit.DiskGiB, &r.claimed.VCPUs, &r.claimed.MemoryMiB, &r.claimed.DiskGiB); err != nil {
			return nil, err
		}
		out[hcp.ClusterID(id)] = r
	}
	return out, rows.Err()
}
