package sqlstore

import (
	"context"
	"strconv"

	"github.com/lotuscloud/hcp"
)

// Names in the meta table.
const (
	metaLastPos    = "last_position"
	metaGeneration = "generation"
	metaIdentity   = "identity"
)

func meta(ctx context.Context, q Querier, name string) (string, error) {
	var value string
	err := q.QueryRow(ctx, `select value from meta where name = $1`, name).Scan(&value)
	if err == ErrNoRows {
		return "", nil
	}
	return value, err
}

func metaInt(ctx context.Context, q Querier, name string) (int64, error) {
	value, err := meta(ctx, q, name)
	if err != nil || value == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, damaged("counter", err)
	}
	return n, nil
}

func putMeta(ctx context.Context, q Querier, name, value string) error {
	_, err := q.Exec(ctx, `insert into meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`, name, value)
	return err
}

// Generation identifies this database's history.
func (r Reads) Generation(ctx context.Context) (string, error) {
	return meta(ctx, r.DB, metaGeneration)
}

// SettleGeneration gives the database a fresh generation when it has none, when
// identity is not the one it was last opened with (it is a copy), or when it is
// known to have gone back in time.
func SettleGeneration(ctx context.Context, q Querier, identity, fresh string, wentBack bool) error {
	known, err := meta(ctx, q, metaIdentity)
	if err != nil || known == identity && !wentBack {
		return err
	}
	if err := putMeta(ctx, q, metaGeneration, fresh); err != nil {
		return err
	}
	return putMeta(ctx, q, metaIdentity, identity)
}

// LastPositionOf is the last position given, read within a writer's transaction.
func LastPositionOf(ctx context.Context, q Querier) (int64, error) {
	return metaInt(ctx, q, metaLastPos)
}

// FirstFreeEvent is the number of the next event row.
func FirstFreeEvent(ctx context.Context, q Querier) (int64, error) {
	var n int64
	err := q.QueryRow(ctx, `select coalesce(max(n), 0) + 1 from events`).Scan(&n)
	return n, err
}

// AsRead lets every caller see a missing row the same way.
func asRead(err error, kind string) error {
	if err == ErrNoRows {
		return hcp.NotFound(kind)
	}
	return err
}
