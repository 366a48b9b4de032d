package simd

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/world"
	"github.com/lotuscloud/hcp/internal/clock"
)

// maxBody bounds a request; user data is the largest part of one.
const maxBody = 4 << 20

// Config is a simulated cluster. Every field may be zero.
type Config struct {
	// Data is the folder that keeps the world; empty keeps it in memory only. The
	// folder's world, when there is one, wins over World.
	Data  string
	World world.Config
	Clock clock.Clock  // the machine's when nil
	Log   *slog.Logger // silent when nil
}

// Server is one simulated cluster behind HTTP; it is an http.Handler.
type Server struct {
	clock clock.Clock
	log   *slog.Logger

	mu       sync.Mutex // guards all below
	world    *world.World
	journal  *journal // nil: memory only
	broken   error    // the journal failed: nothing is answered any more
	waiting  map[string]chan struct{}
	sessions map[string]bool
	stopDue  func() bool
	dueAt    time.Time // of the timer behind stopDue
	closed   chan struct{}

	logins atomic.Int64
}

// NewServer opens the world of cfg.Data, or makes a new one, and lets its running tasks go on.
func NewServer(cfg Config) (*Server, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{clock: cfg.Clock, log: cfg.Log, waiting: map[string]chan struct{}{}, sessions: map[string]bool{}, closed: make(chan struct{})}
	if cfg.Data == "" {
		s.world = world.New(cfg.World)
		return s, nil
	}
	j, w, err := openJournal(cfg.Data, cfg.World)
	if err != nil {
		return nil, err
	}
	s.journal, s.world = j, w
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.At(s.clock.Now())
	s.settle()
	if s.broken != nil {
		return nil, errors.Join(s.broken, j.close())
	}
	return s, nil
}

// Close ends late tasks' timers and hung calls, and lets go of the data folder.
// What runs goes on when the folder is opened again.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
	}
	close(s.closed)
	if s.stopDue != nil {
		s.stopDue()
	}
	if s.journal == nil {
		return nil
	}
	return s.journal.close()
}

// locked runs f on the world at the present time and makes its changes durable.
// It reports false when they could not be: then there must be no answer.
func (s *Server) locked(f func(w *world.World)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return false
	default:
	}
	if s.broken != nil {
		return false
	}
	s.world.At(s.clock.Now())
	f(s.world)
	s.settle()
	return s.broken == nil
}

// settle writes the changes and sets the timer of the next late task.
func (s *Server) settle() {
	if r := s.world.Drain(); r != nil && s.journal != nil {
		if err := s.journal.append(r, s.world); err != nil {
			s.broken = err
			s.log.Error("the sim cannot write its world and stops answering", slog.Any("error", err))
		}
	}
	due, ok := s.world.NextDue()
	if !ok {
		due = time.Time{}
	}
	if due.Equal(s.dueAt) {
		return
	}
	if s.stopDue != nil {
		s.stopDue()
		s.stopDue = nil
	}
	if s.dueAt = due; ok {
		s.stopDue = s.clock.AfterFunc(due.Sub(s.clock.Now()), func() { s.locked(func(*world.World) {}) })
	}
}

// ServeHTTP answers /api/{op} and /control/{name}.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	area, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if area != "api" && area != "control" {
		fail(rw, simapi.Errorf(simapi.CodeNoPath, "there is no path %q; use /api/{op} or /control/{name}", r.URL.Path))
		return
	}
	if r.Method != http.MethodPost {
		fail(rw, &simapi.Error{Status: http.StatusMethodNotAllowed, Code: simapi.CodeBadRequest, Message: "use POST"})
		return
	}
	if r.URL.RawQuery != "" {
		fail(rw, simapi.Errorf(simapi.CodeBadRequest, "no query parameter is known; the request is the body"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	if err != nil {
		fail(rw, simapi.Errorf(simapi.CodeBadRequest, "the body cannot be read, or is over %d bytes", maxBody))
		return
	}
	if area == "control" {
		s.control(rw, name, body)
		return
	}
	s.api(rw, r, simapi.Op(name), body)
}

// cut ends the connection without an answer. The panic is net/http's own way.
func cut() { panic(http.ErrAbortHandler) }

func fail(rw http.ResponseWriter, err *simapi.Error) { answer(rw, err.Status, err) }

func answer(rw http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil { // no answer type can fail
		cut()
	}
	h := rw.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	rw.WriteHeader(status)
	_, _ = rw.Write(b)
}

var jsonType = []string{"application/json"}
