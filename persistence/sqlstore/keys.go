package sqlstore

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func findKey(ctx context.Context, q Querier, k hcp.IdempotencyKey) (persistence.IdempotencyRecord, error) {
	r := persistence.IdempotencyRecord{IdempotencyKey: k}
	var created, expires int64
	err := q.QueryRow(ctx, `select fingerprint, status, vm, job, created_at, expires_at, body from idempotency
		where principal = $1 and project = $2 and method = $3 and path = $4 and key = $5`, k.Principal, k.Project, k.Method, k.Path, k.Key).
		Scan(&r.Fingerprint, &r.Status, (*string)(&r.VM), (*string)(&r.Job), &created, &expires, &r.Body)
	if err != nil {
		return persistence.IdempotencyRecord{}, err
	}
	r.CreatedAt, r.ExpiresAt = fromMicros(created), fromMicros(expires)
	return r, nil
}

// FindKey finds the record of an accepted command; the fingerprint is the
// record's, for the caller to compare.
func (r Reads) FindKey(ctx context.Context, k hcp.IdempotencyKey) (persistence.IdempotencyRecord, error) {
	record, err := findKey(ctx, r.DB, k)
	return one(record, err, "idempotency key")
}

// PurgeKeys drops at most limit expired records whose job is final, and tells how many.
func PurgeKeys(ctx context.Context, q Querier, now time.Time, limit int) (int64, error) {
	return q.Exec(ctx, `delete from idempotency where (principal, project, method, path, key) in
		(select i.principal, i.project, i.method, i.path, i.key from idempotency i
		where i.expires_at <= $1 and not exists (select 1 from jobs j where j.id = i.job and j.final = 0) order by i.expires_at limit $2)`, micros(now), limit)
}

// RingKey stores fresh unless there is a key already, and returns what is stored.
func RingKey(ctx context.Context, q Querier, purpose string, fresh hcp.Sealed) (hcp.Sealed, error) {
	if _, err := q.Exec(ctx, `insert into ring_keys (purpose, sealed) values ($1, $2) on conflict (purpose) do nothing`, purpose, []byte(fresh)); err != nil {
		return nil, err
	}
	var b []byte
	err := q.QueryRow(ctx, `select sealed from ring_keys where purpose = $1`, purpose).Scan(&b)
	return hcp.Sealed(b), asRead(err, "key")
}

// FindRingKey reads a key that is there already; NOT_FOUND when none is.
func (r Reads) FindRingKey(ctx context.Context, purpose string) (hcp.Sealed, error) {
	var b []byte
	err := r.DB.QueryRow(ctx, `select sealed from ring_keys where purpose = $1`, purpose).Scan(&b)
	return one(hcp.Sealed(b), err, "key")
}

// GetRecord finds by id, or by name.
func (r Reads) GetRecord(ctx context.Context, kind persistence.RecordKind, idOrName string) (persistence.Record, error) {
	rec, err := scanRecord(r.DB.QueryRow(ctx, `select id, name, parent, version, body from records where kind = $1 and id = $2`, kind, idOrName), kind)
	if err == ErrNoRows && idOrName != "" {
		rec, err = scanRecord(r.DB.QueryRow(ctx, `select id, name, parent, version, body from records where kind = $1 and name = $2 and name <> ''`, kind, idOrName), kind)
	}
	return one(rec, err, nounOf(kind))
}

func nounOf(kind persistence.RecordKind) string {
	if kind == persistence.RecordBinding {
		return "role binding"
	}
	return string(kind)
}

func (r Reads) ListRecords(ctx context.Context, kind persistence.RecordKind, parent string) ([]persistence.Record, error) {
	var w where
	w.and("kind = ?", kind)
	w.equal("parent", parent)
	rows, err := r.DB.Query(ctx, `select id, name, parent, version, body from records`+w.String()+` order by name, id`, w.args...)
	return collect(rows, err, func(rows Rows) (persistence.Record, error) { return scanRecord(rows, kind) })
}

func scanRecord(row Row, kind persistence.RecordKind) (persistence.Record, error) {
	rec := persistence.Record{Kind: kind}
	err := row.Scan(&rec.ID, &rec.Name, &rec.Parent, &rec.Version, &rec.Body)
	return rec, err
}
