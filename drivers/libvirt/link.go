package libvirt

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

const (
	dialWithin = 5 * time.Second // dial and handshake together
	pingWithin = 3 * time.Second
	pingAfter  = time.Second // a session silent for longer is asked before it is used
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
)

// link is one class of connection to one host: it opens a session when one is
// needed, keeps it while it is good, and waits longer after each failed dial.
type link struct {
	ep  endpoint
	now func() time.Time

	dialing chan struct{} // held by the one that dials

	mu       sync.Mutex
	cur      *session
	answered time.Time // when the host last answered on cur
	failures int
	notUntil time.Time
	lastErr  error
	closed   bool
	all      map[*session]struct{} // retired ones too, for close
}

func newLink(ep endpoint, now func() time.Time) *link {
	return &link{ep: ep, now: now, dialing: make(chan struct{}, 1), all: map[*session]struct{}{}}
}

// do runs f on the link's session. An *errLink with sent false means that f had
// no effect at all.
func (l *link) do(ctx context.Context, f func(*golibvirt.Libvirt) error) error {
	for {
		s, err := l.session(ctx)
		if err != nil {
			return &errLink{err: err}
		}
		ok, err := s.enter(ctx)
		if err != nil {
			return &errLink{err: err}
		}
		if !ok {
			l.forget(s)
			continue
		}
		if l.silent(s) {
			pctx, cancel := context.WithTimeout(ctx, pingWithin)
			err := s.call(pctx, ping)
			cancel()
			if err != nil {
				l.forget(s)
				if ctx.Err() != nil {
					return &errLink{err: ctx.Err()}
				}
				if errors.Is(err, context.DeadlineExceeded) {
					l.failed(errSilent)
					return &errLink{err: errSilent}
				}
				continue // it had closed meanwhile: a fresh one tells more
			}
			l.heard(s)
			continue
		}
		if err = s.call(ctx, f); err == nil || isAnswer(err) {
			l.heard(s)
			return err
		}
		l.forget(s)
		return err
	}
}

// errSilent is a host that takes connections or keeps them, but says nothing. It is
// not the deadline of the caller, who may wait for longer.
var errSilent = errors.New("the host does not answer a simple question")

func ping(lv *golibvirt.Libvirt) error {
	_, err := lv.ConnectGetLibVersion()
	return err
}

// isAnswer reports whether the host itself said this.
func isAnswer(err error) bool {
	_, ok := errors.AsType[golibvirt.Error](err)
	return ok || errors.Is(err, golibvirt.ErrUnsupported)
}

func (l *link) silent(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur == s && l.now().Sub(l.answered) > pingAfter
}

func (l *link) heard(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == s {
		l.answered = l.now()
	}
}

func (l *link) forget(s *session) {
	s.retire()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == s {
		l.cur = nil
	}
	for old := range l.all {
		if old.broken() {
			delete(l.all, old)
		}
	}
}

func (l *link) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.lastErr = err
	l.notUntil = l.now().Add(min(backoffMax, backoffMin<<min(l.failures-1, 6)))
}

// session is the present session, or a new one. One dials, the others wait.
func (l *link) session(ctx context.Context) (*session, error) {
	select {
	case l.dialing <- struct{}{}:
		defer func() { <-l.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, net.ErrClosed
	case l.cur != nil && l.cur.usable():
		s := l.cur
		l.mu.Unlock()
		return s, nil
	case l.failures > 0 && l.now().Before(l.notUntil):
		err := l.lastErr
		l.mu.Unlock()
		return nil, err
	}
	l.mu.Unlock()
	s, err := l.open(ctx)
	if err != nil {
		if ctx.Err() != nil { // a caller who left says nothing about the host
			return nil, ctx.Err()
		}
		l.failed(err)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		s.close()
		return nil, net.ErrClosed
	}
	l.cur, l.answered, l.failures, l.lastErr = s, l.now(), 0, nil
	l.all[s] = struct{}{}
	return s, nil
}

func (l *link) open(ctx context.Context) (*session, error) {
	dctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	s, err := openSession(dctx, l.ep)
	if err != nil && dctx.Err() != nil && ctx.Err() == nil {
		return nil, errSilent
	}
	return s, err
}

func (l *link) close() {
	l.mu.Lock()
	l.closed, l.cur = true, nil
	all := l.all
	l.all = map[*session]struct{}{}
	l.mu.Unlock()
	for s := range all {
		s.close()
	}
}

func isInvalidSocket(err error) bool { return errors.Is(err, syscall.EINVAL) }

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
