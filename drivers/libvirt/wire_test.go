package libvirt_test

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/libvirt"
	"github.com/lotuscloud/hcp/internal/clock"
)

// fake is a libvirtd that speaks frames and misbehaves as told. Needs no packages.
type fake struct {
	path  string
	l     net.Listener
	reply func(c net.Conn, call frame) // answers what the handshake does not
	wg    sync.WaitGroup
	open  atomic.Int32 // connections

	mu    sync.Mutex
	conns []net.Conn
}

func newFake(t testing.TB, reply func(net.Conn, frame)) *fake {
	t.Helper()
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{path: filepath.Join(dir, "s"), reply: reply}
	if f.l, err = net.Listen("unix", f.path); err != nil {
		t.Fatal(err)
	}
	f.wg.Go(func() {
		for {
			c, err := f.l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.open.Add(1)
			f.wg.Go(func() { f.serve(c); f.open.Add(-1) })
		}
	})
	t.Cleanup(func() {
		_ = f.l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
		_ = os.RemoveAll(dir)
	})
	return f
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	for {
		call, err := readFrame(c)
		if err != nil {
			return
		}
		switch call.proc() {
		case procAuthList:
			_, _ = c.Write(answer(call, 0, 0, 0, 1, 0, 0, 0, 0)) // one way: none
		case procOpen:
			_, _ = c.Write(answer(call))
		case procLibVersion:
			_, _ = c.Write(answer(call, 0, 0, 0, 0, 0, 0, 0, 9))
		default:
			f.reply(c, call)
		}
	}
}

// answer is the reply to a call.
func answer(call frame, payload ...byte) frame {
	f := make(frame, headerLen, headerLen+len(payload))
	copy(f, call[:headerLen])
	binary.BigEndian.PutUint32(f[16:], 1)
	binary.BigEndian.PutUint32(f[24:], 0)
	f = append(f, payload...)
	binary.BigEndian.PutUint32(f, uint32(len(f)))
	return f
}

func openAt(t testing.TB, timeout time.Duration, endpoint string, options map[string]string) drivers.Driver {
	t.Helper()
	d, err := libvirt.Open(context.Background(), drivers.Config{Endpoint: endpoint, Options: options, CallTimeout: timeout, Now: clock.Real().Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func socketURI(name, path string) string {
	return "qemu+unix:///system?socket=" + path + "&name=" + name
}

func eventually(t testing.TB, limit time.Duration, what string, f func() bool) {
	t.Helper()
	if f() {
		return
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if f() {
				return
			}
		case <-end.C:
			if !f() {
				t.Fatalf("not within %s: %s", limit, what)
			}
			return
		}
	}
}

const someRef = "01939999-0000-7000-8000-000000000001"

// The client library trusts a frame's length: below 28 it panics in a goroutine
// of its own, which nothing can recover from; a huge one takes the memory.
func TestABadFrameLengthEndsTheConnectionAndNotTheProcess(t *testing.T) {
	for name, length := range map[string]uint32{"zero": 0, "below the header": 27, "four gigabytes": 0xfffffff0, "just too long": 33<<20 + 1} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, func(c net.Conn, call frame) {
				_, _ = c.Write(binary.BigEndian.AppendUint32(nil, length))
			})
			d := openAt(t, 3*time.Second, socketURI("h", f.path), nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := d.Get(t.Context(), hcp.ProviderRef{ID: someRef, Host: "h"})
			runtime.ReadMemStats(&after)
			if !hcp.IsCode(err, hcp.CodeProviderUnavailable) {
				t.Errorf("a rubbish frame gave %v, want PROVIDER_UNAVAILABLE", err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
				t.Errorf("%d MiB were allocated for a length", grown>>20)
			}
			eventually(t, 5*time.Second, "the connection is closed", func() bool { return f.open.Load() == 0 })
		})
	}
}

// A libvirtd that is stopped accepts connections (the kernel does) and never
// answers: every call of the client library hangs without limit.
func TestASilentHostIsGivenUpAtTheDeadline(t *testing.T) {
	f := newFake(t, func(net.Conn, frame) {})
	base := runtime.NumGoroutine()
	d := openAt(t, 500*time.Millisecond, socketURI("h", f.path), nil)
	ref := hcp.ProviderRef{ID: someRef, Host: "h"}
	for range 8 {
		began := clock.Real().Now()
		_, err := d.Get(t.Context(), ref)
		if !hcp.IsCode(err, hcp.CodeProviderTimeout) && !hcp.IsCode(err, hcp.CodeProviderUnavailable) {
			t.Fatalf("a silent host gave %v", err)
		}
		if took := clock.Real().Now().Sub(began); took > 3*time.Second {
			t.Fatalf("the call took %s with a deadline of 0.5 s", took)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "goroutines are back at their number", func() bool { return runtime.NumGoroutine() <= base+1 })
}

// The server works on five requests of a client at once and queues the rest,
// behind which a cheap call would wait.
func TestAConnectionCarriesFourCallsAtMost(t *testing.T) {
	type waiting struct {
		c    net.Conn
		call frame
	}
	var mu sync.Mutex
	var now, most = map[net.Conn]int{}, 0
	calls := make(chan waiting, 100)
	f := newFake(t, func(c net.Conn, call frame) {
		mu.Lock()
		now[c]++
		most = max(most, now[c])
		mu.Unlock()
		calls <- waiting{c, call}
	})
	done := make(chan struct{})
	go func() { // one answer at a time: everybody queues
		defer close(done)
		for w := range calls {
			mu.Lock()
			now[w.c]--
			mu.Unlock()
			_, _ = w.c.Write(failure(w.call, 42, "no such domain"))
		}
	}()
	d := openAt(t, 5*time.Second, socketURI("h", f.path), nil)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := d.Get(t.Context(), hcp.ProviderRef{ID: someRef, Host: "h"}); !hcp.IsCode(err, hcp.CodeNotFound) {
				t.Errorf("get gave %v, want NOT_FOUND", err)
			}
		})
	}
	wg.Wait()
	close(calls)
	<-done
	if most > 4 {
		t.Errorf("%d calls were on one connection at once", most)
	}
}

// failure is an error reply as libvirtd sends it: code, domain, message, level
// and the rest empty.
func failure(call frame, code uint32, message string) frame {
	word := func(b []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(b, n) }
	p := word(word(nil, code), 10)
	p = word(word(p, 1), uint32(len(message)))
	p = append(p, message...)
	for len(p)%4 != 0 {
		p = append(p, 0)
	}
	p = word(p, 2) // level
	for range 4 {  // domain, three strings
		p = word(p, 0)
	}
	p = word(word(word(p, 0xffffffff), 0xffffffff), 0) // ints, network
	f := answer(call, p...)
	binary.BigEndian.PutUint32(f[24:], 1)
	return f
}

// The client library drops an event that arrives with the reply to the register
// call: it reads it before it has stored the subscription.
func TestWatchSaysLookAtEverythingAfterItSubscribed(t *testing.T) {
	f := newFake(t, func(c net.Conn, call frame) {
		if call.proc() != procEventRegister {
			_, _ = c.Write(answer(call))
			return
		}
		both := append(answer(call, 0, 0, 0, 1), event(call, 1)...)
		_, _ = c.Write(both)
	})
	d := openAt(t, 3*time.Second, socketURI("h", f.path), nil)
	ctx, cancel := context.WithCancel(t.Context())
	hints := make(chan hcp.VMID, 100)
	ended := make(chan error, 1)
	go func() { ended <- d.(drivers.Watcher).Watch(ctx, func(vm hcp.VMID) { hints <- vm }) }()
	limit := time.NewTimer(5 * time.Second)
	defer limit.Stop()
	for all := false; !all; {
		select {
		case vm := <-hints:
			all = vm == "" // with or without the event itself
		case <-limit.C:
			t.Fatal("no hint to look at everything")
		}
	}
	cancel()
	select {
	case <-ended:
	case <-limit.C:
		t.Fatal("watch goes on after its context ended")
	}
}

// event is a lifecycle event of someRef's domain.
func event(call frame, callback uint32) frame {
	f := make(frame, headerLen)
	copy(f, call[:headerLen])
	binary.BigEndian.PutUint32(f[12:], procEvent)
	binary.BigEndian.PutUint32(f[16:], 2)
	binary.BigEndian.PutUint32(f[20:], 0)
	word := func(n uint32) { f = binary.BigEndian.AppendUint32(f, n) }
	word(callback)
	word(4)
	f = append(f, "name"...)
	f = append(f, 0x01, 0x93, 0x99, 0x99, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1)
	word(1)
	word(2)
	word(0)
	binary.BigEndian.PutUint32(f, uint32(len(f)))
	return f
}
