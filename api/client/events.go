package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// WatchEvents says what to stream.
type WatchEvents struct {
	Types  []hcp.EventType
	VM     string // a VM's name, id or LRN
	Cursor string // where to go on; empty: from now
}

// Received is one event and the cursor behind it.
type Received struct {
	Event  v1.Event
	Cursor string
}

// WatchEvents calls yield for each event until yield returns an error (which it
// returns), ctx ends, or the server refuses for good. A stream that breaks is
// taken up again behind the last event: none is lost, none comes twice. A cursor
// that is too old is CURSOR_EXPIRED.
func (p *Project) WatchEvents(ctx context.Context, w WatchEvents, yield func(Received) error) error {
	return p.c.watch(ctx, p.path+"/events", w, yield)
}

// WatchEvents streams the events of all projects and those of operators alone.
func (o *Ops) WatchEvents(ctx context.Context, w WatchEvents, yield func(Received) error) error {
	return o.c.watch(ctx, ops+"/events", w, yield)
}

// yielded marks an error that came from the caller's own function.
type yielded struct{ error }

func (c *Client) watch(ctx context.Context, path string, w WatchEvents, yield func(Received) error) error {
	q := url.Values{}
	for _, t := range w.Types {
		q.Add("types", string(t))
	}
	set(q, "vm", w.VM)
	cursor := w.Cursor
	for attempt := 0; ; attempt++ {
		set(q, "cursor", cursor)
		err := c.stream(ctx, path, q, func(r Received) error {
			attempt = 0
			if r.Event.ID == "" { // only a place in the stream
				cursor = r.Cursor
				return nil
			}
			if err := yield(r); err != nil {
				return yielded{err}
			}
			cursor = r.Cursor
			return nil
		})
		if y, ok := errors.AsType[yielded](err); ok {
			return y.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := min(100*time.Millisecond<<min(attempt, 6), 5*time.Second)
		if err != nil {
			after, again := retryAfter(err, min(attempt, 6))
			if !again {
				return err
			}
			wait = after
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// stream reads one connection until it ends.
func (c *Client) stream(ctx context.Context, path string, q url.Values, got func(Received) error) error {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path, query: q}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return problemOf(resp, metaOf(resp))
	}
	return readStream(resp.Body, got)
}

// readStream parses server-sent events. An event without data only moves the cursor.
func readStream(body io.Reader, got func(Received) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), 1<<20)
	var id, data string
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if id == "" && data == "" {
				continue
			}
			r := Received{Cursor: id}
			if data != "" && data != "{}" {
				if err := json.Unmarshal([]byte(data), &r.Event); err != nil {
					return hcp.Errorf(hcp.CodeInternal, "bad_answer", "the stream carries something that is not an event").WithCause(err)
				}
			}
			if err := got(r); err != nil {
				return err
			}
			id, data = "", ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			data += value
		}
	}
	if err := lines.Err(); err != nil {
		return hcp.Errorf(hcp.CodeUnavailable, "unreachable", "the event stream was cut").WithCause(err)
	}
	return nil
}
