package actors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lotuscloud/hcp/internal/clock"
)

// Registry holds the active actors of one kind and activates them on demand.
//
// Passivation loses no message: the entry leaves the registry under its lock,
// then the actor is poisoned, so that whatever was told before is handled and
// whatever comes later finds a fresh activation. For a moment two activations
// may exist; the store's fence lets only the newer one write.
type Registry struct {
	system   *System
	clock    clock.Clock
	activate func(id string, self *Self) Behaviour
	limits   Limits

	mu      sync.Mutex
	entries map[string]*entry
	broken  map[string]*breakage
	closed  bool

	activations atomic.Int64
	panics      atomic.Int64
}

// Limits of a registry.
type Limits struct {
	Idle       time.Duration // how long an actor without work stays
	MaxBackoff time.Duration // the longest pause after repeated panics
	Quarantine int           // panics in a row until the id is quarantined
}

type entry struct {
	ref     *ref
	self    *Self
	lastUse time.Time // guarded by Registry.mu
}

// breakage counts panics of one id in a row.
type breakage struct {
	count int
	until time.Time
}

// Self is an actor's handle on itself.
type Self struct {
	id       string
	registry *Registry
	busy     atomic.Bool
	entry    *entry
}

// Errors of Tell.
var (
	ErrClosed      = errors.New("this node is stopping")
	ErrQuarantined = errors.New("the actor panicked repeatedly and is quarantined")
)

// NewRegistry makes a registry; activate builds the behaviour of a fresh activation
// and must not block.
func NewRegistry(system *System, clk clock.Clock, limits Limits, activate func(id string, self *Self) Behaviour) *Registry {
	return &Registry{system: system, clock: clk, limits: limits, activate: activate, entries: map[string]*entry{}, broken: map[string]*breakage{}}
}

// Tell hands msg to the actor of that id, activating it when it is not active.
func (r *Registry) Tell(id string, msg any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	now := r.clock.Now()
	e := r.entries[id]
	if e == nil {
		if b := r.broken[id]; b != nil && now.Before(b.until) {
			return ErrQuarantined
		}
		e = &entry{self: &Self{id: id, registry: r}}
		e.self.entry = e
		e.ref = r.system.spawn(r.activate(id, e.self), func() { r.crashed(id, e) })
		r.entries[id] = e
		r.activations.Add(1)
	}
	e.lastUse = now
	// Told under the lock: after the entry has left, nobody can tell the old actor.
	e.ref.tell(msg)
	return nil
}

// TellActive hands msg to the actor only when it is active.
func (r *Registry) TellActive(id string, msg any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e == nil {
		return false
	}
	e.ref.tell(msg)
	return true
}

// Active lists the ids of active actors.
func (r *Registry) Active() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, 0, len(r.entries))
	for id := range r.entries {
		ids = append(ids, id)
	}
	return ids
}

// Counts are for metrics.
type Counts struct{ Active, Quarantined, Activations, Panics int64 }

func (r *Registry) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Counts{Active: int64(len(r.entries)), Activations: r.activations.Load(), Panics: r.panics.Load()}
	now := r.clock.Now()
	for _, b := range r.broken {
		if b.count >= r.limits.Quarantine && now.Before(b.until) {
			c.Quarantined++
		}
	}
	return c
}

// Sweep passivates actors that are idle and have no work; it returns how many.
func (r *Registry) Sweep() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	n := 0
	for id, e := range r.entries {
		if !e.self.busy.Load() && now.Sub(e.lastUse) >= r.limits.Idle {
			delete(r.entries, id)
			e.ref.retire()
			n++
		}
	}
	for id, b := range r.broken {
		if now.Sub(b.until) > 10*r.limits.MaxBackoff {
			delete(r.broken, id)
		}
	}
	return n
}

// Close retires every actor and waits until their queues are done, or ctx ends.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	refs := make([]*ref, 0, len(r.entries))
	for id, e := range r.entries {
		delete(r.entries, id)
		e.ref.retire()
		refs = append(refs, e.ref)
	}
	r.mu.Unlock()
	for _, ref := range refs {
		select {
		case <-ref.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// crashed removes a panicked activation; the next one waits longer each time.
func (r *Registry) crashed(id string, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panics.Add(1)
	b := r.broken[id]
	if b == nil {
		b = &breakage{}
		r.broken[id] = b
	}
	b.count++
	pause := min(time.Second<<min(b.count-1, 20), r.limits.MaxBackoff)
	b.until = r.clock.Now().Add(pause)
	if r.entries[id] == e {
		delete(r.entries, id)
		e.ref.retire()
	}
}

// ID is the actor's id.
func (s *Self) ID() string { return s.id }

// Tell sends the actor a message from outside its turn: results, timers. It
// reaches this activation only, or nobody when it has been retired.
func (s *Self) Tell(msg any) { s.entry.ref.tell(msg) }

// SetBusy says whether the actor has work that must not be passivated away.
func (s *Self) SetBusy(busy bool) { s.busy.Store(busy) }

// Healthy forgets earlier panics: this activation has worked.
func (s *Self) Healthy() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	delete(s.registry.broken, s.id)
}

// Retire ends this activation, for example when it finds itself fenced.
func (s *Self) Retire() {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[s.id] == s.entry {
		delete(r.entries, s.id)
		s.entry.ref.retire()
	}
}
