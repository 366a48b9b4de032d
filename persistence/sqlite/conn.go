package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	vendor "modernc.org/sqlite"

	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// conn is one connection, used by one goroutine at a time. It speaks to the
// driver directly: every statement is prepared once, and the conversions and the
// pool of database/sql cost nothing.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// querier is what a write in the lane is handed.
type querier = sqlstore.Querier

var _ querier = (*conn)(nil)

func newConn(raw driver.Conn) *conn {
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}}
}

func (c *conn) begin(ctx context.Context) error {
	_, err := c.Exec(ctx, "begin immediate")
	return err
}

// commit returns the driver's own error: the lane must tell "full" from "unknown".
func (c *conn) commit(ctx context.Context) error {
	_, err := c.exec(ctx, "commit", nil)
	return err
}

func (c *conn) rollback() {
	// The only error is that no transaction is open any more.
	_, _ = c.exec(context.Background(), "rollback", nil)
}

func (c *conn) Close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) stmt(ctx context.Context, query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.raw.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: plain(a)})
	}
	return c.args
}

func (c *conn) exec(ctx context.Context, query string, args []any) (driver.Result, error) {
	s, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(ctx, c.bind(args))
}

func (c *conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := c.exec(ctx, query, args)
	if err != nil {
		return 0, engineError(err)
	}
	return res.RowsAffected()
}

func (c *conn) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	s, err := c.stmt(ctx, query)
	if err != nil {
		return nil, engineError(err)
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, c.bind(args))
	if err != nil {
		return nil, engineError(err)
	}
	return &connRows{rows: rows, vals: make([]driver.Value, len(rows.Columns()))}, nil
}

func (c *conn) QueryRow(ctx context.Context, query string, args ...any) sqlstore.Row {
	rows, err := c.Query(ctx, query, args...)
	return oneRow{rows, err}
}

type oneRow struct {
	rows sqlstore.Rows
	err  error
}

func (r oneRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sqlstore.ErrNoRows
	}
	return r.rows.Scan(dest...)
}

type connRows struct {
	rows driver.Rows
	vals []driver.Value
	err  error
}

func (r *connRows) Next() bool {
	if r.err != nil {
		return false
	}
	r.err = r.rows.Next(r.vals)
	return r.err == nil
}

func (r *connRows) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return engineError(r.err)
}

func (r *connRows) Close() error { return r.rows.Close() }

func (r *connRows) Scan(dest ...any) error {
	for i, d := range dest {
		if err := assign(d, r.vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func connect(ctx context.Context, dsn string) (*conn, error) {
	connector, err := vendor.NewConnector(dsn)
	if err != nil {
		return nil, engineError(err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, engineError(err)
	}
	return newConn(raw), nil
}
