package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Primary result codes of SQLite that mean something to us.
const (
	codeFull         = 13
	codeConstraint   = 19
	codeNotADatabase = 26
)

func unavailable(reason, message string, err error) *hcp.Error {
	return hcp.Errorf(hcp.CodeUnavailable, reason, "%s", message).WithCause(err)
}

// engineError is the one place where SQLite's words become ours.
func engineError(err error) error {
	var own *hcp.Error
	var coded interface{ Code() int }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own), errors.Is(err, persistence.ErrClosed):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("interrupted", "the store was not waited for", err)
	case errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed":
		return persistence.ErrClosed
	case errors.As(err, &coded) && coded.Code()&0xff == codeFull:
		return unavailable("disk_full", "the disk of the store is full", err).WithHint("free space on the disk that holds the data folder")
	case errors.As(err, &coded) && coded.Code()&0xff == codeConstraint:
		return hcp.Errorf(hcp.CodeInternal, "constraint", "a row breaks a rule of the schema that no check foresaw").WithCause(err)
	}
	return unavailable("store_unavailable", "the store cannot serve this just now", err)
}

// isFull reports whether a statement failed for want of space: then it is known
// that nothing of its transaction is on disk.
func isFull(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == codeFull
}
