// Package flushrate measures what the machine's disk can do, so that benchmarks
// can print ratios instead of figures that only mean something on one machine. It
// may not be used outside of benchmarks.
package flushrate

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lotuscloud/hcp/internal/clock"
)

// record is as large as a small commit in a write-ahead log.
const record = 4096

// Single appends a record and flushes it, over and over in one goroutine, for
// about d, to a file in dir that it removes. It returns flushes per second.
func Single(dir string, d time.Duration) (float64, error) { return measure(dir, 1, d) }

// Grouped is the rate of flushed records with that many writers, where one flush
// serves every record that was written before it began: the limit of group commit.
func Grouped(dir string, writers int, d time.Duration) (float64, error) {
	return measure(dir, writers, d)
}

func measure(dir string, writers int, d time.Duration) (rate float64, err error) {
	f, err := os.Create(filepath.Join(dir, "flushrate.tmp"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	l := &log{f: f, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	now := clock.Real().Now
	began := now()
	var wg sync.WaitGroup
	counts, errs := make([]int, writers), make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			for errs[i] == nil && now().Sub(began) < d {
				errs[i] = l.append()
				counts[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / now().Sub(began).Seconds(), errors.Join(errs...)
}

// log appends records; whoever has the turn flushes for all that wrote before.
type log struct {
	f    *os.File
	turn chan struct{}

	mu               sync.Mutex
	written, flushed int
}

func (l *log) append() error {
	l.mu.Lock()
	mine := l.written + 1
	_, err := l.f.WriteAt(make([]byte, record), int64(l.written)*record)
	l.written = mine
	l.mu.Unlock()
	if err != nil {
		return err
	}
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	l.mu.Lock()
	upTo, done := l.written, l.flushed >= mine
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := unix.Fdatasync(int(l.f.Fd())); err != nil {
		return err
	}
	l.mu.Lock()
	l.flushed = upTo
	l.mu.Unlock()
	return nil
}
