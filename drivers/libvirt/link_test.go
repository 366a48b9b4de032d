package libvirt

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
)

const (
	procPing     = 157
	procHostname = 59
)

func linkTo(t *testing.T, socket string) *link {
	t.Helper()
	eps, err := parseEndpoints("qemu+unix:///system?socket="+socket, credentials{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(eps[0], clock.Real().Now)
	t.Cleanup(l.close)
	return l
}

func hostname(lv *golibvirt.Libvirt) error { _, err := lv.ConnectGetHostname(); return err }

// A daemon that dies in the middle of a call: what was on the wire is unknown when
// it changes something, and the next call finds a new connection.
func TestConnectionClosedInMidCall(t *testing.T) {
	var kill atomic.Bool
	l := linkTo(t, misbehaving(t, func(proc uint32, c net.Conn) bool {
		if proc == procHostname && kill.Load() {
			_ = c.Close()
			return true
		}
		return false
	}))
	if err := l.do(t.Context(), hostname); err != nil {
		t.Fatal(err)
	}
	base := runtime.NumGoroutine()
	kill.Store(true)
	for range 20 {
		err := l.do(t.Context(), hostname)
		if e := classify(err, opStart); err == nil || e.Code != hcp.CodeOutcomeUnknown {
			t.Fatalf("a change cut in mid-call gave %v", e)
		}
		if e := classify(err, opRead); e.Code != hcp.CodeProviderUnavailable {
			t.Fatalf("a read cut in mid-call gave %v", e)
		}
	}
	kill.Store(false)
	if err := l.do(t.Context(), hostname); err != nil {
		t.Fatalf("after the losses: %v", err)
	}
	settled(t, base)
}

// One call that hangs must not take its neighbours on the connection with it, and
// must not hold up whoever comes after it.
func TestHangingCallHarmsNoNeighbour(t *testing.T) {
	var hang atomic.Bool
	answer := make(chan struct{})
	neighbour := make(chan struct{}, 1)
	l := linkTo(t, misbehaving(t, func(proc uint32, c net.Conn) bool {
		switch {
		case proc == procHostname && hang.Load():
			return true // never answered
		case proc == procPing && hang.Load():
			select {
			case neighbour <- struct{}{}: // the first is the neighbour's: answered late
				<-answer
			default:
			}
		}
		return false
	}))
	if err := l.do(t.Context(), ping); err != nil {
		t.Fatal(err)
	}
	base := runtime.NumGoroutine()
	hang.Store(true)
	var wg sync.WaitGroup
	var late error
	started := make(chan struct{})
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		close(started)
		if err := l.do(ctx, hostname); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hanging call gave %v", err)
		}
	})
	<-started
	wg.Go(func() { late = l.do(t.Context(), ping) })
	settle := time.NewTicker(300 * time.Millisecond)
	defer settle.Stop()
	<-settle.C
	close(answer)
	wg.Wait()
	if late != nil {
		t.Errorf("the neighbour of the hanging call gave %v", late)
	}
	if err := l.do(t.Context(), ping); err != nil {
		t.Errorf("the call after gave %v", err)
	}
	l.close()
	settled(t, base)
}

// A dead host is not dialled by every call: the answer of the last try is good for a while.
func TestDeadHostIsNotDialledByEveryCall(t *testing.T) {
	dials := 0
	at := time.Unix(1e9, 0)
	l := newLink(endpoint{dial: func(context.Context) (net.Conn, error) { dials++; return nil, errors.New("refused") }}, func() time.Time { return at })
	for range 100 {
		if e := classify(l.do(t.Context(), ping), opStart); e == nil || e.Code != hcp.CodeProviderUnavailable {
			t.Fatalf("%v", e)
		}
	}
	if dials != 1 {
		t.Errorf("%d dials at one moment, want 1", dials)
	}
	for range 600 { // one minute
		at = at.Add(100 * time.Millisecond)
		_ = l.do(t.Context(), ping)
	}
	if dials < 10 || dials > 25 {
		t.Errorf("%d dials in a minute; the longest pause is %v", dials, backoffMax)
	}
}

// A caller who leaves says nothing about the host.
func TestCancelledCallerDoesNotOpenTheBackoff(t *testing.T) {
	l := linkTo(t, echoSocket(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		if err := l.do(ctx, ping); err == nil {
			t.Fatal("a cancelled call succeeded")
		}
	}
	if err := l.do(t.Context(), ping); err != nil {
		t.Fatalf("the next caller is refused: %v", err)
	}
}

func settled(t *testing.T, base int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; runtime.NumGoroutine() > base+2; i++ {
		if <-tick.C; i > 250 {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), base, buf[:runtime.Stack(buf, true)])
		}
	}
}
