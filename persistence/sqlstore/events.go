package sqlstore

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func scanEvent(rows Rows) (hcp.Event, error) {
	var e hcp.Event
	var seq int64
	var pos int64
	var body []byte
	if err := rows.Scan(&seq, &pos, &body); err != nil {
		return e, err
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, damaged("event", err)
	}
	e.Seq, e.Pos = seq, pos
	return e, nil
}

// Publish numbers the oldest unpublished events in the order of their insertion,
// which is each actor's order too. It runs in the writer's transaction.
func Publish(ctx context.Context, q Querier, limit int) ([]hcp.Event, error) {
	last, err := metaInt(ctx, q, metaLastPos)
	if err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, `update events set pos = u.pos from
		(select n, row_number() over (order by n) + $1 as pos from events where pos is null order by n limit $2) as u
		where events.n = u.n returning events.seq, events.pos, events.body`, last, limit)
	events, err := collect(rows, err, scanEvent)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	slices.SortFunc(events, func(a, b hcp.Event) int { return int(a.Pos - b.Pos) })
	if got := events[len(events)-1].Pos; got != last+int64(len(events)) {
		return nil, hcp.Errorf(hcp.CodeInternal, "position_gap", "the positions of %d events would leave a gap", len(events))
	}
	return events, putMeta(ctx, q, metaLastPos, strconv.FormatInt(last+int64(len(events)), 10))
}

// Unpublished reports whether there is anything to publish; it reads one index entry.
func (r Reads) Unpublished(ctx context.Context) (bool, error) {
	var n int64
	err := r.DB.QueryRow(ctx, `select n from events where pos is null order by n limit 1`).Scan(&n)
	if err == ErrNoRows {
		return false, nil
	}
	return err == nil, err
}

// searchWindow bounds what one EventsAfter looks at, so that a reader of a rare
// event does not hold the log.
const searchWindow = 4096

// EventsAfter searches at most one window beyond pos.
func (r Reads) EventsAfter(ctx context.Context, f persistence.EventFilter, pos int64, limit int) ([]hcp.Event, int64, error) {
	var events []hcp.Event
	searched := pos
	err := r.DB.Snapshot(ctx, func(q Querier) error {
		first, last, err := bounds(ctx, q)
		if err != nil {
			return err
		}
		if pos < first-1 {
			return hcp.Errorf(hcp.CodeCursorExpired, "cursor_expired", "the events after this cursor are not kept any more")
		}
		if pos >= last {
			return nil
		}
		searched = min(last, pos+searchWindow)
		var w where
		w.and("pos > ? and pos <= ?", pos, searched)
		w.equal("project", string(f.Project))
		w.equal("vm", string(f.VM))
		if len(f.Types) > 0 {
			w.oneOf("type", f.Types)
		}
		rows, err := q.Query(ctx, `select seq, pos, body from events`+w.String()+` order by pos limit `+strconv.Itoa(limit), w.args...)
		if events, err = collect(rows, err, scanEvent); err != nil {
			return err
		}
		if len(events) == limit {
			searched = events[limit-1].Pos
		}
		return nil
	})
	if err != nil {
		return nil, pos, err
	}
	return events, searched, nil
}

func (w *where) oneOf(column string, types []hcp.EventType) {
	marks := ""
	args := make([]any, 0, len(types))
	for i, t := range types {
		if i > 0 {
			marks += ", "
		}
		marks += "?"
		args = append(args, t)
	}
	w.and(column+" in ("+marks+")", args...)
}

// bounds are the first position that is kept and the last that was given; with
// nothing kept, first is last+1.
func bounds(ctx context.Context, q Querier) (first, last int64, err error) {
	if last, err = metaInt(ctx, q, metaLastPos); err != nil {
		return 0, 0, err
	}
	err = q.QueryRow(ctx, `select pos from events where pos is not null order by pos limit 1`).Scan(&first)
	if err == ErrNoRows {
		return last + 1, last, nil
	}
	return first, last, err
}

// FirstPosition is the oldest position that can be read.
func (r Reads) FirstPosition(ctx context.Context) (int64, error) {
	var first int64
	err := r.DB.Snapshot(ctx, func(q Querier) (err error) {
		first, _, err = bounds(ctx, q)
		return err
	})
	return first, err
}

// LastPosition is the newest position that was given.
func (r Reads) LastPosition(ctx context.Context) (int64, error) {
	return metaInt(ctx, r.DB, metaLastPos)
}

// VMHistory reads the journal of one VM backwards.
func (r Reads) VMHistory(ctx context.Context, vm hcp.VMID, beforeSeq int64, limit int) ([]hcp.Event, error) {
	var w where
	w.and("actor = ?", vm)
	if beforeSeq > 0 {
		w.and("seq < ?", beforeSeq)
	}
	rows, err := r.DB.Query(ctx, `select seq, coalesce(pos, 0), body from events`+w.String()+` order by seq desc limit `+strconv.Itoa(limit), w.args...)
	return collect(rows, err, scanEvent)
}

// PurgeEvents drops the longest prefix of published events that is older than
// before: what is left has no holes. It drops at most limit and tells how many.
func PurgeEvents(ctx context.Context, q Querier, before time.Time, limit int) (int64, error) {
	first, last, err := bounds(ctx, q)
	if err != nil {
		return 0, err
	}
	var end int64
	err = q.QueryRow(ctx, `select pos from events where pos is not null and time >= $1 order by pos limit 1`, micros(before)).Scan(&end)
	if err == ErrNoRows {
		end = last + 1
	} else if err != nil {
		return 0, err
	}
	return q.Exec(ctx, `delete from events where pos is not null and pos < $1`, min(end, first+int64(limit)))
}
