// Package clock is the one place where HCP reads the time and waits. Everything
// else is handed a Clock, so that tests own the time (or run in a synctest
// bubble, where the real clock is fake).
package clock

import "time"

// Clock tells the time and makes timers.
type Clock interface {
	Now() time.Time // UTC, microseconds
	// AfterFunc calls f in its own goroutine after d; stop reports whether it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	NewTicker(d time.Duration) (ticks <-chan time.Time, stop func())
}

// Real is the machine's clock.
func Real() Clock { return real{} }

type real struct{}

// Now is cut to microseconds: what the store keeps. A time that went through the
// store equals itself.
func (real) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (real) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (real) NewTicker(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}
