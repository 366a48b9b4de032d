package api

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// silent are connections that have not sent a request. fasthttp counts them as
// active and its shutdown waits for them until they time out; clients open some
// in advance.
type silent struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func (s *silent) observe(c net.Conn, state fasthttp.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == fasthttp.StateClosed {
		delete(s.conns, c)
	}
	if state != fasthttp.StateNew {
		return
	}
	if s.closed {
		c.Close()
		return
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

// spoke takes the connection off the list: it has sent a request.
func (s *silent) spoke(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// close ends them all, and those that are still to come.
func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
}
