package transport

import (
	"encoding/json"
	"sync"

	"github.com/lotuscloud/hcp"
)

// SubjectWake carries hints that something was committed.
const SubjectWake = "hcp.wake"

// Wake says what one group of commits changed. Losing one costs a waiter at most
// its re-read interval.
type Wake struct {
	Jobs   []hcp.JobID `json:"jobs,omitempty"`
	Events bool        `json:"events,omitempty"`
}

// Wakes hands hints to whoever waits for a job or for new events. A channel is
// level-triggered: it has room for one hint, and a waiter re-reads after each.
type Wakes struct {
	mu     sync.Mutex
	jobs   map[hcp.JobID]map[chan struct{}]struct{}
	events map[chan struct{}]struct{}
	bus    Bus
	stop   func()
}

// NewWakes listens on the bus.
func NewWakes(bus Bus) (*Wakes, error) {
	w := &Wakes{jobs: map[hcp.JobID]map[chan struct{}]struct{}{}, events: map[chan struct{}]struct{}{}, bus: bus}
	stop, err := bus.Subscribe(SubjectWake, w.receive)
	if err != nil {
		return nil, err
	}
	w.stop = stop
	return w, nil
}

// Send tells every node, this one included.
func (w *Wakes) Send(wake Wake) {
	payload, err := json.Marshal(wake)
	if err == nil {
		_ = w.bus.Publish(SubjectWake, payload) // a hint: waiters also re-read
	}
}

// Close stops listening; waiters keep their re-read.
func (w *Wakes) Close() { w.stop() }

// WaitJob returns a channel that gets a hint when the job may have changed.
func (w *Wakes) WaitJob(id hcp.JobID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[id] == nil {
		w.jobs[id] = map[chan struct{}]struct{}{}
	}
	w.jobs[id][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.jobs[id], c)
		if len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
}

// WaitEvents returns a channel that gets a hint when events may have been published.
func (w *Wakes) WaitEvents() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.events, c)
	}
}

func (w *Wakes) receive(payload []byte) {
	var wake Wake
	if json.Unmarshal(payload, &wake) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range wake.Jobs {
		hint(w.jobs[id])
	}
	if wake.Events {
		hint(w.events)
	}
}

func hint(waiters map[chan struct{}]struct{}) {
	for c := range waiters {
		select {
		case c <- struct{}{}:
		default: // it has a hint already
		}
	}
}
