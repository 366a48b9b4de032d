package actors

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lotuscloud/hcp/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manual is a clock that tests move.
type manual struct {
	clock.Clock
	at atomic.Int64
}

func (m *manual) Now() time.Time { return time.Unix(0, m.at.Load()) }

func (m *manual) add(d time.Duration) { m.at.Add(int64(d)) }

// counter counts what it was told, over all activations of one id.
type counter struct {
	told    *atomic.Int64
	crashes *atomic.Int64
}

type boom struct{}

func (c *counter) Receive(msg any) {
	if _, ok := msg.(boom); ok {
		panic("boom")
	}
	c.told.Add(1)
}

func (c *counter) Crashed(any, error) { c.crashes.Add(1) }

func newTestRegistry(t *testing.T) (*Registry, *manual, *counter) {
	t.Helper()
	clk := &manual{Clock: clock.Real()}
	c := &counter{&atomic.Int64{}, &atomic.Int64{}}
	s := NewSystem(slog.New(slog.DiscardHandler))
	r := NewRegistry(s, clk, Limits{Idle: time.Minute, MaxBackoff: 8 * time.Second, Quarantine: 3}, func(string, *Self) Behaviour { return c })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
		s.Shutdown()
	})
	return r, clk, c
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for range 5000 {
		if is() {
			return
		}
		<-ticks.C
	}
	t.Fatalf("not within 5 s: %s", what)
}

func TestPassivationLosesNoMessage(t *testing.T) {
	// Actors are passivated all the time while many tell them: every message is handled.
	r, clk, c := newTestRegistry(t)
	const tellers, each = 8, 2000
	var wg sync.WaitGroup
	quit := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				clk.add(2 * time.Minute)
				r.Sweep()
			}
		}
	})
	for range tellers {
		wg.Go(func() {
			for range each {
				if err := r.Tell("a", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(quit)
	sweeper.Wait()
	until(t, "every message is handled", func() bool { return c.told.Load() == tellers*each })
	if n := r.Counts().Activations; n < 2 {
		t.Errorf("%d activations: nothing was passivated", n)
	}
}

func TestABusyActorStays(t *testing.T) {
	r, clk, c := newTestRegistry(t)
	var self *Self
	r.activate = func(_ string, s *Self) Behaviour { self = s; return c }
	if err := r.Tell("a", 1); err != nil {
		t.Fatal(err)
	}
	self.SetBusy(true)
	clk.add(time.Hour)
	if n := r.Sweep(); n != 0 {
		t.Fatalf("%d busy actors were passivated", n)
	}
	self.SetBusy(false)
	if n := r.Sweep(); n != 1 {
		t.Errorf("%d idle actors were passivated, want 1", n)
	}
}

func TestAPanicQuarantinesOnlyItsOwnID(t *testing.T) {
	// A panic answers who waits, ends that activation, and pauses its id longer each time.
	r, clk, c := newTestRegistry(t)
	for i := range 3 {
		if err := r.Tell("bad", boom{}); err != nil {
			t.Fatalf("panic %d: %v", i, err)
		}
		want := int64(i + 1)
		until(t, "the panic is counted", func() bool { return r.Counts().Panics == want && c.crashes.Load() == want && r.Counts().Active == 0 })
		if err := r.Tell("bad", 1); !errors.Is(err, ErrQuarantined) {
			t.Fatalf("right after panic %d: %v", i, err)
		}
		clk.add(5 * time.Second)
	}
	if err := r.Tell("good", 1); err != nil {
		t.Errorf("another id: %v", err)
	}
	if n := r.Counts().Active; n != 1 {
		t.Errorf("%d actors are active, want the good one", n)
	}
}

func TestCloseHandlesWhatWasToldAndRefusesTheRest(t *testing.T) {
	r, _, c := newTestRegistry(t)
	for range 100 {
		if err := r.Tell("a", 1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := c.told.Load(); n != 100 {
		t.Errorf("%d of 100 messages were handled", n)
	}
	if err := r.Tell("a", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}
