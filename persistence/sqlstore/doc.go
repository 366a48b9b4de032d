// Package sqlstore is the SQL of HCP's store: statements, row scanning and
// admission, in the subset that SQLite and PostgreSQL share. It may not open a
// database, start a goroutine or know a driver: an engine hands it a Querier.
//
// Writing starts at Prepare (a commit becomes rows, on the caller's time) and
// Group.Apply (one member of a group commit: every check reads, then everything
// is written, so that a refusal leaves nothing behind). Admission itself, quota
// and capacity, is pure Go in ledger.go. Reading starts at Reads.
package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/lotuscloud/hcp"
)

// Querier runs statements with $1 placeholders. Arguments are int, int64,
// []byte, nil and strings of any type; it returns *hcp.Error UNAVAILABLE for
// trouble of the engine.
type Querier interface {
	// Exec returns the number of rows changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// QueryRow's Scan returns ErrNoRows when there is none.
	QueryRow(ctx context.Context, query string, args ...any) Row
}

// Rows is a result set. Scan takes *int64, *int, *string, *[]byte, *bool and
// *sql.Null of int64 and string.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Row is one row.
type Row interface {
	Scan(dest ...any) error
}

// Snapshotter is a Querier that can also hold one snapshot for several reads.
type Snapshotter interface {
	Querier
	Snapshot(ctx context.Context, fn func(Querier) error) error
}

// ErrNoRows is what a Row says when there is none.
var ErrNoRows = errors.New("no rows")

// micros and fromMicros turn times into what the columns hold and back; the zero
// time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// malformed is a commit or a question that breaks the contract: a defect of the caller.
func malformed(format string, args ...any) *hcp.Error {
	return hcp.Errorf(hcp.CodeInternal, "malformed_commit", format, args...)
}

// damaged is a row that cannot be read back.
func damaged(what string, err error) error {
	return hcp.Errorf(hcp.CodeInternal, "damaged_row", "a stored %s cannot be read", what).WithCause(err)
}

// collect reads every row of a query with scan.
func collect[T any](rows Rows, err error, scan func(Rows) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
