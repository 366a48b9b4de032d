package client

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// Problem is an error answer of the server. It unwraps to *hcp.Error, so that
// hcp.CodeOf and hcp.AsError work on it.
type Problem struct {
	v1.Problem
	err *hcp.Error
}

func (p *Problem) Error() string { return p.err.Error() }

func (p *Problem) Unwrap() error { return p.err }

// problemOf reads an error answer; one that is no problem document (a proxy's
// page, another server) becomes an error of the status alone.
func problemOf(resp *http.Response, meta Meta) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var p v1.Problem
	mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if mt != "application/problem+json" || json.Unmarshal(data, &p) != nil || p.Code == "" {
		code := hcp.CodeInternal
		switch {
		case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout:
			code = hcp.CodeUnavailable
		case resp.StatusCode == http.StatusNotFound:
			code = hcp.CodeNotFound
		}
		p = v1.Problem{Status: resp.StatusCode, Code: code, Reason: "not_hcp", Title: code.Entry().Title,
			Detail: "the server answered " + strconv.Itoa(resp.StatusCode) + " without a problem document",
			Hint:   "check that the server address is one of HCP", Retryable: code.Entry().Retryable}
	}
	if p.TraceID == "" {
		p.TraceID = meta.TraceID
	}
	if p.RequestID == "" {
		p.RequestID = hcp.RequestID(meta.RequestID)
	}
	e := &hcp.Error{Code: p.Code, Reason: p.Reason, Message: p.Detail, Hint: p.Hint, Details: p.Details, Fields: p.Errors}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return &Problem{Problem: p, err: e}
}

// retryAfter says whether the same call may be sent again, and when: only what
// HCP itself could not take just now. A provider that does not answer is told to
// the caller at once.
func retryAfter(err error, attempt int) (time.Duration, bool) {
	e := hcp.AsError(err)
	switch {
	case e.Reason == "not_hcp":
		return 0, false
	case e.Code == hcp.CodeUnavailable, e.Code == hcp.CodeRateLimited, e.Code == hcp.CodeIdempotencyInProgress:
	default:
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, true
	}
	backoff := min(100*time.Millisecond<<attempt, 5*time.Second)
	return backoff/2 + rand.N(backoff/2), true
}
