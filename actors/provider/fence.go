package provider

import (
	"context"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// Call is one provider call, in flight or ended.
type Call struct {
	Op      string
	Since   time.Time
	EndedAt time.Time
	Err     *hcp.Error
}

// CallLog remembers the call in flight and the last that ended: what Explain shows.
type CallLog struct {
	mu       sync.Mutex
	inFlight *Call
	last     *Call
}

// Snapshot returns copies.
func (l *CallLog) Snapshot() (inFlight, last *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight != nil {
		c := *l.inFlight
		inFlight = &c
	}
	if l.last != nil {
		c := *l.last
		last = &c
	}
	return inFlight, last
}

func (l *CallLog) begin(op string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = &Call{Op: op, Since: at}
}

func (l *CallLog) end(at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight == nil {
		return
	}
	l.last, l.inFlight = l.inFlight, nil
	l.last.EndedAt = at
	if err != nil {
		l.last.Err = hcp.AsError(err)
	}
}

// Fenced is a driver for one run of one VM's job. Right before each mutating
// call it asks the store whether the intent still stands: no intent, no call.
// Every call gets its own deadline and is noted in the call log.
type Fenced struct {
	Inner   drivers.Driver
	Check   func(ctx context.Context) error
	Log     *CallLog
	Now     func() time.Time
	Timeout time.Duration
	// Observe counts calls for metrics; may be nil.
	Observe func(op string, took time.Duration, err error)
}

var _ drivers.Driver = (*Fenced)(nil)

// call runs one provider call under its deadline.
func call[T any](ctx context.Context, f *Fenced, op string, mutates bool, do func(ctx context.Context) (T, error)) (T, error) {
	var zero T
	if mutates {
		if err := f.Check(ctx); err != nil {
			return zero, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	began := f.Now()
	f.Log.begin(op, began)
	v, err := do(ctx)
	ended := f.Now()
	f.Log.end(ended, err)
	if f.Observe != nil {
		f.Observe(op, ended.Sub(began), err)
	}
	return v, err
}

func (f *Fenced) Probe(ctx context.Context) (hcp.ClusterInfo, error) {
	return call(ctx, f, "probe", false, f.Inner.Probe)
}

func (f *Fenced) Prepare(ctx context.Context, tok drivers.Token, spec drivers.Spec, taken []string) (hcp.ProviderRef, error) {
	return call(ctx, f, "prepare", false, func(ctx context.Context) (hcp.ProviderRef, error) {
		return f.Inner.Prepare(ctx, tok, spec, taken)
	})
}

func (f *Fenced) Create(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, error) {
	return call(ctx, f, "create", true, func(ctx context.Context) (drivers.Task, error) {
		return f.Inner.Create(ctx, tok, ref, spec)
	})
}

func (f *Fenced) Configure(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, bool, error) {
	more := false
	task, err := call(ctx, f, "configure", true, func(ctx context.Context) (task drivers.Task, err error) {
		task, more, err = f.Inner.Configure(ctx, tok, ref, spec)
		return task, err
	})
	return task, more, err
}

func (f *Fenced) Start(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return call(ctx, f, "start", true, func(ctx context.Context) (drivers.Task, error) {
		return f.Inner.Start(ctx, tok, ref)
	})
}

func (f *Fenced) Stop(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, mode hcp.StopMode) (drivers.Task, error) {
	return call(ctx, f, "stop", true, func(ctx context.Context) (drivers.Task, error) {
		return f.Inner.Stop(ctx, tok, ref, mode)
	})
}

func (f *Fenced) Delete(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	return call(ctx, f, "delete", true, func(ctx context.Context) (drivers.Task, error) {
		return f.Inner.Delete(ctx, tok, ref)
	})
}

func (f *Fenced) Poll(ctx context.Context, task hcp.TaskRef) (drivers.TaskStatus, error) {
	return call(ctx, f, "poll", false, func(ctx context.Context) (drivers.TaskStatus, error) {
		return f.Inner.Poll(ctx, task)
	})
}

func (f *Fenced) Get(ctx context.Context, ref hcp.ProviderRef) (drivers.Observation, error) {
	return call(ctx, f, "get", false, func(ctx context.Context) (drivers.Observation, error) {
		return f.Inner.Get(ctx, ref)
	})
}

func (f *Fenced) Find(ctx context.Context, vm hcp.VMID) ([]hcp.ProviderRef, error) {
	return call(ctx, f, "find", false, func(ctx context.Context) ([]hcp.ProviderRef, error) {
		return f.Inner.Find(ctx, vm)
	})
}

func (f *Fenced) Inventory(ctx context.Context, yield func(drivers.Observation) error) ([]string, error) {
	return call(ctx, f, "inventory", false, func(ctx context.Context) ([]string, error) {
		return f.Inner.Inventory(ctx, yield)
	})
}

// Close does nothing: the driver belongs to the provider actor.
func (f *Fenced) Close() error { return nil }
