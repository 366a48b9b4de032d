package hcp

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Error is the one error type that crosses a border of HCP. Message, Hint,
// Reason, Details and Fields are safe for a tenant to read: no provider id, host
// name, URL, credential or foreign exception text. Err is for operators' logs
// and never leaves in a body.
type Error struct {
	Code       Code
	Reason     string         // a listed snake_case word, see Reasons
	Message    string         // what went wrong, one sentence
	Hint       string         // what to do next; the catalogue's default when empty
	RetryAfter time.Duration  // 0: the catalogue decides
	Details    map[string]any // machine-readable facts: limit, used, requested
	Fields     []FieldError   // for INVALID_REQUEST: which fields and why
	Err        error
}

// FieldError is one wrong field of a request. It never carries the submitted value.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer into the body, or "?name" for a query parameter
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
}

func (e *Error) Error() string {
	s := string(e.Code)
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error; %w is not special, use WithCause.
func Errorf(code Code, reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

func (e *Error) WithDetail(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// AsError finds the *Error in a chain. Whatever is none becomes INTERNAL_ERROR
// with the cause kept for the log: foreign text never reaches a tenant.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Reason: "unexpected", Message: "HCP met an error it did not expect", Err: err}
}

// CodeOf is the code of an error, or "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// IsCode reports whether err carries the code.
func IsCode(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// Fault is the part of an Error that is stored on jobs and shown to tenants.
type Fault struct {
	Code      Code           `json:"code"`
	Reason    string         `json:"reason,omitempty"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint,omitempty"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

// Fault drops what tenants must not see and fills in the catalogue's defaults.
func (e *Error) Fault() *Fault {
	if e == nil {
		return nil
	}
	entry := e.Code.Entry()
	f := &Fault{Code: e.Code, Reason: e.Reason, Message: e.Message, Hint: e.Hint, Retryable: entry.Retryable, Details: e.Details}
	if f.Hint == "" {
		f.Hint = entry.Hint
	}
	if f.Message == "" {
		f.Message = entry.Title
	}
	return f
}

// NotFound is the one answer for what does not exist and for what belongs to
// somebody else; both read the same.
func NotFound(kind string) *Error {
	return Errorf(CodeNotFound, "not_found", "there is no such %s here", kind)
}
