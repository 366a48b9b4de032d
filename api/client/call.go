package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lotuscloud/hcp"
)

// Meta is what the headers of an answer say.
type Meta struct {
	Status    int
	RequestID string
	TraceID   string
	ETag      string
	Location  string
	Replayed  bool // the server had answered this idempotency key before
}

// CallOption changes one call.
type CallOption func(*request)

// WithKey sends this idempotency key in place of a fresh one.
func WithKey(key string) CallOption { return func(r *request) { r.key = key } }

// WithTraceparent sends a W3C trace context.
func WithTraceparent(tp string) CallOption { return func(r *request) { r.trace = tp } }

// IfGeneration makes an update conditional on the generation that was read.
func IfGeneration(n int64) CallOption {
	return func(r *request) { r.ifMatch = `"` + strconv.FormatInt(n, 10) + `"` }
}

// IfAny makes an update unconditional.
func IfAny() CallOption { return func(r *request) { r.ifMatch = "*" } }

type request struct {
	method  string
	path    string // escaped
	query   url.Values
	body    any
	stream  io.Reader // an upload; never repeated
	size    int64
	key     string
	trace   string
	ifMatch string
}

type rawBody []byte

func escape(s string) string { return url.PathEscape(s) }

func newKey() string { return uuid.NewString() }

func sleep(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errSlept)
	defer cancel()
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), errSlept) {
		return nil
	}
	return ctx.Err()
}

var errSlept = errors.New("slept")

// call sends the request, again where that is safe: a GET, or a mutation, which
// carries an idempotency key and so has one effect however often it is sent.
func (c *Client) call(ctx context.Context, r request, out any) (Meta, error) {
	var body []byte
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return Meta{}, hcp.Errorf(hcp.CodeInvalidRequest, "bad_body", "the request cannot be written as JSON").WithCause(err)
		}
		body = b
	}
	if r.method != http.MethodGet && r.key == "" {
		r.key = c.newKey()
	}
	for attempt := 0; ; attempt++ {
		meta, err := c.once(ctx, r, body, out)
		if err == nil {
			return meta, nil
		}
		wait, again := retryAfter(err, attempt)
		if !again || r.stream != nil || attempt >= c.retries || ctx.Err() != nil {
			return meta, err
		}
		if c.sleep(ctx, wait) != nil {
			return meta, err
		}
	}
}

func (c *Client) once(ctx context.Context, r request, body []byte, out any) (Meta, error) {
	resp, err := c.send(ctx, r, body)
	if err != nil {
		return Meta{}, err
	}
	defer resp.Body.Close()
	meta := metaOf(resp)
	if resp.StatusCode >= 400 {
		return meta, problemOf(resp, meta)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return meta, unreachable(ctx, "the answer was cut", err)
	}
	switch o := out.(type) {
	case nil:
		return meta, nil
	case *rawBody:
		*o = data
		return meta, nil
	}
	if len(data) == 0 {
		return meta, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return meta, hcp.Errorf(hcp.CodeInternal, "bad_answer", "the server's answer is not HCP's").
			WithHint("check that the server address is one of HCP").WithCause(err)
	}
	return meta, nil
}

func (c *Client) send(ctx context.Context, r request, body []byte) (*http.Response, error) {
	u := c.base.String() + r.path
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	var reader io.Reader
	switch {
	case r.stream != nil:
		reader = r.stream
	case body != nil:
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u, reader)
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeInvalidRequest, "bad_server", "the request has no valid address").WithCause(err)
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "application/json, application/problem+json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	switch {
	case r.stream != nil:
		req.ContentLength = r.size
		req.Header.Set("Content-Type", "application/octet-stream")
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.trace != "" {
		req.Header.Set("Traceparent", r.trace)
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, "the server does not answer", err)
	}
	return resp, nil
}

func metaOf(resp *http.Response) Meta {
	h := resp.Header
	return Meta{Status: resp.StatusCode, RequestID: h.Get("Request-Id"), TraceID: h.Get("Trace-Id"), ETag: h.Get("ETag"),
		Location: h.Get("Location"), Replayed: h.Get("Idempotent-Replayed") == "true"}
}

func unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return hcp.Errorf(hcp.CodeUnavailable, "unreachable", "%s", what).
		WithHint("check the server address and that hcpd runs").WithCause(err)
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	_, err := c.call(ctx, request{method: http.MethodGet, path: path, query: query}, &out)
	return out, err
}

func send[T any](ctx context.Context, c *Client, method, path string, body any, opts []CallOption) (T, Meta, error) {
	var out T
	r := request{method: method, path: path, body: body}
	for _, o := range opts {
		o(&r)
	}
	meta, err := c.call(ctx, r, &out)
	return out, meta, err
}
