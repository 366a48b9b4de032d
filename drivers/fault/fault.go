// Package fault is a decorator that makes a driver fail by rule, before or after
// the effect of a call. With "after" the provider did the work and the answer is
// lost: what an exactly-one-effect claim must survive. It has every optional
// interface that the driver below has, and no other.
//
// Start reading at Wrap.
package fault

import (
	"context"
	"io"
	"sync"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// When says on which side of the effect a call fails.
type When int

const (
	Before When = iota // the provider never sees the call
	After              // the provider did it; the answer is lost
)

// Rule makes calls of one method fail.
type Rule struct {
	Op   string // method name, as in "Create"; "*" is every method but Close
	Nth  int    // the Nth call of Op since Wrap, counted from 1; 0: every call
	When When
	Err  error
}

// Injector holds the rules of a wrapped driver and counts its calls.
type Injector struct {
	mu    sync.Mutex
	rules []Rule
	calls map[string]int
}

// New makes an injector with rules.
func New(rules ...Rule) *Injector { return &Injector{rules: rules, calls: map[string]int{}} }

// Set replaces the rules; the counters go on.
func (i *Injector) Set(rules ...Rule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = rules
}

// Calls is how many calls of a method came, those that failed included.
func (i *Injector) Calls(op string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[op]
}

// count notes a call and picks the error of each side.
func (i *Injector) count(op string) (before, after error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls[op]++
	for _, r := range i.rules {
		if r.Op != op && r.Op != "*" || r.Nth != 0 && r.Nth != i.calls[op] {
			continue
		}
		switch {
		case r.When == Before && before == nil:
			before = r.Err
		case r.When == After && after == nil:
			after = r.Err
		}
	}
	return before, after
}

// Wrap puts the injector in front of d. Close is never made to fail: whoever
// opened d must be able to end it.
func Wrap(d drivers.Driver, i *Injector) drivers.Driver {
	base := driver{inner: d, faults: i}
	r, isR := d.(drivers.Rebooter)
	w, isW := d.(drivers.Watcher)
	m, isM := d.(drivers.ImageImporter)
	rb, wt, im := rebooter{r, i}, watcher{w, i}, importer{m, i}
	// One type per set of optional interfaces: a type assertion on the result must
	// tell the truth about the driver below.
	switch [3]bool{isR, isW, isM} {
	case [3]bool{true, false, false}:
		return struct {
			driver
			rebooter
		}{base, rb}
	case [3]bool{false, true, false}:
		return struct {
			driver
			watcher
		}{base, wt}
	case [3]bool{false, false, true}:
		return struct {
			driver
			importer
		}{base, im}
	case [3]bool{true, true, false}:
		return struct {
			driver
			rebooter
			watcher
		}{base, rb, wt}
	case [3]bool{true, false, true}:
		return struct {
			driver
			rebooter
			importer
		}{base, rb, im}
	case [3]bool{false, true, true}:
		return struct {
			driver
			watcher
			importer
		}{base, wt, im}
	case [3]bool{true, true, true}:
		return struct {
			driver
			rebooter
			watcher
			importer
		}{base, rb, wt, im}
	}
	return base
}

// through runs one call between its two faults. An error of the driver itself
// wins over that of After: there was no effect to lose the answer of.
func through[T any](i *Injector, op string, f func() (T, error)) (T, error) {
	var none T
	before, after := i.count(op)
	if before != nil {
		return none, before
	}
	v, err := f()
	if err == nil && after != nil {
		return none, after
	}
	return v, err
}

type driver struct {
	inner  drivers.Driver
	faults *Injector
}

func (d driver) Probe(ctx context.Context) (hcp.ClusterInfo, error) {
	return through(d.faults, "Probe", func() (hcp.ClusterInfo, error) { return d.inner.Probe(ctx) })
}

func (d driver) Prepare(ctx context.Context, tok drivers.Token, spec drivers.Spec, taken []string) (hcp.ProviderRef, error) {
	return through(d.faults, "Prepare", func() (hcp.ProviderRef, error) { return d.inner.Prepare(ctx, tok, spec, taken) })
}

func (d driver) Create(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, error) {
	return through(d.faults, "Create", func() (drivers.Task, error) { return d.inner.Create(ctx, tok, ref, spec) })
}

func (d driver) Configure(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, bool, error) {
	more := false
	task, err := through(d.faults, "Configure", func() (t drivers.Task, err error) {
		t, more, err = d.inner.Configure(ctx, tok, ref, spec)
		return t, err
	})
	return task, more && err == nil, err
}

func (d driver) Start(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return through(d.faults, "Start", func() (drivers.Task, error) { return d.inner.Start(ctx, tok, ref) })
}

func (d driver) Stop(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, mode hcp.StopMode) (drivers.Task, error) {
	return through(d.faults, "Stop", func() (drivers.Task, error) { return d.inner.Stop(ctx, tok, ref, mode) })
}

func (d driver) Delete(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return through(d.faults, "Delete", func() (drivers.Task, error) { return d.inner.Delete(ctx, tok, ref) })
}

func (d driver) Poll(ctx context.Context, task hcp.TaskRef) (drivers.TaskStatus, error) {
	return through(d.faults, "Poll", func() (drivers.TaskStatus, error) { return d.inner.Poll(ctx, task) })
}

func (d driver) Get(ctx context.Context, ref hcp.ProviderRef) (drivers.Observation, error) {
	return through(d.faults, "Get", func() (drivers.Observation, error) { return d.inner.Get(ctx, ref) })
}

func (d driver) Find(ctx context.Context, vm hcp.VMID) ([]hcp.ProviderRef, error) {
	return through(d.faults, "Find", func() ([]hcp.ProviderRef, error) { return d.inner.Find(ctx, vm) })
}

func (d driver) Inventory(ctx context.Context, yield func(drivers.Observation) error) ([]string, error) {
	return through(d.faults, "Inventory", func() ([]string, error) { return d.inner.Inventory(ctx, yield) })
}

func (d driver) Close() error { return d.inner.Close() }

type rebooter struct {
	inner  drivers.Rebooter
	faults *Injector
}

func (r rebooter) Reboot(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return through(r.faults, "Reboot", func() (drivers.Task, error) { return r.inner.Reboot(ctx, tok, ref) })
}

type watcher struct {
	inner  drivers.Watcher
	faults *Injector
}

func (w watcher) Watch(ctx context.Context, hint func(hcp.VMID)) error {
	_, err := through(w.faults, "Watch", func() (struct{}, error) { return struct{}{}, w.inner.Watch(ctx, hint) })
	return err
}

type importer struct {
	inner  drivers.ImageImporter
	faults *Injector
}

func (i importer) ImportImage(ctx context.Context, name, sha256 string, size int64, content io.Reader) (string, error) {
	return through(i.faults, "ImportImage", func() (string, error) { return i.inner.ImportImage(ctx, name, sha256, size, content) })
}
