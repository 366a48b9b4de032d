package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// inFlight is how many calls one connection carries. The server handles five at
// a time by default; the fifth stays free for what must not queue.
const inFlight = 4

// errLink is a connection that was lost or given up while a call was on it, or
// before one could be sent. sent tells the two apart: only a call that surely
// never left can surely have had no effect.
type errLink struct {
	sent bool
	err  error
}

func (e *errLink) Error() string { return "connection lost: " + e.err.Error() }
func (e *errLink) Unwrap() error { return e.err }

// session is one open connection. It lives until it breaks or is retired: a
// call that ran out of time stays with the server, so its connection takes no
// new calls, and closes when the other calls on it have ended.
type session struct {
	lv    *golibvirt.Libvirt
	wire  *guard
	slots chan struct{}

	mu      sync.Mutex
	live    int // calls somebody still waits for
	retired bool
}

// openSession dials and shakes hands; both end with ctx.
func openSession(ctx context.Context, ep endpoint) (*session, error) {
	raw, err := ep.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{wire: newGuard(raw), slots: make(chan struct{}, inFlight)}
	s.lv = golibvirt.NewWithDialer(dialed{s.wire})
	done := make(chan error, 1)
	go func() { done <- caught(func() error { return s.lv.ConnectToURI(golibvirt.ConnectURI(ep.driverURI)) }) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("open %s: %w", ep.driverURI, err)
	}
	return s, nil
}

// dialed hands over a connection that is already there.
type dialed struct{ c net.Conn }

func (d dialed) Dial() (net.Conn, error) { return d.c, nil }

func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.retired && !s.broken()
}

func (s *session) broken() bool {
	select {
	case <-s.wire.gone:
		return true
	default:
		return false
	}
}

// enter takes a slot; false means the session is of no use any more.
func (s *session) enter(ctx context.Context) (bool, error) {
	select {
	case s.slots <- struct{}{}:
	case <-s.wire.gone:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.broken() {
		<-s.slots
		return false, nil
	}
	s.live++
	return true, nil
}

func (s *session) leave(retire bool) {
	<-s.slots
	s.mu.Lock()
	s.live--
	s.retired = s.retired || retire
	last := s.retired && s.live == 0
	s.mu.Unlock()
	if last {
		s.close()
	}
}

func (s *session) retire() {
	s.mu.Lock()
	s.retired = true
	last := s.live == 0
	s.mu.Unlock()
	if last {
		s.close()
	}
}

func (s *session) close() { _ = s.wire.Close() }

// call runs f on the session until ctx ends. f may run on after that, until the
// connection closes: it must not touch what the caller owns.
func (s *session) call(ctx context.Context, f func(*golibvirt.Libvirt) error) error {
	done := make(chan error, 1)
	go func() { done <- caught(func() error { return f(s.lv) }) }()
	select {
	case err := <-done:
		s.leave(s.broken())
		return err
	case <-ctx.Done():
		s.leave(true)
		return &errLink{sent: true, err: ctx.Err()}
	}
}

// caught turns a panic of the library's decoder into an error.
func caught(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &errLink{sent: true, err: fmt.Errorf("the client library panicked: %v", r)}
		}
	}()
	return f()
}

// asLink recognises the library's ways to say that the connection is gone.
func asLink(err error) (*errLink, bool) {
	if link, ok := errors.AsType[*errLink](err); ok {
		return link, true
	}
	var op *net.OpError
	switch {
	case errors.Is(err, golibvirt.ErrInterrupted):
		return &errLink{sent: true, err: err}, true
	case isInvalidSocket(err): // the library's word for "was closed before": nothing left
		return &errLink{sent: false, err: err}, true
	case errors.As(err, &op), isEOF(err):
		return &errLink{sent: true, err: err}, true
	}
	return nil, false
}
