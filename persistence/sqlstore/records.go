package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// labelsText is a canonical rendering, to see cheaply whether labels changed.
func labelsText(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	b, _ := json.Marshal(labels) // a map of strings always renders, keys sorted
	return string(b)
}

type recordKey struct {
	kind persistence.RecordKind
	id   string
}

type recordName struct {
	kind persistence.RecordKind
	name string
}

// catalogue is how the records would look after the changes so far of one commit.
type catalogue struct {
	g    *Group
	rows map[recordKey]persistence.Record // version 0: none
	used map[recordName]string            // id that has the name, "" is nobody
}

// checkRecords replays the changes in Go, so that nothing is written before all
// of them are known to hold.
func (g *Group) checkRecords(ctx context.Context, p *Prepared, _ *plan) (*persistence.Refusal, error) {
	if len(p.Records) == 0 {
		return nil, nil
	}
	c := &catalogue{g: g, rows: map[recordKey]persistence.Record{}, used: map[recordName]string{}}
	for i := range p.Records {
		if refusal, err := c.admit(ctx, &p.Records[i]); refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

func (c *catalogue) admit(ctx context.Context, ch *persistence.RecordChange) (*persistence.Refusal, error) {
	if ch.ID == "" || ch.Kind == "" {
		return nil, malformed("a record has no kind or no id")
	}
	now, err := c.row(ctx, recordKey{ch.Kind, ch.ID})
	if err != nil {
		return nil, err
	}
	if now.Version != ch.Version || ch.Delete && ch.Version == 0 {
		return &persistence.Refusal{Kind: persistence.RefusedVersion,
			Err: hcp.Errorf(hcp.CodePreconditionFailed, "version_moved", "the record has changed meanwhile")}, nil
	}
	if !ch.Delete && ch.Name != "" {
		owner, err := c.owner(ctx, recordName{ch.Kind, ch.Name})
		if err != nil {
			return nil, err
		}
		if owner != "" && owner != ch.ID {
			return nameTaken("another record of this kind has this name"), nil
		}
	}
	c.apply(now, ch)
	return nil, nil
}

func (c *catalogue) apply(now persistence.Record, ch *persistence.RecordChange) {
	if now.Name != "" {
		c.used[recordName{ch.Kind, now.Name}] = ""
	}
	next := persistence.Record{}
	if !ch.Delete {
		next = ch.Record
		next.Version++
		if ch.Name != "" {
			c.used[recordName{ch.Kind, ch.Name}] = ch.ID
		}
	}
	c.rows[recordKey{ch.Kind, ch.ID}] = next
}

func (c *catalogue) row(ctx context.Context, k recordKey) (persistence.Record, error) {
	if r, ok := c.rows[k]; ok {
		return r, nil
	}
	r := persistence.Record{Kind: k.kind, ID: k.id}
	err := c.g.q.QueryRow(ctx, `select name, version from records where kind = $1 and id = $2`, k.kind, k.id).Scan(&r.Name, &r.Version)
	if err == ErrNoRows {
		return persistence.Record{}, nil
	}
	return r, err
}

func (c *catalogue) owner(ctx context.Context, n recordName) (string, error) {
	if id, ok := c.used[n]; ok {
		return id, nil
	}
	var id string
	err := c.g.q.QueryRow(ctx, `select id from records where kind = $1 and name = $2 and name <> ''`, n.kind, n.name).Scan(&id)
	if err == ErrNoRows {
		return "", nil
	}
	return id, err
}

func (g *Group) writeRecords(ctx context.Context, p *Prepared, _ *plan) error {
	for i := range p.Records {
		ch := &p.Records[i]
		var err error
		switch {
		case ch.Delete:
			err = g.one(g.q.Exec(ctx, `delete from records where kind = $1 and id = $2`, ch.Kind, ch.ID))
		case ch.Version == 0:
			err = g.one(g.q.Exec(ctx, `insert into records (kind, id, name, parent, version, body) values ($1, $2, $3, $4, 1, $5)`,
				ch.Kind, ch.ID, ch.Name, ch.Parent, ch.Body))
		default:
			err = g.one(g.q.Exec(ctx, `update records set name = $1, parent = $2, version = $3, body = $4 where kind = $5 and id = $6`,
				ch.Name, ch.Parent, ch.Version+1, ch.Body, ch.Kind, ch.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
