package api

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// batch is how many events one read of a stream takes.
const batch = 200

// bookmarkEvery is how far a stream moves over other people's events before it
// tells the reader the new place.
const bookmarkEvery = 1000

func eventTypes() []hcp.EventType {
	return []hcp.EventType{hcp.EventResourceCreated, hcp.EventResourceUpdated, hcp.EventResourceDeleted, hcp.EventVMStarted, hcp.EventVMStopped,
		hcp.EventVMFailed, hcp.EventVMUnknown, hcp.EventJobQueued, hcp.EventJobStarted, hcp.EventJobProgress, hcp.EventJobSucceeded,
		hcp.EventJobFailed, hcp.EventJobCancelled, hcp.EventJobAttention, hcp.EventClusterUp, hcp.EventClusterDown, hcp.EventClusterChanged,
		hcp.EventQuotaExceeded, hcp.EventSecurityAlert}
}

// stream is one reader of events, alive after its request's handler has returned.
// It holds nothing of the request.
type stream struct {
	s      *Server
	filter persistence.EventFilter
	pos    int64
	conn   net.Conn
	log    *slog.Logger
	mayGo  func(context.Context) error // still allowed?
}

// streamEvents answers with server-sent events behind the cursor, or from now on.
func (s *Server) streamEvents(c *call) (answer, error) {
	st := &stream{s: s, filter: persistence.EventFilter{Project: c.project.ID}, conn: c.http.Context().Conn(),
		log: s.Log.With(slog.String("request_id", string(c.requestID)), slog.String("actor", c.identity.Subject))}
	for _, v := range c.query["types"] {
		for t := range strings.SplitSeq(v, ",") {
			if !slices.Contains(eventTypes(), hcp.EventType(t)) {
				return answer{}, badQuery("types", "not_allowed", "there is no such event type")
			}
			st.filter.Types = append(st.filter.Types, hcp.EventType(t))
		}
	}
	if v := c.query.Get("vm"); v != "" {
		ref, err := c.ref(v, "vm")
		if err != nil {
			return answer{}, err
		}
		k, err := c.findVM(ref)
		if err != nil {
			return answer{}, err
		}
		st.filter.VM = k.VM.ID
	}
	if err := st.begin(c); err != nil {
		return answer{}, err
	}
	st.mayGo = s.permission(c)
	if err := s.openStream(); err != nil {
		return answer{}, err
	}
	remaining := c.identity.ExpiresAt.Sub(c.now())
	response := c.http.Context()
	return answer{status: http.StatusOK, stream: func() error {
		h := &response.Response.Header
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		h.SetConnectionClose() // nothing comes after a stream
		response.SetBodyStreamWriter(func(w *bufio.Writer) {
			defer s.closeStream()
			st.run(w, remaining)
		})
		return nil
	}}, nil
}

// begin finds where to start: the cursor, or the end of the log.
func (st *stream) begin(c *call) error {
	cursor := c.query.Get("cursor")
	if last := c.http.Get("Last-Event-ID"); last != "" {
		cursor = last
	}
	if cursor == "" {
		last, err := st.s.Store.LastPosition(c.ctx)
		st.pos = last
		return err
	}
	pos, err := st.s.cursors.open(cursor)
	if err != nil {
		return err
	}
	first, err := st.s.Store.FirstPosition(c.ctx)
	if err != nil {
		return err
	}
	if pos+1 < first {
		return hcp.Errorf(hcp.CodeCursorExpired, "purged", "the events behind the cursor are no longer kept")
	}
	st.pos = pos
	return nil
}

// permission asks again what the request was allowed to: a role that is taken
// away ends the stream.
func (s *Server) permission(c *call) func(context.Context) error {
	subject, action, project, scope := c.identity.Subject, c.route.Action, c.project, c.route.Scope
	return func(ctx context.Context) error {
		grants, err := s.bindings.Of(ctx, subject)
		if err != nil {
			return nil // trouble of the store is no verdict
		}
		if scope == hcp.ScopeOps {
			grants = grants.Ops()
		} else {
			grants = grants.In(project)
		}
		if !grants.Allow(action) {
			return hcp.Errorf(hcp.CodeForbidden, "missing_role", "the role was taken away")
		}
		return nil
	}
}

// run writes until the token expires, the server stops, the role is gone or the
// reader is. Each flush has a deadline: a reader that does not read is cut off.
func (st *stream) run(w *bufio.Writer, remaining time.Duration) {
	s := st.s
	ctx, cancel := context.WithTimeout(context.Background(), max(remaining, 0))
	defer cancel()
	woken, stop := s.Wakes.WaitEvents()
	defer stop()
	reread, stopReread := s.Clock.NewTicker(s.Limits.Reread)
	defer stopReread()
	beat, stopBeat := s.Clock.NewTicker(s.Limits.Heartbeat)
	defer stopBeat()
	if st.bookmark(w) != nil { // the place to go on from, should nothing else come
		return
	}
	for {
		if err := st.catchUp(ctx, w); err != nil {
			if ctx.Err() == nil {
				st.log.Debug("an event stream ended", slog.String("cause", err.Error()))
			}
			return
		}
		select {
		case <-woken:
		case <-reread:
		case <-beat:
			if err := st.mayGo(ctx); err != nil {
				return
			}
			if st.write(w, ": beat\n\n") != nil {
				return
			}
		case <-s.draining:
			return
		case <-ctx.Done():
			return
		}
	}
}

// catchUp writes all that is there. Trouble of the store is waited out: the next
// wake or tick tries again.
func (st *stream) catchUp(ctx context.Context, w *bufio.Writer) error {
	marked := st.pos
	for !st.s.isDraining() {
		events, searched, err := st.s.Store.EventsAfter(ctx, st.filter, st.pos, batch)
		if err != nil {
			if hcp.IsCode(err, hcp.CodeUnavailable) {
				return nil
			}
			return err
		}
		for _, e := range events {
			if err := st.event(w, e); err != nil {
				return err
			}
		}
		moved := searched > st.pos
		st.pos = max(st.pos, searched)
		if len(events) > 0 {
			marked = st.pos
			if err := st.flush(w); err != nil {
				return err
			}
		}
		if !moved || len(events) < batch {
			break
		}
	}
	if st.pos-marked >= bookmarkEvery {
		return st.bookmark(w)
	}
	return nil
}

func (st *stream) event(w *bufio.Writer, e hcp.Event) error {
	data, err := json.Marshal(v1.EventView(e))
	if err != nil {
		return err
	}
	_, err = w.WriteString("id: " + st.s.cursors.seal(e.Pos) + "\nevent: " + string(e.Type) + "\ndata: " + string(data) + "\n\n")
	return err
}

// bookmark tells the reader its place without an event.
func (st *stream) bookmark(w *bufio.Writer) error {
	return st.write(w, "id: "+st.s.cursors.seal(st.pos)+"\nevent: bookmark\ndata: {}\n\n")
}

func (st *stream) write(w *bufio.Writer, text string) error {
	if _, err := w.WriteString(text); err != nil {
		return err
	}
	return st.flush(w)
}

func (st *stream) flush(w *bufio.Writer) error {
	if err := st.conn.SetWriteDeadline(st.s.Clock.Now().Add(st.s.Limits.StreamWrite)); err != nil {
		return err
	}
	return w.Flush()
}
