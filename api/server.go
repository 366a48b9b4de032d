package api

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/persistence"
)

// Server serves the API. It holds no state that another node would miss.
type Server struct {
	Deps
	app      *fiber.App
	schemas  *schemas
	openapi  []byte
	pages    *pages
	cursors  *cursors
	bindings *auth.Bindings
	limiter  *limiter
	infra    *infra

	orgs     *table[hcp.Org]
	projects *table[hcp.Project]
	zones    *table[hcp.Zone]
	images   *table[hcp.Image]
	flavors  *table[hcp.Flavor]

	draining chan struct{} // closed when the server stops: whoever waits comes back
	mu       sync.Mutex    // orders a stream's begin with the drain
	streams  sync.WaitGroup
	slots    chan struct{} // one per open stream
	silent   silent
}

// New builds the server. A field of deps that is not set is an error that names it.
func New(ctx context.Context, deps Deps) (*Server, error) {
	if err := deps.check(); err != nil {
		return nil, err
	}
	deps.Limits = deps.Limits.withDefaults()
	pageKey, err := auth.RingKey(ctx, deps.Store, deps.Sealer, "page/hmac", "ring/page/hmac", 32)
	if err != nil {
		return nil, err
	}
	cursorKey, err := auth.RingKey(ctx, deps.Store, deps.Sealer, "cursor/aead", "ring/cursor/aead", 32)
	if err != nil {
		return nil, err
	}
	generation, err := deps.Store.Generation(ctx)
	if err != nil {
		return nil, err
	}
	cursors, err := newCursors(cursorKey, generation)
	if err != nil {
		return nil, err
	}
	now := deps.Clock.Now
	s := &Server{Deps: deps, pages: &pages{key: pageKey}, cursors: cursors, bindings: auth.NewBindings(deps.Store, now),
		limiter: newLimiter(deps.Limits, now), draining: make(chan struct{}), slots: make(chan struct{}, deps.Limits.Streams),
		infra: &infra{store: deps.Store, now: now}}
	s.orgs = newTable[hcp.Org](s, persistence.RecordOrg, "org")
	s.projects = newTable[hcp.Project](s, persistence.RecordProject, "project")
	s.zones = newTable[hcp.Zone](s, persistence.RecordZone, "zone")
	s.images = newTable[hcp.Image](s, persistence.RecordImage, "image")
	s.flavors = newTable[hcp.Flavor](s, persistence.RecordFlavor, "flavor")

	routes := Routes()
	if s.schemas, err = newSchemas(routes); err != nil {
		return nil, err
	}
	if s.openapi, err = s.schemas.document(routes); err != nil {
		return nil, err
	}
	s.app = fiber.New(fiber.Config{
		AppName: "hcp", DisableStartupMessage: true,
		Immutable:         true,  // values outlive the handler: in jobs, caches, logs
		UnescapePath:      false, // parameters are decoded once, by us
		CaseSensitive:     true,
		StrictRouting:     true,
		StreamRequestBody: true, // we read bodies ourselves, after authentication, up to the route's limit
		ReadBufferSize:    32 << 10,
		BodyLimit:         64 << 10, // what is read ahead of us

		DisablePreParseMultipartForm: true,
		IdleTimeout:                  2 * time.Minute,
		ReadTimeout:                  time.Minute,
		ErrorHandler:                 s.fiberError,
	})
	for i := range routes {
		s.app.Add(routes[i].Method, fiberPath(routes[i].Path), s.serve(&routes[i]))
	}
	s.app.Server().NoDefaultServerHeader = true
	s.app.Server().ConnState = s.silent.observe
	return s, nil
}

// Listen serves until Shutdown; it closes ln.
func (s *Server) Listen(ln net.Listener) error { return s.app.Listener(ln) }

// Shutdown ends event streams and waits first, then lets running calls finish
// until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.isDraining() {
		close(s.draining)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.silent.close()
	if err := s.app.ShutdownWithContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// openStream counts a stream in, or refuses it; each needs one closeStream.
func (s *Server) openStream() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining() {
		return hcp.Errorf(hcp.CodeUnavailable, "draining", "the server is about to stop")
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return hcp.Errorf(hcp.CodeUnavailable, "too_many_streams", "the server has no stream left").WithRetryAfter(5 * time.Second)
	}
	s.streams.Add(1)
	return nil
}

func (s *Server) closeStream() {
	<-s.slots
	s.streams.Done()
}

func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
