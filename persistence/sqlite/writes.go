package sqlite

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// Commit renders on the caller's time and waits for the lane.
func (s *Store) Commit(ctx context.Context, c persistence.Commit) error {
	p, err := sqlstore.Prepare(c)
	if err != nil {
		return err
	}
	return s.lane.wait(ctx, &member{commit: p})
}

// Submit renders on the caller's time; done is called from the lane.
func (s *Store) Submit(c persistence.Commit, done func(error)) {
	p, err := sqlstore.Prepare(c)
	s.lane.submit(&member{commit: p, bad: err, done: done})
}

// Publish costs one index entry read while there is nothing new.
func (s *Store) Publish(ctx context.Context, limit int) ([]hcp.Event, error) {
	if some, err := s.Unpublished(ctx); err != nil || !some {
		return nil, err
	}
	events, err := write(ctx, s.lane, func(ctx context.Context, q sqlstore.Querier) ([]hcp.Event, error) {
		return sqlstore.Publish(ctx, q, limit)
	})
	if n := len(events); n > 0 {
		s.lock.advance(events[n-1].Pos)
	}
	return events, err
}

// purgeChunk is how many rows one transaction of a purge drops: the lane is shared.
const purgeChunk = 500

// purge repeats drop until it drops less than a chunk.
func (s *Store) purge(ctx context.Context, drop func(context.Context, sqlstore.Querier) (int64, error)) (total int64, err error) {
	for {
		n, err := write(ctx, s.lane, drop)
		total += n
		if err != nil || n < purgeChunk {
			return total, err
		}
	}
}

func (s *Store) PurgeEvents(ctx context.Context, before time.Time) (int64, error) {
	return s.purge(ctx, func(ctx context.Context, q sqlstore.Querier) (int64, error) {
		return sqlstore.PurgeEvents(ctx, q, before, purgeChunk)
	})
}

func (s *Store) PurgeKeys(ctx context.Context, now time.Time) (int64, error) {
	return s.purge(ctx, func(ctx context.Context, q sqlstore.Querier) (int64, error) {
		return sqlstore.PurgeKeys(ctx, q, now, purgeChunk)
	})
}

func (s *Store) PutReachability(ctx context.Context, cluster hcp.ClusterID, r hcp.Reachability) error {
	return s.lane.exec(ctx, func(ctx context.Context, q sqlstore.Querier) error {
		return sqlstore.PutReachability(ctx, q, cluster, r)
	})
}

func (s *Store) PutObserved(ctx context.Context, rows []hcp.Observed) error {
	if len(rows) == 0 {
		return nil
	}
	return s.lane.exec(ctx, func(ctx context.Context, q sqlstore.Querier) error {
		return sqlstore.PutObserved(ctx, q, rows)
	})
}

// RingKey writes only when there is no key yet.
func (s *Store) RingKey(ctx context.Context, purpose string, fresh hcp.Sealed) (hcp.Sealed, error) {
	if key, err := s.FindRingKey(ctx, purpose); !hcp.IsCode(err, hcp.CodeNotFound) {
		return key, err
	}
	return write(ctx, s.lane, func(ctx context.Context, q sqlstore.Querier) (hcp.Sealed, error) {
		return sqlstore.RingKey(ctx, q, purpose, fresh)
	})
}

func (s *Store) Join(ctx context.Context, m persistence.Member) (int64, error) {
	return write(ctx, s.lane, func(ctx context.Context, q sqlstore.Querier) (int64, error) { return sqlstore.Join(ctx, q, m) })
}

func (s *Store) Renew(ctx context.Context, node string, incarnation int64, at time.Time) error {
	return s.lane.exec(ctx, func(ctx context.Context, q sqlstore.Querier) error {
		return sqlstore.Renew(ctx, q, node, incarnation, at)
	})
}

func (s *Store) Leave(ctx context.Context, node string, incarnation int64) error {
	return s.lane.exec(ctx, func(ctx context.Context, q sqlstore.Querier) error {
		return sqlstore.Leave(ctx, q, node, incarnation)
	})
}
