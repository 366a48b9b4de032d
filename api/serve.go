package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
)

// serve is the one way through: request id, trace, recover, authentication,
// scope, authorisation, rate, parameters, body, idempotency, the handler, the
// audit row, the answer, access log and metrics.
func (s *Server) serve(route *Route) fiber.Handler {
	return func(f *fiber.Ctx) error {
		c := s.begin(f, route)
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout(route))
		defer cancel()
		c.ctx = ctx
		a, err := s.run(c)
		s.finish(c, a, err)
		return nil
	}
}

// begin makes the call's identity; an inbound request id is not believed.
func (s *Server) begin(f *fiber.Ctx, route *Route) *call {
	if f.Context().ConnRequestNum() == 1 {
		s.silent.spoke(f.Context().Conn())
	}
	path, _, _ := strings.Cut(f.OriginalURL(), "?")
	return &call{s: s, http: f, route: route, started: s.Clock.Now(), requestID: id[hcp.RequestID](s, hcp.KindRequest),
		traceID: traceID(f.Get("Traceparent")), method: f.Method(), path: path, source: f.IP()}
}

func (s *Server) timeout(r *Route) time.Duration {
	switch {
	case r.Upload:
		return s.Limits.Upload
	case r.Waits:
		return maxWait + s.Limits.Command
	}
	return s.Limits.Command
}

func (s *Server) run(c *call) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("a handler panicked", slog.Any("panic", p), slog.String("route", c.route.ID),
				slog.String("request_id", string(c.requestID)), slog.String("stack", string(debug.Stack())))
			err = hcp.Errorf(hcp.CodeInternal, "panic", "HCP met an error it did not expect").WithCause(fmt.Errorf("panic: %v", p))
		}
	}()
	if err := s.admit(c); err != nil {
		return answer{}, err
	}
	if err := c.readQuery(); err != nil {
		return answer{}, err
	}
	if err := c.readBody(); err != nil {
		return answer{}, err
	}
	if c.route.Mutates() {
		a, replayed, err := s.replay(c)
		if err != nil || replayed {
			return a, err
		}
	}
	return c.route.handle(s, c)
}

func wrongScope(needed hcp.Scope) error {
	text := "this call takes an operator's token, and yours is a tenant's"
	if needed == hcp.ScopeTenant {
		text = "this call takes a tenant's token, and yours is an operator's"
	}
	return hcp.Errorf(hcp.CodeForbidden, "wrong_scope", "%s", text).WithHint("use a token of the other scope")
}

// admit authenticates and authorises. A project that does not exist and one that
// the caller has no role in are the same answer.
func (s *Server) admit(c *call) error {
	if c.route.Action == auth.Public {
		return c.readParams()
	}
	if err := s.authenticate(c); err != nil {
		return err
	}
	if err := s.limiter.take(c); err != nil {
		return err
	}
	if c.route.Scope != "" && c.identity.Scope != c.route.Scope {
		return wrongScope(c.route.Scope)
	}
	grants, err := s.bindings.Of(c.ctx, c.identity.Subject)
	if err != nil {
		return err
	}
	c.grants = grants
	if err := c.readParams(); err != nil {
		return err
	}
	switch c.route.Scope {
	case hcp.ScopeTenant:
		ref, err := c.paramRef("project", "project")
		if err != nil {
			return err
		}
		row, err := s.projects.find(c.ctx, ref)
		if err != nil {
			return err
		}
		if c.grants = grants.In(row.value); len(c.grants) == 0 {
			return hcp.NotFound("project")
		}
		c.project = row.value
	case hcp.ScopeOps:
		c.grants = grants.Ops()
	default:
		return nil
	}
	if !c.grants.Allow(c.route.Action) {
		return hcp.Errorf(hcp.CodeForbidden, "missing_role", "none of the caller's roles allows %s", c.route.Action)
	}
	return nil
}

func (s *Server) authenticate(c *call) error {
	header := c.http.Get(fiber.HeaderAuthorization)
	if header == "" {
		return hcp.Errorf(hcp.CodeUnauthorized, "no_token", "the call carries no token").
			WithHint("send Authorization: Bearer and a token")
	}
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return hcp.Errorf(hcp.CodeUnauthorized, "bad_token", "the Authorization header is not a bearer token")
	}
	identity, err := s.Issuer.Verify(token)
	if err != nil {
		c.claimed = auth.Claimed(token)
		return err
	}
	c.identity = identity
	return nil
}

// finish writes the audit row that the call owes, then the answer.
func (s *Server) finish(c *call, a answer, err error) {
	var e *hcp.Error
	if err != nil {
		e = publicError(c, err)
		a = answer{status: e.Code.Entry().Status}
	}
	s.audit(c, a, e)
	c.headers()
	if e != nil {
		c.writeProblem(e)
	} else if werr := c.write(a); werr != nil {
		e = hcp.AsError(werr)
		c.writeProblem(e)
	}
	c.dropBody()
	s.observe(c, a.status, e)
}

// publicError is what of an error may be told: trouble of the context is that
// HCP did not answer in time.
func publicError(c *call, err error) *hcp.Error {
	if _, is := errors.AsType[*hcp.Error](err); !is && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return hcp.Errorf(hcp.CodeUnavailable, "timeout", "HCP did not answer in time").WithCause(err)
	}
	e := hcp.AsError(err)
	if e.Code.Entry().Status == 0 { // a code of jobs has no place here
		e = hcp.Errorf(hcp.CodeInternal, "unexpected", "HCP met an error it did not expect").WithCause(err)
	}
	return e
}

func (s *Server) observe(c *call, status int, e *hcp.Error) {
	took := s.Clock.Now().Sub(c.started)
	o := Observation{Route: c.route.ID, Method: c.method, Status: status, Duration: took}
	level := slog.LevelDebug
	if e != nil {
		o.Code = e.Code
		level = slog.LevelInfo
		if status >= 500 {
			level = slog.LevelError
		}
	}
	s.Metrics(o)
	if !s.Log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("route", c.route.ID), slog.String("method", c.method), slog.Int("status", status),
		slog.Duration("took", took), slog.String("actor", c.identity.Subject), slog.String("source", c.source),
		slog.String("request_id", string(c.requestID)), slog.String("trace_id", c.traceID)}
	if e != nil {
		attrs = append(attrs, slog.String("code", string(e.Code)), slog.String("reason", e.Reason))
		if e.Err != nil {
			attrs = append(attrs, slog.String("cause", e.Err.Error()))
		}
	}
	s.Log.LogAttrs(context.Background(), level, "request", attrs...)
}

// fiberError answers what reached no handler: an unknown path, another method, a
// request that is not HTTP as we take it.
func (s *Server) fiberError(f *fiber.Ctx, err error) error {
	c := s.begin(f, &Route{ID: ""})
	e := hcp.AsError(err)
	if fe, is := errors.AsType[*fiber.Error](err); is {
		switch fe.Code {
		case fiber.StatusNotFound:
			e = hcp.Errorf(hcp.CodeNotFound, "no_route", "there is no such path").WithHint("see /openapi.json for the paths")
		case fiber.StatusMethodNotAllowed:
			e = hcp.Errorf(hcp.CodeMethodNotAllowed, "method_not_allowed", "this path does not take the method")
		case fiber.StatusRequestHeaderFieldsTooLarge:
			e = hcp.Errorf(hcp.CodeInvalidRequest, "headers_too_large", "the request line and headers are too long")
		case fiber.StatusRequestEntityTooLarge:
			e = hcp.Errorf(hcp.CodePayloadTooLarge, "body_too_large", "the body is too large")
		case fiber.StatusBadRequest:
			e = hcp.Errorf(hcp.CodeInvalidRequest, "bad_http", "the request is not valid HTTP")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limits.Command)
	defer cancel()
	c.ctx = ctx
	c.headers()
	c.writeProblem(e)
	c.dropBody()
	s.observe(c, e.Code.Entry().Status, e)
	return nil
}
