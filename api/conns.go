package api

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// silent are connections that have not sent a byte. The server's own shutdown
// waits for them until they time out: clients open some in advance.
type silent struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func (s *silent) observe(c net.Conn, state fasthttp.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != fasthttp.StateNew {
		delete(s.conns, c)
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

// close ends them all, and those that are still to come.
func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
}
