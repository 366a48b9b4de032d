// Package simctl drives the fault controls of a simulated hypervisor over HTTP.
// hcpctl sim and tests use it; it knows nothing of the driver.
//
// Start reading at NewClient; the meaning of each control stands in simapi.
package simctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Client speaks to POST {url}/control/... .
type Client struct {
	url  string
	http *http.Client
}

// NewClient takes the URL that `hcpd sim` printed. Nothing is called yet.
func NewClient(url string) *Client {
	return &Client{url: strings.TrimRight(url, "/"), http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Control posts a control by name with any JSON object, and returns the answer
// as it came. An error of the sim is *simapi.Error.
func (c *Client) Control(ctx context.Context, name string, body any) (json.RawMessage, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode control %s: %w", name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/control/"+name, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("control %s: %w", name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control %s: %w", name, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("control %s: %w", name, err)
	}
	if res.StatusCode != http.StatusOK {
		var e simapi.Error
		if json.Unmarshal(answer, &e) != nil || e.Code == "" {
			return nil, fmt.Errorf("control %s: %s does not answer as a sim does: HTTP %d", name, c.url, res.StatusCode)
		}
		return nil, &e
	}
	return answer, nil
}

func call[Ans any](ctx context.Context, c *Client, name string, body any) (a Ans, err error) {
	raw, err := c.Control(ctx, name, body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("control %s: the answer is no JSON of its kind: %w", name, err)
	}
	return a, nil
}

func (c *Client) run(ctx context.Context, name string, body any) error {
	_, err := call[simapi.OK](ctx, c, name, body)
	return err
}

// Delay makes op take d; 0 ends it.
func (c *Client) Delay(ctx context.Context, op simapi.Op, d time.Duration) error {
	return c.run(ctx, "delay", simapi.DelayFault{Op: op, MS: int(d.Milliseconds())})
}

// Fail makes the next n calls fail; code is an HTTP status ("500"), a name ("locked"), or "ok" to end it.
func (c *Client) Fail(ctx context.Context, op simapi.Op, code string, n int) error {
	return c.fail(ctx, op, code, n, false)
}

// FailInTask makes the tasks of the next n calls fail.
func (c *Client) FailInTask(ctx context.Context, op simapi.Op, code string, n int) error {
	return c.fail(ctx, op, code, n, true)
}

func (c *Client) fail(ctx context.Context, op simapi.Op, code string, n int, inTask bool) error {
	var parsed simapi.FailCode
	if err := parsed.UnmarshalJSON([]byte(code)); err != nil {
		if err := parsed.UnmarshalJSON([]byte(`"` + code + `"`)); err != nil {
			return err
		}
	}
	return c.run(ctx, "fail", simapi.FailFault{OpFault: simapi.OpFault{Op: op, N: n}, Code: parsed, InTask: inTask})
}

// CommitThenDrop lets the next n calls take effect and cuts them instead of an answer.
func (c *Client) CommitThenDrop(ctx context.Context, op simapi.Op, n int) error {
	return c.run(ctx, "commit_then_drop", simapi.OpFault{Op: op, N: n})
}

// Drop cuts the next n calls before they do anything.
func (c *Client) Drop(ctx context.Context, op simapi.Op, n int) error {
	return c.run(ctx, "drop", simapi.OpFault{Op: op, N: n})
}

// CommitNoop makes the next n calls answer OK and do nothing.
func (c *Client) CommitNoop(ctx context.Context, op simapi.Op, n int) error {
	return c.run(ctx, "commit_noop", simapi.OpFault{Op: op, N: n})
}

// Hang leaves the next n calls (0: all until Release) without an answer.
func (c *Client) Hang(ctx context.Context, op simapi.Op, n int) error {
	return c.run(ctx, "hang", simapi.HangFault{Op: op, N: n})
}

// HangTask answers the next n calls with a task that does not end before Release.
func (c *Client) HangTask(ctx context.Context, op simapi.Op, n int) error {
	return c.run(ctx, "hang", simapi.HangFault{Op: op, N: n, Answer: true})
}

// Release ends Hang for op ("" for all); what hung goes on. It returns how many did.
func (c *Client) Release(ctx context.Context, op simapi.Op) (int, error) {
	a, err := call[simapi.ReleaseAnswer](ctx, c, "release", simapi.OpRequest{Op: op})
	return a.Released, err
}

// LoseTask answers the next n calls with a task nobody knows; when is "after" or "before" the effect.
func (c *Client) LoseTask(ctx context.Context, op simapi.Op, when string, n int) error {
	return c.run(ctx, "lose_task", simapi.LoseFault{OpFault: simapi.OpFault{Op: op, N: n}, When: when})
}

// Clear ends every fault, brings hosts and API up; hung calls need Release.
func (c *Client) Clear(ctx context.Context) error { return c.run(ctx, "clear", simapi.OK{}) }

// Down makes the API refuse ("refuse" or "") or cut ("cut") every call.
func (c *Client) Down(ctx context.Context, mode string) error {
	return c.run(ctx, "down", simapi.DownRequest{Mode: mode})
}

// Up ends Down.
func (c *Client) Up(ctx context.Context) error { return c.run(ctx, "up", simapi.OK{}) }

// Host cuts a host off, brings it back, resizes or adds it.
func (c *Client) Host(ctx context.Context, r simapi.HostRequest) error { return c.run(ctx, "host", r) }

// Boot sets the time from power on to the address.
func (c *Client) Boot(ctx context.Context, d time.Duration) error {
	return c.run(ctx, "boot", simapi.BootRequest{MS: int(d.Milliseconds())})
}

// Password sets what login demands; "" accepts any.
func (c *Client) Password(ctx context.Context, p string) error {
	return c.run(ctx, "password", simapi.PasswordRequest{Password: p})
}

// ExpireSessions ends every session at once.
func (c *Client) ExpireSessions(ctx context.Context) error {
	return c.run(ctx, "expire_sessions", simapi.OK{})
}

// OOB acts behind HCP's back and returns the provider ids it touched.
func (c *Client) OOB(ctx context.Context, r simapi.OOBRequest) ([]string, error) {
	a, err := call[simapi.OOBAnswer](ctx, c, "oob", r)
	return a.IDs, err
}

// Omit leaves a machine (by VM id or provider id) out of the next n lists.
func (c *Client) Omit(ctx context.Context, vm string, n int) error {
	return c.run(ctx, "omit", simapi.OmitRequest{VM: vm, N: n})
}

// List shows every machine and volume, whatever the faults say.
func (c *Client) List(ctx context.Context) (simapi.ListAnswer, error) {
	return call[simapi.ListAnswer](ctx, c, "list", simapi.OK{})
}

// Count is the counter of one operation.
func (c *Client) Count(ctx context.Context, op simapi.Op) (simapi.Count, error) {
	a, err := call[simapi.CountAnswer](ctx, c, "count", simapi.OpRequest{Op: op})
	return a.Ops[op], err
}

// Counts is every counter.
func (c *Client) Counts(ctx context.Context) (simapi.CountAnswer, error) {
	return call[simapi.CountAnswer](ctx, c, "count", simapi.OpRequest{})
}

// ResetCounts starts every counter anew.
func (c *Client) ResetCounts(ctx context.Context) error {
	return c.run(ctx, "reset_counts", simapi.OK{})
}

// Sessions counts open sessions, and logins since the start or ResetCounts.
func (c *Client) Sessions(ctx context.Context) (simapi.SessionsAnswer, error) {
	return call[simapi.SessionsAnswer](ctx, c, "sessions", simapi.OK{})
}

// Status shows every switch and what is at work.
func (c *Client) Status(ctx context.Context) (simapi.StatusAnswer, error) {
	return call[simapi.StatusAnswer](ctx, c, "status", simapi.OK{})
}
