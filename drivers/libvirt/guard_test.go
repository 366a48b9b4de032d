package libvirt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
)

// script is a connection whose far side said all that it will ever say.
type script struct {
	net.Conn
	io.Reader
	closed int
}

func (s *script) Read(p []byte) (int, error) { return s.Reader.Read(p) }
func (s *script) Close() error               { s.closed++; return nil }

func frameOf(length int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), make([]byte, max(0, length-4))...)
}

// A length below the header's ended the process, a huge one took its memory. The
// guard must see lengths wherever a read happens to end.
func TestGuardStopsBadLengthsAtEveryCut(t *testing.T) {
	good := append(append(frameOf(frameHeader), frameOf(1000)...), frameOf(frameHeader+1)...)
	for name, c := range map[string]struct {
		stream []byte
		bad    bool
	}{
		"good": {good, false}, "zero": {append(bytes.Clone(good), 0, 0, 0, 0), true}, "short": {append(bytes.Clone(good), 0, 0, 0, frameHeader-1, 1, 2, 3), true},
		"huge": {append(bytes.Clone(good), 0xff, 0xff, 0xff, 0xf0, 1), true}, "at once": {[]byte{0, 0, 0, 8, 9, 9, 9, 9}, true},
	} {
		for how, r := range map[string]io.Reader{
			"whole": bytes.NewReader(c.stream), "bytes": iotest.OneByteReader(bytes.NewReader(c.stream)), "halves": iotest.HalfReader(bytes.NewReader(c.stream)),
		} {
			conn := &script{Reader: r}
			g := newGuard(conn)
			var seen []byte
			buf := make([]byte, 700)
			var err error
			for err == nil {
				var n int
				n, err = g.Read(buf)
				seen = append(seen, buf[:n]...)
			}
			if isBad := !errors.Is(err, io.EOF); isBad != c.bad {
				t.Errorf("%s, read as %s: ended with %v", name, how, err)
			}
			if c.bad && len(seen) >= len(c.stream) || bytes.HasSuffix(seen, []byte{0, 0, 0, 8}) {
				t.Errorf("%s, read as %s: the bad length reached the reader", name, how)
			}
			if !c.bad && !bytes.Equal(seen, c.stream) {
				t.Errorf("%s, read as %s: %d bytes came out of %d", name, how, len(seen), len(c.stream))
			}
			select {
			case <-g.gone:
			default:
				t.Errorf("%s, read as %s: the connection is not given up", name, how)
			}
			if conn.closed != 1 {
				t.Errorf("%s, read as %s: closed %d times", name, how, conn.closed)
			}
		}
	}
}
