package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/transport"
)

// publisher gives committed events their gap-free positions and tells readers.
// It gathers for a moment: one flush for many commits.
type publisher struct {
	store persistence.EventLog
	wakes *transport.Wakes
	clock clock.Clock
	log   *slog.Logger
	dirty chan struct{}
	quit  chan struct{}
	done  chan struct{}
}

const (
	publishGather = 25 * time.Millisecond
	publishBatch  = 2000
	publishAtMost = 5 * time.Second // re-read although nobody said that there is something
)

func newPublisher(store persistence.EventLog, wakes *transport.Wakes, clk clock.Clock, log *slog.Logger) *publisher {
	return &publisher{store: store, wakes: wakes, clock: clk, log: log, dirty: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{})}
}

// wake says that there may be events to publish; it never blocks.
func (p *publisher) wake() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

func (p *publisher) start() { go p.run() }

func (p *publisher) stop() {
	close(p.quit)
	<-p.done
}

func (p *publisher) run() {
	defer close(p.done)
	net, stopNet := p.clock.NewTicker(publishAtMost)
	defer stopNet()
	for {
		p.publish()
		select {
		case <-p.dirty:
		case <-net:
		case <-p.quit:
			p.publish()
			return
		}
		gathered := make(chan struct{})
		p.clock.AfterFunc(publishGather, func() { close(gathered) })
		select {
		case <-gathered:
		case <-p.quit:
			p.publish()
			return
		}
	}
}

func (p *publisher) publish() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		events, err := p.store.Publish(ctx, publishBatch)
		cancel()
		if err != nil {
			p.log.Warn("events could not be published", "err", err)
			return
		}
		if len(events) > 0 {
			p.wakes.Send(transport.Wake{Events: true})
		}
		if len(events) < publishBatch {
			return
		}
	}
}
