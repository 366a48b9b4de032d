package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// readers is how many reads run at once; a read is short and never waits for a writer.
const readers = 4

// pool is the read side: a few read-only connections, opened when first needed. A
// connection is out of the pool for as long as its rows are open.
type pool struct {
	dsn  string
	idle chan *conn // nil stands for one that is not open yet

	closing sync.Once
	closed  chan struct{}
}

var _ sqlstore.Snapshotter = (*pool)(nil)

func newPool(dsn string) *pool {
	p := &pool{dsn: dsn, idle: make(chan *conn, readers), closed: make(chan struct{})}
	for range readers {
		p.idle <- nil
	}
	return p
}

// close waits for the reads that are under way.
func (p *pool) close() error {
	var errs []error
	p.closing.Do(func() {
		close(p.closed)
		for range readers {
			if c := <-p.idle; c != nil {
				errs = append(errs, c.Close())
			}
		}
	})
	return errors.Join(errs...)
}

func (p *pool) take(ctx context.Context) (*conn, error) {
	select {
	case <-p.closed:
		return nil, persistence.ErrClosed
	default:
	}
	select {
	case <-p.closed:
		return nil, persistence.ErrClosed
	case <-ctx.Done():
		return nil, engineError(ctx.Err())
	case c := <-p.idle:
		if c != nil {
			return c, nil
		}
		c, err := connect(ctx, p.dsn)
		if err != nil {
			p.idle <- nil
		}
		return c, err
	}
}

func (p *pool) give(c *conn) { p.idle <- c }

func (p *pool) Exec(context.Context, string, ...any) (int64, error) {
	return 0, unavailable("read_only", "the read side of the store was asked to write", nil)
}

func (p *pool) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	c, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		p.give(c)
		return nil, err
	}
	return &pooledRows{Rows: rows, give: func() { p.give(c) }}, nil
}

func (p *pool) QueryRow(ctx context.Context, query string, args ...any) sqlstore.Row {
	rows, err := p.Query(ctx, query, args...)
	return oneRow{rows, err}
}

// Snapshot runs fn on one connection, in one read transaction.
func (p *pool) Snapshot(ctx context.Context, fn func(sqlstore.Querier) error) error {
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.give(c)
	if _, err := c.Exec(ctx, "begin"); err != nil {
		return err
	}
	defer c.rollback()
	return fn(c)
}

// pooledRows gives the connection back when they are closed.
type pooledRows struct {
	sqlstore.Rows
	give func()
	once sync.Once
}

func (r *pooledRows) Close() error {
	err := r.Rows.Close()
	r.once.Do(r.give)
	return err
}
