package libvirt

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// host is one libvirtd and the connections to it, each class apart: what waits
// on a guest must not hold up what asks the host.
type host struct {
	name    string
	ep      endpoint
	control *link
	agent   *link
	facts   *factCache
	agents  *agentCache
	watched atomic.Int32 // event connections that live

	pools   poolLocks
	mu      sync.Mutex
	pending map[golibvirt.UUID]reservation // prepared here, not yet defined

	asking chan struct{} // held by the one that asks for kind
	kind   string        // domain type, "" until asked
}

type reservation struct {
	memoryMiB int64
	until     time.Time
}

func newHost(ep endpoint, now func() time.Time) *host {
	return &host{name: ep.name, ep: ep, control: newLink(ep, now), agent: newLink(ep, now),
		facts: newFactCache(), agents: newAgentCache(), pending: map[golibvirt.UUID]reservation{}, asking: make(chan struct{}, 1)}
}

func (h *host) close() {
	h.control.close()
	h.agent.close()
}

// call runs one RPC that returns a value on the control connection.
func call[T any](ctx context.Context, h *host, f func(*golibvirt.Libvirt) (T, error)) (T, error) {
	return on(ctx, h.control, f)
}

func on[T any](ctx context.Context, l *link, f func(*golibvirt.Libvirt) (T, error)) (T, error) {
	out := new(T) // f may outlive the call: it writes to what nobody reads then
	var zero T
	err := l.do(ctx, func(lv *golibvirt.Libvirt) error {
		v, err := f(lv)
		*out = v
		return err
	})
	if err != nil {
		return zero, err
	}
	return *out, nil
}

// run is call without a value.
func run(ctx context.Context, h *host, f func(*golibvirt.Libvirt) error) error {
	return h.control.do(ctx, f)
}

// stream runs f on a connection of its own: a slow end of a stream would hold up
// every other call. The connection ends with f or with ctx.
func (h *host) stream(ctx context.Context, f func(*golibvirt.Libvirt) error) error {
	dctx, cancel := context.WithTimeout(ctx, dialWithin)
	s, err := openSession(dctx, h.ep)
	cancel()
	if err != nil {
		return &errLink{err: err}
	}
	defer s.close()
	if ok, err := s.enter(ctx); !ok {
		return &errLink{err: errors.Join(err, errors.New("the stream's connection broke"))}
	}
	return s.call(ctx, f)
}

// each runs f for all hosts at once and returns the error of each by its place.
func each(hosts []*host, f func(i int, h *host) error) []error {
	errs := make([]error, len(hosts))
	if len(hosts) == 1 {
		errs[0] = f(0, hosts[0])
		return errs
	}
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { errs[i] = f(i, h) })
	}
	wg.Wait()
	return errs
}
