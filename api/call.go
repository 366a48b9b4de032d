package api

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
)

// call is one request on its way through serve. Handlers read it and return an
// answer; they never touch Fiber.
type call struct {
	s       *Server
	http    *fiber.Ctx
	route   *Route
	ctx     context.Context
	started time.Time

	requestID hcp.RequestID
	traceID   string
	method    string
	path      string // as it was sent, for the audit row and the problem's instance
	source    string // client address

	identity auth.Identity // zero before authentication
	claimed  string        // subject that a refused token named
	grants   auth.Grants
	project  hcp.Project // zero outside of the tenant's scope

	params map[string]string // decoded once, NFC
	query  url.Values
	body   any    // decoded JSON as it was validated; nil without one
	raw    []byte // the bytes of it
	stream *endingReader
	key    *hcp.IdempotencyKey

	target  string // LRN of what the call is about, once known
	audited bool   // the row of kind call is in a commit already
}

// answer is what a handler returns.
type answer struct {
	status   int
	body     any    // marshalled, or
	raw      []byte // sent as it is
	etag     string
	location string
	replayed bool
	stream   func() error // takes over the response
}

func ok(body any) (answer, error) { return answer{status: 200, body: body}, nil }

func (c *call) now() time.Time { return c.s.Clock.Now() }

// hcpCall is who called, for commands and audit rows.
func (c *call) hcpCall() hcp.Call {
	return hcp.Call{RequestID: c.requestID, TraceID: c.traceID, Actor: c.identity.Subject, Scope: c.identity.Scope,
		Source: c.source, Action: string(c.route.Action), Method: c.method, Path: c.path}
}

// maxPathValue bounds one decoded path element: an LRN or a name of 128 characters.
const maxPathValue = 1024

// readParams decodes the path's parameters, each exactly once. A slash that was
// percent-encoded can only be in an LRN or a quota's user: elsewhere it is
// refused here, so that it never reads as another path.
func (c *call) readParams() error {
	names := c.route.params
	if len(names) == 0 {
		return nil
	}
	c.params = make(map[string]string, len(names))
	for _, name := range names {
		v, err := url.PathUnescape(c.http.Params(name))
		switch {
		case err != nil:
			return badPath(name, "its percent-encoding is broken")
		case v == "":
			return badPath(name, "it is empty")
		case len(v) > maxPathValue:
			return badPath(name, "it is too long")
		}
		v = norm.NFC.String(v)
		if strings.Contains(v, "/") && !hcp.LooksLikeLRN(v) && !c.route.SlashIn(name) {
			return badPath(name, "a name or id has no slash")
		}
		for _, r := range v {
			if r < ' ' || r == 0x7f || r == '\uFFFD' {
				return badPath(name, "it has a character that no name has")
			}
		}
		c.params[name] = v
	}
	return nil
}

func badPath(name, why string) error {
	e := hcp.Errorf(hcp.CodeInvalidRequest, "invalid_path", "the %s in the path is not valid: %s", name, why)
	e.Fields = []hcp.FieldError{{Pointer: "{" + name + "}", Reason: "invalid_path", Detail: why}}
	return e
}

// ref reads a reference to a thing of that LRN type: an LRN becomes its id, all
// else stays. An LRN of another type or project names nothing here.
func (c *call) ref(value, typ string) (string, error) {
	value = norm.NFC.String(value)
	if !hcp.LooksLikeLRN(value) {
		return value, nil
	}
	l, err := hcp.ParseLRN(value)
	if err != nil {
		return "", err
	}
	if l.Service != hcp.ServiceCompute || l.Type != typ {
		return "", notHere(typ)
	}
	if c.project.ID != "" && l.Project != "" && l.Project != c.project.ID {
		return "", notHere(typ)
	}
	return l.ID, nil
}

// notHere says the same of what does not exist and what is somebody else's.
func notHere(typ string) error {
	if typ == "vm" {
		typ = "VM"
	}
	return hcp.NotFound(typ)
}

func (c *call) paramRef(name, typ string) (string, error) { return c.ref(c.params[name], typ) }

// resolvedPath is the path with ids for LRNs and the project's id: the same call
// has the same one however its references were written. VM names stay names: a
// retry must find its record although the name may be free or taken again by now.
func (c *call) resolvedPath() string {
	var b strings.Builder
	for part := range strings.SplitSeq(c.route.Path[1:], "/") {
		b.WriteByte('/')
		if !strings.HasPrefix(part, "{") {
			b.WriteString(part)
			continue
		}
		name := strings.Trim(part, "{}")
		v := c.params[name]
		if name == "project" && c.project.ID != "" {
			v = string(c.project.ID)
		} else if l, err := hcp.ParseLRN(v); err == nil {
			v = l.ID
		}
		b.WriteString(url.PathEscape(v))
	}
	return b.String()
}
