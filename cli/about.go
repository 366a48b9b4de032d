package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
)

const (
	reasonNotHCP      = "not_hcp"    // the SDK's word for an error answer that is no problem document
	reasonBadAnswer   = "bad_answer" // and for an answer that is not HCP's
	reasonUnreachable = "unreachable"
)

// about says what a call was for, so that its failure can be told to a person.
type about struct {
	a    *app
	noun string // "vm"
	name string
	verb string // "start"
	key  string // idempotency key that was sent
}

func (a *app) about(noun, name, verb string) about {
	return about{a: a, noun: noun, name: name, verb: verb}
}

func (s about) withKey(key string) about { s.key = key; return s }

// failed makes the failure of an error of a call. nil stays nil.
func (s about) failed(err error) *failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if isCancelled(err) {
		return s.interrupted(err)
	}
	e := hcp.AsError(err)
	f := &failure{Code: e.Code, Reason: e.Reason, Message: e.Message, Hint: e.Hint, Details: e.Details, Fields: e.Fields, Cause: err}
	if p, ok := errors.AsType[*client.Problem](err); ok {
		f.answered = true
		f.Status, f.Type, f.Trace, f.Request, f.Job = p.Status, p.Type, p.TraceID, string(p.RequestID), p.JobID
	}
	if f.Message == "" {
		f.Message = entryOf(f.Code).Title
	}
	switch {
	case f.Reason == reasonNotHCP || f.Reason == reasonBadAnswer:
		s.notHCP(f)
	case f.Code == hcp.CodeUnavailable && f.Reason == reasonUnreachable && !f.answered:
		f.Message = s.what() + "the server " + s.a.serverText() + s.a.serverDefault() + " does not answer" + causeText(e)
		f.Try = s.again()
	case !f.answered:
		f.Message = s.what() + f.Message + causeText(e)
	default:
		f.Message = s.what() + f.Message
		s.sayWhere(f)
		f.Try = s.try(f)
	}
	return f
}

// causeText is the client's own trouble: no text of a server is in it.
func causeText(e *hcp.Error) string {
	if e.Err == nil {
		return ""
	}
	text := e.Err.Error()
	if i := strings.LastIndex(text, `": `); i >= 0 { // net/http repeats method and URL
		text = text[i+3:]
	}
	return " (" + text + ")"
}

// interrupted tells whether it is known what became of the call.
func (s about) interrupted(err error) *failure {
	f := &failure{Code: codeInterrupted, Message: "interrupted before the server answered", Cause: err}
	if s.key != "" {
		f.Message = s.what() + "interrupted before the server answered; it may have taken the call. The same key asks again without doing it twice"
		f.Try = s.again()
	}
	return f
}

// notHCP is an answer of something else than HCP: a proxy's page, another service.
func (s about) notHCP(f *failure) {
	f.Message = "what answers at " + s.a.serverText() + " is not HCP"
	if f.Status != 0 {
		f.Message += fmt.Sprintf(": it answered %d without a problem document", f.Status)
	} else {
		f.Message += ": the answer is not HCP's JSON"
	}
	f.Hint = "check the address in " + s.a.serverVia()
	if f.Code == hcp.CodeUnavailable { // a gateway before a server that is down
		f.Message = s.what() + "a gateway at " + s.a.serverText() + fmt.Sprintf(" answers %d: HCP behind it is down", f.Status)
		f.Try = s.again()
		return
	}
	f.Code, f.Exit = hcp.CodeInvalidRequest, hcp.ExitUsage
	f.Try = "hcpctl version --server " + defaultServer
}

// what is the beginning of the sentence: "web-1 was not started: ".
func (s about) what() string {
	name := s.name
	if name == "" {
		name = s.noun
	}
	if name == "" {
		return ""
	}
	if past, ok := pastForms[s.verb]; ok {
		return name + " was not " + past + ": "
	}
	if s.name != "" && s.noun != "" {
		return s.noun + " " + name + ": "
	}
	return ""
}

var pastForms = map[string]string{
	"create": "created", "start": "started", "stop": "stopped", "reboot": "rebooted", "refresh": "refreshed", "delete": "deleted",
	"update": "changed", "cancel": "cancelled", "retry": "retried", "register": "registered", "import": "imported",
	"retire": "retired", "deprecate": "deprecated", "set": "set", "probe": "probed",
}

// sayWhere adds to a "not found" what was looked through.
func (s about) sayWhere(f *failure) {
	if f.Code != hcp.CodeNotFound {
		return
	}
	t := s.a.known
	if t == nil {
		return
	}
	var where []string
	if slices.Contains(projectNouns, s.noun) && t.project != "" && !t.isOps() {
		where = append(where, "project "+t.project)
	}
	where = append(where, "server "+t.server)
	if t.context != "" {
		where = append(where, "context "+t.context)
	}
	f.Message += " (" + strings.Join(where, ", ") + ")"
}

// try is a command that helps with the code.
func (s about) try(f *failure) string {
	a := s.a
	switch f.Code {
	case hcp.CodeUnauthorized:
		return a.commandLine("login", "--token-stdin")
	case hcp.CodeForbidden:
		return a.commandLine("whoami")
	case hcp.CodeNotFound:
		if kind := missingKind(f, s.noun); kind == "project" && s.noun != "project" {
			return a.commandLine("whoami")
		} else if kind != "" {
			return a.commandLine(kind, "list")
		}
	case hcp.CodeConflict, hcp.CodePreconditionFailed, hcp.CodePreconditionRequired:
		if s.noun != "" && s.name != "" && s.verb != "create" && s.verb != "register" {
			return a.commandLine(s.noun, "get", s.name)
		}
		if s.noun != "" {
			return a.commandLine(s.noun, "list")
		}
	case hcp.CodeNoCapacity, hcp.CodeFeatureNotSupported:
		return a.commandLine("zone", "list", "-o", "wide")
	case hcp.CodeQuotaExceeded:
		return a.commandLine("quota", "get")
	case hcp.CodeUnavailable, hcp.CodeRateLimited, hcp.CodeProviderUnavailable, hcp.CodeProviderTimeout, hcp.CodeIdempotencyInProgress:
		return s.again()
	case hcp.CodeInvalidRequest:
		if s.noun != "" && s.verb != "" {
			return a.commandLine(s.noun, s.verb, "--help")
		}
	}
	return ""
}

// missingKind reads which kind of thing the server did not find: a create may
// miss its image.
func missingKind(f *failure, noun string) string {
	if _, rest, ok := strings.Cut(f.Message, "no such "); ok {
		kind, _, _ := strings.Cut(rest, " ")
		if slices.Contains([]string{"vm", "job", "image", "flavor", "zone", "cluster", "org", "project"}, strings.ToLower(kind)) {
			return strings.ToLower(kind)
		}
	}
	return noun
}

// again is the command as it was typed, with the key of the call that was lost.
func (s about) again() string {
	parts := []string{"hcpctl"}
	for _, w := range s.a.args {
		parts = append(parts, shellQuote(w))
	}
	if s.key != "" && !s.a.given("idempotency-key") {
		parts = append(parts, "--idempotency-key", shellQuote(s.key))
	}
	return strings.Join(parts, " ")
}

func (a *app) serverText() string {
	if a.known == nil {
		return "of HCP"
	}
	return a.known.server
}

// serverDefault tells who named no server that there is a choice.
func (a *app) serverDefault() string {
	if a.known == nil || a.known.serverVia != "the default" {
		return ""
	}
	return " (the default: neither --server, HCP_SERVER nor a context names another)"
}

func (a *app) serverVia() string {
	if a.known == nil {
		return envServer
	}
	return a.known.serverVia
}
