package harness

import (
	"testing"
	"time"
)

const pollEvery = 20 * time.Millisecond

// Poll waits for a level: it calls ok until it answers "" or the bound is over,
// and returns the last reason ("" when it came true).
func Poll(bound time.Duration, ok func() string) string {
	limit := time.NewTimer(bound)
	defer limit.Stop()
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for {
		why := ok()
		if why == "" {
			return ""
		}
		select {
		case <-limit.C:
			return why
		case <-ticks.C:
		}
	}
}

// Eventually is Poll that fails the test.
func Eventually(t testing.TB, bound time.Duration, what string, ok func() string) {
	t.Helper()
	if why := Poll(bound, ok); why != "" {
		t.Fatalf("%s: not within %v: %s", what, bound, why)
	}
}

// Pause lets d pass: for moments chosen at random, never to wait for something.
func Pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}
