package api

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// catalogueTTL is how old a catalogue row may be on a node that did not change it.
const catalogueTTL = 2 * time.Second

// row is one catalogue record, decoded.
type row[T any] struct {
	value   T
	id      string
	name    string
	parent  string
	version int64
}

// table keeps the rows of one kind for catalogueTTL: a create reads five of them.
type table[T any] struct {
	store persistence.Catalogue
	now   func() time.Time
	kind  persistence.RecordKind
	word  string // for people: "image"

	mu     sync.Mutex
	until  time.Time
	rows   []row[T]
	byID   map[string]int
	byName map[string]int
}

func newTable[T any](s *Server, kind persistence.RecordKind, word string) *table[T] {
	return &table[T]{store: s.Store, now: s.Clock.Now, kind: kind, word: word}
}

func (t *table[T]) decode(r persistence.Record) (row[T], error) {
	out := row[T]{id: r.ID, name: r.Name, parent: r.Parent, version: r.Version}
	if err := json.Unmarshal(r.Body, &out.value); err != nil {
		return out, hcp.Errorf(hcp.CodeInternal, "bad_record", "the record of a %s cannot be read", t.word).WithCause(err)
	}
	return out, nil
}

// load must run under the lock.
func (t *table[T]) load(ctx context.Context) error {
	now := t.now()
	if now.Before(t.until) {
		return nil
	}
	records, err := t.store.ListRecords(ctx, t.kind, "")
	if err != nil {
		return err
	}
	rows := make([]row[T], 0, len(records))
	byID, byName := make(map[string]int, len(records)), make(map[string]int, len(records))
	for _, r := range records {
		d, err := t.decode(r)
		if err != nil {
			return err
		}
		byID[d.id] = len(rows)
		if d.name != "" {
			byName[d.name] = len(rows)
		}
		rows = append(rows, d)
	}
	t.rows, t.byID, t.byName, t.until = rows, byID, byName, now.Add(catalogueTTL)
	return nil
}

// list is every row by name; the slice must not be changed.
func (t *table[T]) list(ctx context.Context) ([]row[T], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	return t.rows, nil
}

// find takes an id or a name. What the cache does not have is asked of the
// store: it may be new.
func (t *table[T]) find(ctx context.Context, idOrName string) (row[T], error) {
	t.mu.Lock()
	if err := t.load(ctx); err != nil {
		t.mu.Unlock()
		return row[T]{}, err
	}
	i, found := t.byID[idOrName]
	if !found {
		i, found = t.byName[idOrName]
	}
	var hit row[T]
	if found {
		hit = t.rows[i]
	}
	t.mu.Unlock()
	if found {
		return hit, nil
	}
	return t.fresh(ctx, idOrName)
}

// fresh reads the store: for whoever changes the row.
func (t *table[T]) fresh(ctx context.Context, idOrName string) (row[T], error) {
	r, err := t.store.GetRecord(ctx, t.kind, idOrName)
	if hcp.IsCode(err, hcp.CodeNotFound) {
		return row[T]{}, hcp.NotFound(t.word)
	}
	if err != nil {
		return row[T]{}, err
	}
	return t.decode(r)
}

// forget makes the next reader read the store.
func (t *table[T]) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
}
