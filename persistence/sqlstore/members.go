package sqlstore

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Join writes the node's row with an incarnation above every one before.
func Join(ctx context.Context, q Querier, m persistence.Member) (int64, error) {
	if m.Node == "" {
		return 0, hcp.Errorf(hcp.CodeInternal, "malformed_member", "a member has no name")
	}
	var incarnation int64
	if err := q.QueryRow(ctx, `select coalesce(max(incarnation), 0) + 1 from members`).Scan(&incarnation); err != nil {
		return 0, err
	}
	_, err := q.Exec(ctx, `insert into members (node, incarnation, version, peer_addr, joined_at, renewed_at, gone) values ($1, $2, $3, $4, $5, $6, 0)
		on conflict (node) do update set incarnation = excluded.incarnation, version = excluded.version, peer_addr = excluded.peer_addr,
		joined_at = excluded.joined_at, renewed_at = excluded.renewed_at, gone = 0`,
		m.Node, incarnation, m.Version, m.PeerAddr, micros(m.JoinedAt), micros(m.RenewedAt))
	return incarnation, err
}

// Renew moves the renewal time of a row that is still the caller's.
func Renew(ctx context.Context, q Querier, node string, incarnation int64, at time.Time) error {
	n, err := q.Exec(ctx, `update members set renewed_at = $1 where node = $2 and incarnation = $3 and gone = 0`, micros(at), node, incarnation)
	if err == nil && n == 0 {
		return fenced("this node is no member any more")
	}
	return err
}

// Leave marks the row gone; the row of another incarnation is left alone.
func Leave(ctx context.Context, q Querier, node string, incarnation int64) error {
	_, err := q.Exec(ctx, `update members set gone = 1 where node = $1 and incarnation = $2`, node, incarnation)
	return err
}

func (r Reads) ListMembers(ctx context.Context) ([]persistence.Member, error) {
	rows, err := r.DB.Query(ctx, `select node, incarnation, version, peer_addr, joined_at, renewed_at, gone from members order by node`)
	return collect(rows, err, func(rows Rows) (persistence.Member, error) {
		var m persistence.Member
		var joined, renewed int64
		err := rows.Scan(&m.Node, &m.Incarnation, &m.Version, &m.PeerAddr, &joined, &renewed, &m.Gone)
		m.JoinedAt, m.RenewedAt = fromMicros(joined), fromMicros(renewed)
		return m, err
	})
}
