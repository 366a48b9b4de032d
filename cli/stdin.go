package cli

import (
	"context"
	"io"
)

// interruptible is standard input that ends with the run: a person who is asked
// something can leave with one Ctrl-C.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

type readResult struct {
	data []byte
	err  error
}

// Read may leave its goroutine behind in a read that never returns; the process
// is about to end then.
func (i interruptible) Read(p []byte) (int, error) {
	if i.r == nil {
		return 0, io.EOF
	}
	got := make(chan readResult, 1)
	buf := make([]byte, len(p))
	go func() {
		n, err := i.r.Read(buf)
		got <- readResult{buf[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case r := <-got:
		return copy(p, r.data), r.err
	}
}
