// Package fault wraps a persistence.Store so that tests can make it refuse, wait,
// or lose its answer, by rule. It may not be part of a product build. Without
// rules it changes nothing, and storetest proves that.
//
// Start reading at Rule and Wrap.
package fault

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/lotuscloud/hcp/persistence"
)

// When a rule strikes.
type When int

const (
	// Before the effect: the store never sees the call.
	Before When = iota
	// After the effect: the store did it, the answer is lost.
	After
)

// Rule makes calls of one method fail or wait.
type Rule struct {
	// Method is the name of a method of persistence.Store: "Commit" (which covers
	// Submit too), "CheckFence", "LoadVM" ...
	Method string
	// Match narrows a rule to some commits; nil matches all. Other methods ignore it.
	Match func(persistence.Commit) bool
	// Nth is the call that the rule strikes, from 1, counted among those it matches;
	// 0 is every call.
	Nth int
	// Times is how many calls from the Nth on; 0 is one, or all when Nth is 0.
	Times int
	When  When
	// Err is the answer; nil lets the call through, for rules that only wait.
	Err error
	// Hook runs when the rule strikes: it may block, signal, or kill. A hook on Submit
	// runs in a goroutine of its own before the effect, in the lane after it.
	Hook func(ctx context.Context)
}

// Store is the decorator. It embeds the store; what it does not wrap goes through.
type Store struct {
	persistence.Store

	mu    sync.Mutex
	rules []*armed
	calls map[string]int
}

type armed struct {
	Rule
	seen int
}

// Wrap puts rules before a store; more can be added while it runs.
func Wrap(s persistence.Store, rules ...Rule) *Store {
	f := &Store{Store: s, calls: map[string]int{}}
	for _, r := range rules {
		f.Add(r)
	}
	return f
}

// Add arms one more rule. A method that the store does not have panics: the test
// would wait for nothing.
func (f *Store) Add(r Rule) {
	if _, ok := reflect.TypeFor[persistence.Store]().MethodByName(r.Method); !ok || r.Method == "Submit" {
		panic("fault: there is no method " + r.Method + " to strike")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &armed{Rule: r})
}

// Clear disarms every rule.
func (f *Store) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls is how often a method was called.
func (f *Store) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// strikes are the rules that strike one call.
type strikes []Rule

func (f *Store) enter(method string, c *persistence.Commit) strikes {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	var out strikes
	for _, r := range f.rules {
		if r.Method != method || c != nil && r.Match != nil && !r.Match(*c) {
			continue
		}
		r.seen++
		if r.hits() {
			out = append(out, r.Rule)
		}
	}
	return out
}

func (r *armed) hits() bool {
	switch {
	case r.Nth == 0:
		return r.Times == 0 || r.seen <= r.Times
	default:
		return r.seen >= r.Nth && r.seen < r.Nth+max(r.Times, 1)
	}
}

// at runs the hooks of one moment and returns the first error.
func (s strikes) at(ctx context.Context, when When) error {
	var err error
	for _, r := range s {
		if r.When != when {
			continue
		}
		if r.Hook != nil {
			r.Hook(ctx)
		}
		if err == nil {
			err = r.Err
		}
	}
	return err
}

func (s strikes) any(when When) bool {
	return slices.ContainsFunc(s, func(r Rule) bool { return r.When == when })
}

// around makes one call under the rules.
func around[T any](ctx context.Context, f *Store, method string, call func() (T, error)) (T, error) {
	var zero T
	s := f.enter(method, nil)
	if err := s.at(ctx, Before); err != nil {
		return zero, err
	}
	v, err := call()
	if lost := s.at(ctx, After); lost != nil {
		return zero, lost
	}
	return v, err
}

func aroundErr(ctx context.Context, f *Store, method string, call func() error) error {
	_, err := around(ctx, f, method, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Commit under the rules of "Commit".
func (f *Store) Commit(ctx context.Context, c persistence.Commit) error {
	s := f.enter("Commit", &c)
	if err := s.at(ctx, Before); err != nil {
		return err
	}
	err := f.Store.Commit(ctx, c)
	if lost := s.at(ctx, After); lost != nil {
		return lost
	}
	return err
}

// Submit under the rules of "Commit". Where a rule strikes before the effect, the
// order among one actor's submissions is kept only by those that no rule strikes.
func (f *Store) Submit(c persistence.Commit, done func(error)) {
	s := f.enter("Commit", &c)
	ctx := context.Background()
	submit := func() {
		f.Store.Submit(c, func(err error) {
			if lost := s.at(ctx, After); lost != nil {
				err = lost
			}
			done(err)
		})
	}
	if !s.any(Before) {
		submit()
		return
	}
	go func() {
		if err := s.at(ctx, Before); err != nil {
			done(err)
			return
		}
		submit()
	}()
}

// CheckFence under its rules.
func (f *Store) CheckFence(ctx context.Context, fence persistence.Fence) error {
	return aroundErr(ctx, f, "CheckFence", func() error { return f.Store.CheckFence(ctx, fence) })
}
