package libvirt

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
)

const (
	frameHeader = 28             // length word and header
	frameMax    = 32<<20 + 1<<10 // libvirt's own limit of a message, and some air
)

// guard stands between the socket and the client library, which trusts every
// length it reads: one below 28 ends the process, a huge one takes the memory.
// The guard follows the frames and ends the connection at the first bad length,
// of which the library never sees the last byte.
type guard struct {
	net.Conn
	once sync.Once
	gone chan struct{} // closed when the connection is of no more use
	why  error         // valid once gone is closed

	// of the one reader
	word [4]byte
	have int    // bytes of word that were read
	left uint32 // bytes of the present frame that are still to come
}

func newGuard(c net.Conn) *guard { return &guard{Conn: c, gone: make(chan struct{})} }

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if bad := g.follow(p[:n]); bad != nil {
		g.end(bad)
		return 0, bad
	}
	if err != nil {
		g.end(err)
	}
	return n, err
}

func (g *guard) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	if err != nil {
		g.end(err)
	}
	return n, err
}

func (g *guard) follow(p []byte) error {
	for len(p) > 0 {
		if g.left > 0 {
			n := min(uint32(len(p)), g.left)
			g.left -= n
			p = p[n:]
			continue
		}
		n := copy(g.word[g.have:], p)
		g.have += n
		p = p[n:]
		if g.have < len(g.word) {
			return nil
		}
		length := binary.BigEndian.Uint32(g.word[:])
		if length < frameHeader || length > frameMax {
			return fmt.Errorf("the host sent a frame of length %d", length)
		}
		g.have, g.left = 0, length-uint32(len(g.word))
	}
	return nil
}

// Close ends the connection; the library's goroutines end with it.
func (g *guard) Close() error {
	g.end(net.ErrClosed)
	return nil
}

func (g *guard) end(why error) {
	g.once.Do(func() {
		g.why = why
		close(g.gone)
		_ = g.Conn.Close() // nothing waits for the far side
	})
}
