package libvirt_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Procedures of libvirt's protocol that the tests tell apart.
const (
	procOpen          = 1
	procLookupByUUID  = 24
	procAuthList      = 66
	procLibVersion    = 157
	procCreate        = 196
	procUndefine      = 231
	procDestroy       = 234
	procEventRegister = 316
	procEventLost     = 317
	procEvent         = 318
	procDefine        = 350
)

const headerLen = 28

// frame is one message of the protocol, its length word included.
type frame []byte

func (f frame) proc() uint32   { return binary.BigEndian.Uint32(f[12:]) }
func (f frame) kind() uint32   { return binary.BigEndian.Uint32(f[16:]) } // 0 call, 1 reply, 2 event, 3 stream
func (f frame) serial() uint32 { return binary.BigEndian.Uint32(f[20:]) }

func readFrame(r io.Reader) (frame, error) {
	var word [4]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(word[:])
	if n < headerLen || n > 64<<20 {
		return nil, io.ErrUnexpectedEOF
	}
	f := make(frame, n)
	copy(f, word[:])
	_, err := io.ReadFull(r, f[4:])
	return f, err
}

// gate stands in front of a host's socket and does to the connections what
// networks do: it refuses them, cuts them at a chosen call, holds answers back.
type gate struct {
	path, target string
	l            net.Listener

	mu        sync.Mutex
	conns     map[net.Conn]struct{} // those of the driver
	down      bool
	slow      chan struct{} // not nil: answers wait until it is closed
	cutBefore uint32        // a procedure, or 0
	cutAfter  uint32
	wg        sync.WaitGroup
}

func newGate(t testing.TB, target string) *gate {
	t.Helper()
	dir, err := os.MkdirTemp("", "gate") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{path: filepath.Join(dir, "s"), target: target, conns: map[net.Conn]struct{}{}}
	if g.l, err = net.Listen("unix", g.path); err != nil {
		t.Fatal(err)
	}
	g.wg.Go(g.accept)
	t.Cleanup(func() {
		_ = g.l.Close()
		g.set(func() { g.down = true })
		g.fast()
		g.cut()
		g.wg.Wait()
		_ = os.RemoveAll(dir)
	})
	return g
}

func (g *gate) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func (g *gate) cut() {
	g.set(func() {
		for c := range g.conns {
			_ = c.Close()
		}
	})
}

func (g *gate) close() { g.set(func() { g.down = true }); g.cut() }
func (g *gate) open()  { g.set(func() { g.down = false }) }

func (g *gate) delay() { g.set(func() { g.slow = make(chan struct{}) }) }
func (g *gate) fast() {
	g.set(func() {
		if g.slow != nil {
			close(g.slow)
			g.slow = nil
		}
	})
}

func (g *gate) sessions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

func (g *gate) accept() {
	for {
		c, err := g.l.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		down := g.down
		if !down {
			g.conns[c] = struct{}{}
		}
		g.mu.Unlock()
		if down {
			_ = c.Close()
			continue
		}
		g.wg.Go(func() { g.serve(c) })
	}
}

func (g *gate) serve(c net.Conn) {
	defer g.set(func() { delete(g.conns, c) })
	defer c.Close()
	s, err := net.Dial("unix", g.target)
	if err != nil {
		return
	}
	defer s.Close()
	w := &wire{gate: g, client: c, server: s}
	done := make(chan struct{})
	go func() { defer close(done); w.answers() }()
	w.calls()
	_ = s.Close()
	_ = c.Close()
	<-done
}

// wire is one connection through the gate.
type wire struct {
	gate           *gate
	client, server net.Conn
	mu             sync.Mutex
	doomed         uint32 // serial of the call whose answer is never delivered
}

func (w *wire) calls() {
	for {
		f, err := readFrame(w.client)
		if err != nil {
			return
		}
		if f.kind() == 0 {
			before := false
			w.gate.set(func() {
				switch f.proc() {
				case w.gate.cutBefore:
					w.gate.cutBefore, before = 0, true
				case w.gate.cutAfter:
					w.gate.cutAfter = 0
					w.mu.Lock()
					w.doomed = f.serial()
					w.mu.Unlock()
				}
			})
			if before {
				return
			}
		}
		if _, err := w.server.Write(f); err != nil {
			return
		}
	}
}

func (w *wire) answers() {
	defer w.client.Close()
	for {
		f, err := readFrame(w.server)
		if err != nil {
			return
		}
		w.mu.Lock()
		doomed := w.doomed != 0 && f.kind() == 1 && f.serial() == w.doomed
		w.mu.Unlock()
		if doomed {
			return
		}
		w.gate.mu.Lock()
		slow := w.gate.slow
		w.gate.mu.Unlock()
		if slow != nil {
			<-slow
		}
		if _, err := w.client.Write(f); err != nil {
			return
		}
	}
}
