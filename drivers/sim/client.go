package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// client is the HTTP of the driver: one session, kept connections, a deadline
// for each call. It knows whether a request may have reached the hypervisor.
type client struct {
	base    string
	login   simapi.LoginRequest
	timeout time.Duration
	http    *http.Client

	gate   chan struct{} // holds one token: who has it may log in, so that many calls log in once
	token  atomic.Pointer[string]
	closed atomic.Bool
}

var errClosed = errors.New("the driver is closed")

// callError is a call without an answer. sent tells whether the hypervisor may
// have seen the request.
type callError struct {
	op   simapi.Op
	sent bool
	err  error
}

func (e *callError) Error() string { return "sim: " + string(e.op) + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

func newClient(base string, login simapi.LoginRequest, timeout time.Duration) *client {
	return &client{base: base, login: login, timeout: timeout, gate: make(chan struct{}, 1), http: &http.Client{Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}}}
}

// call posts one operation. A session that has ended is opened anew, once: a 401
// says that nothing was done. Errors are *simapi.Error or *callError.
func (c *client) call(ctx context.Context, op simapi.Op, req, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return &callError{op: op, err: err}
	}
	token, err := c.session(ctx, "")
	if err != nil {
		return err
	}
	err = c.post(ctx, op, token, body, answer)
	if unauthorized(err) {
		if token, err = c.session(ctx, token); err != nil {
			return err
		}
		err = c.post(ctx, op, token, body, answer)
	}
	return err
}

func unauthorized(err error) bool {
	e, ok := errors.AsType[*simapi.Error](err)
	return ok && e.Code == simapi.CodeUnauthorized
}

// session returns the token, logging in when there is none or it is the expired one.
func (c *client) session(ctx context.Context, expired string) (string, error) {
	if t := c.token.Load(); t != nil && *t != expired {
		return *t, nil
	}
	select {
	case c.gate <- struct{}{}:
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return "", &callError{op: simapi.OpLogin, err: ctx.Err()}
	}
	if t := c.token.Load(); t != nil && *t != expired {
		return *t, nil
	}
	if c.closed.Load() {
		return "", &callError{op: simapi.OpLogin, err: errClosed}
	}
	body, err := json.Marshal(c.login)
	if err != nil {
		return "", &callError{op: simapi.OpLogin, err: err}
	}
	var a simapi.LoginAnswer
	if err := c.post(ctx, simapi.OpLogin, "", body, &a); err != nil {
		// Whatever became of the login, the operation itself did not leave.
		if e, ok := errors.AsType[*callError](err); ok {
			return "", &callError{op: simapi.OpLogin, err: e.err}
		}
		return "", err
	}
	c.token.Store(&a.Token)
	return a.Token, nil
}

// post sends one request and reads its answer.
func (c *client) post(ctx context.Context, op simapi.Op, token string, body []byte, answer any) error {
	if err := ctx.Err(); err != nil {
		return &callError{op: op, err: err}
	}
	var sent atomic.Bool
	if op.Mutating() {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/"+string(op), bytes.NewReader(body))
	if err != nil {
		return &callError{op: op, err: err}
	}
	req.Header["Content-Type"] = []string{"application/json"}
	if token != "" {
		req.Header[simapi.TokenHeader] = []string{token}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return &callError{op: op, sent: sent.Load(), err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return &callError{op: op, sent: true, err: err}
	}
	if res.StatusCode != http.StatusOK {
		e := &simapi.Error{}
		if json.Unmarshal(b, e) != nil || e.Code == "" {
			return &callError{op: op, sent: res.StatusCode != http.StatusServiceUnavailable, err: errors.New("HTTP " + res.Status + " of something that is no sim")}
		}
		return e
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return &callError{op: op, sent: true, err: err}
	}
	return nil
}

// close ends the session, if the hypervisor still listens.
func (c *client) close() error {
	c.closed.Store(true)
	defer c.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), min(c.timeout, 2*time.Second))
	defer cancel()
	select {
	case c.gate <- struct{}{}: // a login on its way ends first, or its session would stay
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return nil
	}
	// A hypervisor that is away has no session of ours left that we could end.
	if t := c.token.Swap(nil); t != nil {
		_ = c.post(ctx, simapi.OpLogout, *t, []byte("{}"), &simapi.OK{})
	}
	return nil
}
