package api

import (
	"encoding/json"
	"errors"

	"golang.org/x/text/unicode/norm"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// change is one mutation of the catalogue: no actor owns these rows, so the API
// commits them itself, with the caller's key, the audit row and an event.
type change struct {
	records []persistence.RecordChange
	limits  []persistence.LimitChange
	event   hcp.EventType // empty: none
	subject string        // LRN
	status  int
	body    any // nil: no content
}

// record is the row of a catalogue thing.
func record(kind persistence.RecordKind, id, name, parent string, version int64, v any) (persistence.RecordChange, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return persistence.RecordChange{}, err
	}
	return persistence.RecordChange{Record: persistence.Record{Kind: kind, ID: id, Name: name, Parent: parent, Version: version, Body: body}}, nil
}

func dropRecord(kind persistence.RecordKind, id, name string, version int64) persistence.RecordChange {
	return persistence.RecordChange{Record: persistence.Record{Kind: kind, ID: id, Name: name, Version: version}, Delete: true}
}

// commit makes the change durable and answers. Of a race with the same key the
// loser answers with the winner's bytes.
func (s *Server) commit(c *call, ch change) (answer, error) {
	a := answer{status: ch.status}
	if ch.body != nil {
		b, err := json.Marshal(ch.body)
		if err != nil {
			return answer{}, err
		}
		a.raw = b
	}
	if ch.subject != "" {
		c.target = ch.subject
	}
	now := c.now()
	commit := persistence.Commit{Records: ch.records, Limits: ch.limits, Audit: []hcp.AuditRecord{c.auditRow("ok", ch.status)}}
	if ch.event != "" {
		commit.Events = []hcp.Event{{ID: id[hcp.EventID](s, hcp.KindEvent), Type: ch.event, Subject: ch.subject, Actor: c.identity.Subject,
			Time: now, TraceID: c.traceID}}
	}
	if c.key != nil {
		commit.Key = &persistence.IdempotencyRecord{IdempotencyKey: *c.key, Status: ch.status, Body: a.raw, CreatedAt: now,
			ExpiresAt: now.Add(s.Limits.IdempotencyTTL)}
	}
	err := s.Store.Commit(c.ctx, commit)
	if err == nil {
		c.audited = true
		return a, nil
	}
	if errors.Is(err, persistence.ErrUnknownOutcome) {
		c.audited = true // the row is in the commit, wherever that is
		return answer{}, hcp.Errorf(hcp.CodeUnavailable, "outcome_unknown", "HCP did not answer in time").
			WithHint("repeat the call with the same Idempotency-Key: it has one effect").WithCause(err)
	}
	if r, refused := persistence.RefusalOf(err); refused {
		switch r.Kind {
		case persistence.RefusedKey:
			if r.Record != nil && c.key != nil {
				return c.answerFrom(*r.Record)
			}
		case persistence.RefusedName:
			return answer{}, hcp.Errorf(hcp.CodeConflict, "name_taken", "the name is taken")
		case persistence.RefusedVersion:
			return answer{}, errChanged
		}
	}
	return answer{}, err
}

var errChanged = hcp.Errorf(hcp.CodeConflict, "changed_meanwhile", "somebody else changed it at the same time").
	WithHint("read it again and repeat the change on what you see")

// cleanName is the name in NFC, checked.
func cleanName(name string) (string, error) {
	name = norm.NFC.String(name)
	return name, hcp.CheckName(name)
}

// inUse refuses a delete.
func inUse(what, by string) error {
	return hcp.Errorf(hcp.CodeConflict, "in_use", "the %s is in use by %s", what, by).WithHint("remove what uses it first")
}
