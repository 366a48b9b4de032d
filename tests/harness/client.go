package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
)

// Client is one caller. It is plain HTTP on purpose: a defect of the Go SDK must
// not hide one of the server. It is safe for concurrent use.
type Client struct {
	w      *World
	tenant bool
	http   *http.Client

	mu                  sync.Mutex
	url, token, project string
}

func newClient(w *World, tenant bool) *Client {
	return &Client{w: w, tenant: tenant, http: &http.Client{Timeout: 70 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
}

func (c *Client) aim(url, token, project string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.url, c.token, c.project = url, token, project
	c.http.CloseIdleConnections()
}

// Request is one call.
type Request struct {
	Method, Path string // Path under the project (tenant) or as it is when it begins with /v1
	Body         any    // []byte goes as it is
	Header       map[string]string
	Token        string // instead of the client's own; "-" sends none
}

// Response is one answer; Err is set when none came.
type Response struct {
	Err    error
	Status int
	Header http.Header
	Body   []byte
}

// Into decodes the body.
func (r Response) Into(v any) error {
	if r.Err != nil {
		return r.Err
	}
	if err := json.Unmarshal(r.Body, v); err != nil {
		return fmt.Errorf("%d %w: %s", r.Status, err, r.Body)
	}
	return nil
}

// Code is the catalogue code of a problem document.
func (r Response) Code() hcp.Code {
	var p struct {
		Code hcp.Code `json:"code"`
	}
	_ = json.Unmarshal(r.Body, &p)
	return p.Code
}

// Reason is the reason of a problem document.
func (r Response) Reason() string {
	var p struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(r.Body, &p)
	return p.Reason
}

func (r Response) String() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprintf("%d %s", r.Status, r.Body)
}

// Do sends the request and records call and answer for CheckSums.
func (c *Client) Do(ctx context.Context, q Request) Response {
	c.mu.Lock()
	url, token, project := c.url, c.token, c.project
	c.mu.Unlock()
	path := q.Path
	if !strings.HasPrefix(path, "/v1") {
		path = "/v1/projects/" + project + path
	}
	var body io.Reader
	switch b := q.Body.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return Response{Err: err}
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, url+path, body)
	if err != nil {
		return Response{Err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.Token != "" {
		token = q.Token
	}
	if token != "-" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range q.Header {
		req.Header.Set(k, v)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Response{Err: err}
	}
	defer res.Body.Close()
	r := Response{Status: res.StatusCode, Header: res.Header}
	if r.Body, r.Err = io.ReadAll(res.Body); r.Err != nil {
		return r
	}
	c.w.calls.add(entry{method: q.Method, path: path, status: r.Status, tenant: c.tenant,
		request: res.Header.Get("Request-Id"), trace: res.Header.Get("Trace-Id"), body: r.Body})
	return r
}

// Get is a GET in the test's context.
func (c *Client) Get(path string) Response {
	return c.Do(c.w.Context(), Request{Method: http.MethodGet, Path: path})
}

// Post is a POST; key "" sends no Idempotency-Key.
func (c *Client) Post(path, key string, body any) Response {
	return c.send(http.MethodPost, path, key, body)
}

// Delete is a DELETE.
func (c *Client) Delete(path string) Response { return c.send(http.MethodDelete, path, "", nil) }

// Put is a PUT.
func (c *Client) Put(path string, body any) Response {
	return c.send(http.MethodPut, path, "", body)
}

func (c *Client) send(method, path, key string, body any) Response {
	q := Request{Method: method, Path: path, Body: body}
	if key != "" {
		q.Header = map[string]string{"Idempotency-Key": key}
	}
	return c.Do(c.w.Context(), q)
}

// entry is one answered call.
type entry struct {
	method, path   string
	status         int
	tenant         bool
	request, trace string
	body           []byte
}

type callLog struct {
	mu  sync.Mutex
	all []entry
}

func (l *callLog) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *callLog) snapshot() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]entry(nil), l.all...)
}
