package api

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Audit says who writes the row of kind call when the call succeeds. A call that
// is refused, whatever it was, always leaves one, written here.
type Audit string

const (
	AuditNone  Audit = ""      // reads that succeed leave none
	AuditRead  Audit = "read"  // reads of the audit log leave one
	AuditOwn   Audit = "own"   // the row is in the handler's own commit
	AuditActor Audit = "actor" // the row is in the commit of the actor that took the command
)

// auditRow describes the call with that result.
func (c *call) auditRow(result string, status int) hcp.AuditRecord {
	r := hcp.AuditRecord{
		ID: id[hcp.AuditID](c.s, hcp.KindAudit), Kind: hcp.AuditCall, Time: c.now(), Actor: c.identity.Subject, Claimed: c.claimed,
		Scope: c.identity.Scope, Action: string(c.route.Action), Target: c.target, Org: c.project.Org, Project: c.project.ID,
		Result: result, Status: status, RequestID: c.requestID, TraceID: c.traceID, Source: c.source, Method: c.method, Path: c.path,
	}
	if r.Actor == "" {
		r.Actor = "anonymous"
	}
	if r.Target == "" {
		r.Target = c.path
	}
	if len(r.Path) > maxAuditPath {
		r.Path = r.Path[:maxAuditPath]
	}
	if len(r.Target) > maxAuditPath {
		r.Target = r.Target[:maxAuditPath]
	}
	return r
}

const maxAuditPath = 1024

// audit writes the row that nobody else has written. The answer waits for it: a
// refusal that was seen is on disk.
func (s *Server) audit(c *call, a answer, e *hcp.Error) {
	if c.audited || c.route.Action == "" {
		return
	}
	result := "ok"
	switch {
	case e != nil:
		result = string(e.Code)
	case a.replayed:
		result = "replayed"
	case c.route.Audit == AuditRead:
	default:
		return
	}
	status := a.status
	ctx, cancel := context.WithTimeout(context.Background(), s.Limits.Command)
	defer cancel()
	err := s.Store.Commit(ctx, persistence.Commit{Audit: []hcp.AuditRecord{c.auditRow(result, status)}})
	if err != nil && !errors.Is(err, persistence.ErrUnknownOutcome) {
		s.Log.Error("an audit row was not written", slog.String("request_id", string(c.requestID)), slog.String("result", result),
			slog.String("actor", c.identity.Subject), slog.String("status", strconv.Itoa(status)), slog.String("cause", err.Error()))
	}
}
