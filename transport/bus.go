// Package transport carries messages between the nodes of one control plane and
// wakes whoever waits. It carries nothing that must survive: what must survive
// is committed to the store first, and whoever waits for a wake-up also re-reads.
package transport

import (
	"context"
	"errors"
)

// ErrNoResponders says that nobody serves the subject now. It is a hint that a
// node is down, never proof.
var ErrNoResponders = errors.New("nobody serves this subject")

// Bus is request and reply, and publish and subscribe, at most once.
type Bus interface {
	// Request waits for one answer until ctx ends.
	Request(ctx context.Context, subject string, payload []byte) ([]byte, error)
	// Serve answers requests; handle must call reply at most once, from any goroutine.
	Serve(subject string, handle func(payload []byte, reply func([]byte))) (stop func(), err error)
	Publish(subject string, payload []byte) error
	Subscribe(subject string, handle func(payload []byte)) (stop func(), err error)
	// Close drains and ends the connection.
	Close()
}
