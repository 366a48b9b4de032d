package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// maxGroup bounds how many members share one transaction: a member that fails for
// a reason nobody foresaw makes its whole group run again, one by one.
const maxGroup = 60

// member is one entry of the lane: a commit, or another write (do).
type member struct {
	commit *sqlstore.Prepared
	do     func(context.Context, sqlstore.Querier) error
	done   func(error)
	bad    error // malformed: it is answered in its turn and never runs
	err    error // what the member itself came to: nil or a refusal
}

// lane is the one writer. What queues up while a transaction is being flushed
// becomes the next one; there is no timer.
type lane struct {
	conn      *conn
	log       *slog.Logger
	now       func() time.Time
	nextEvent int64

	mu     sync.Mutex
	queue  []*member
	closed bool
	wake   chan struct{} // capacity 1: there is something to look at
	ended  chan struct{}

	// broken is set when a flush failed: what the kernel then holds of the file
	// is anybody's guess, so that nothing more is acknowledged until a restart.
	broken error

	commits, groups, refusals, others atomic.Int64
}

func startLane(c *conn, nextEvent int64, cfg Config) *lane {
	l := &lane{conn: c, log: cfg.Log, now: cfg.Now, nextEvent: nextEvent, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.run()
	return l
}

func (l *lane) stats() persistence.Stats {
	return persistence.Stats{Commits: l.commits.Load(), Groups: l.groups.Load(), Refusals: l.refusals.Load(), OtherFlushes: l.others.Load()}
}

// submit queues a member. Whatever becomes of it, done is never called on the
// caller's stack: the caller may hold what done needs.
func (l *lane) submit(m *member) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, m)
	}
	l.mu.Unlock()
	if closed {
		go m.done(persistence.ErrClosed) // there is no lane any more
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drain lets the lane finish what is queued, and ends it.
func (l *lane) drain() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.ended
}

func (l *lane) run() {
	defer close(l.ended)
	for {
		group, closed := l.next()
		if len(group) == 0 {
			if closed {
				return
			}
			<-l.wake
			continue
		}
		l.serve(group)
	}
}

func (l *lane) next() ([]*member, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), maxGroup)
	group := l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil // let go of the served part
	}
	return group, l.closed
}

// serve makes one transaction of the group. Trouble that is no refusal must not
// spread: the group is rolled back and its members go one by one, so that only
// the troubled one fails.
func (l *lane) serve(group []*member) {
	group = slices.DeleteFunc(group, func(m *member) bool {
		if m.bad != nil {
			m.done(m.bad)
		}
		return m.bad != nil
	})
	if len(group) == 0 {
		return
	}
	err := l.transact(group)
	if err != nil && len(group) > 1 && l.broken == nil && !errors.Is(err, persistence.ErrUnknownOutcome) {
		l.log.Warn("a group commit runs again, one by one", slog.Int("members", len(group)), slog.Any("error", err))
		for _, m := range group {
			l.answer([]*member{m}, l.transact([]*member{m}))
		}
		return
	}
	l.answer(group, err)
}

func (l *lane) answer(group []*member, err error) {
	for _, m := range group {
		switch {
		case err != nil:
			m.err = err
		case m.err != nil:
			l.refusals.Add(1)
		case m.commit != nil:
			l.commits.Add(1)
		}
		m.done(m.err)
	}
}

// transact runs the members in one transaction. Its error is that of the whole;
// refusals stand in the members. It is ErrUnknownOutcome when COMMIT failed
// otherwise than for want of space.
func (l *lane) transact(group []*member) error {
	ctx := context.Background()
	if l.broken != nil {
		return l.broken
	}
	if err := l.conn.begin(ctx); err != nil {
		return err
	}
	g := sqlstore.NewGroup(l.conn, l.nextEvent)
	hasCommit, err := l.apply(ctx, g, group)
	if err != nil {
		l.conn.rollback()
		return err
	}
	if err := l.flush(ctx, len(group)); err != nil {
		l.conn.rollback()
		if isFull(err) {
			return engineError(err)
		}
		l.broken = unavailable("store_broken", "the store could not flush to disk and accepts nothing until hcpd is restarted", err).
			WithHint("look at the disk and the kernel log, then restart hcpd")
		l.log.Error("the store could not flush to disk", slog.Any("error", err))
		return persistence.ErrUnknownOutcome
	}
	l.nextEvent = g.NextEvent()
	if hasCommit {
		l.groups.Add(1)
	} else {
		l.others.Add(1)
	}
	return nil
}

// slowFlush is when a flush is worth a line in the log.
const slowFlush = time.Second

func (l *lane) flush(ctx context.Context, members int) error {
	if l.now == nil {
		return l.conn.commit(ctx)
	}
	began := l.now()
	err := l.conn.commit(ctx)
	if took := l.now().Sub(began); took >= slowFlush {
		l.log.Warn("a flush to disk took long", slog.Duration("took", took), slog.Int("members", members))
	}
	return err
}

func (l *lane) apply(ctx context.Context, g *sqlstore.Group, group []*member) (hasCommit bool, err error) {
	for _, m := range group {
		m.err = nil
		if m.commit != nil {
			hasCommit = true
			err = g.Apply(ctx, m.commit)
		} else {
			err = m.do(ctx, l.conn)
		}
		if _, refused := persistence.RefusalOf(err); refused {
			m.err = err
		} else if err != nil {
			return hasCommit, err
		}
	}
	return hasCommit, g.Flush(ctx)
}

// wait submits a member and waits for it, or for ctx; then the outcome is unknown.
func (l *lane) wait(ctx context.Context, m *member) error {
	if err := ctx.Err(); err != nil {
		return engineError(err) // not submitted: nothing happened
	}
	result := make(chan error, 1)
	m.done = func(err error) { result <- err }
	l.submit(m)
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return persistence.ErrUnknownOutcome
	}
}

// write runs do in the lane and returns what it made. A caller that gave up
// leaves the value alone: the lane may yet write it.
func write[T any](ctx context.Context, l *lane, do func(context.Context, sqlstore.Querier) (T, error)) (T, error) {
	var made, none T
	err := l.wait(ctx, &member{do: func(ctx context.Context, q sqlstore.Querier) (err error) {
		made, err = do(ctx, q)
		return err
	}})
	if err != nil && ctx.Err() != nil && errors.Is(err, persistence.ErrUnknownOutcome) {
		err = hcp.Errorf(hcp.CodeUnavailable, "interrupted", "the store was not waited for").WithCause(errors.Join(err, ctx.Err()))
	}
	if err != nil {
		return none, err
	}
	return made, nil
}

// exec is write for what makes nothing.
func (l *lane) exec(ctx context.Context, do func(context.Context, sqlstore.Querier) error) error {
	_, err := write(ctx, l, func(ctx context.Context, q sqlstore.Querier) (struct{}, error) { return struct{}{}, do(ctx, q) })
	return err
}
