package libvirt

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lotuscloud/hcp/internal/clock"
)

// slow is a source that takes its time with each read.
type slow struct{ pause time.Duration }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(s.pause)
	return len(b), nil
}

// A host that takes nothing for as long as patience lasts is given up; a source
// that is slower than that is not.
func TestPacedGivesUpTheReaderAndNotTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Second
		var gaveUp atomic.Int32
		watch := func() func() bool { return clock.Real().AfterFunc(patience, func() { gaveUp.Add(1) }) }
		p := &paced{r: slow{10 * patience}, watch: watch}
		p.rest(true)
		for range 3 {
			if _, err := p.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(patience / 2)
		}
		synctest.Wait()
		if gaveUp.Load() != 0 {
			t.Fatalf("gave up %d times on a slow source, want 0", gaveUp.Load())
		}
		time.Sleep(patience)
		synctest.Wait()
		if gaveUp.Load() != 1 {
			t.Fatalf("gave up %d times on a host that takes nothing, want 1", gaveUp.Load())
		}
	})
}

// A stream that was given up may still read once: no timer begins after the end.
func TestPacedStartsNoTimerAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gaveUp atomic.Int32
		p := &paced{r: strings.NewReader("x"), watch: func() func() bool {
			return clock.Real().AfterFunc(time.Second, func() { gaveUp.Add(1) })
		}}
		p.rest(true)
		p.end()
		if _, err := p.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if gaveUp.Load() != 0 {
			t.Fatalf("a timer began after the end and fired %d times", gaveUp.Load())
		}
	})
}
