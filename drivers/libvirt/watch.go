package libvirt

import (
	"context"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
)

const (
	pulse      = 5 * time.Second // between two questions whether an event connection lives
	maxHints   = 1024            // beyond so many machines one look at everything is cheaper
	eventsLost = hcp.VMID("")
)

// Watch listens to the lifecycle events of every host, each on a connection of
// its own that it renews when it breaks. Events are lost while it is broken and
// just after it is made, so each new one begins with a hint to look at
// everything. It returns when ctx ends or the driver closes.
func (d *Driver) Watch(ctx context.Context, hint func(hcp.VMID)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.done, cancel)()
	box := newMailbox()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, h := range d.hosts {
		wg.Go(func() { d.watchHost(ctx, h, box) })
	}
	for {
		ids, err := box.wait(ctx)
		if err != nil {
			return hcp.Errorf(hcp.CodeProviderUnavailable, "closed", "watching the hypervisor has ended").WithCause(err)
		}
		for _, id := range ids {
			hint(id)
		}
	}
}

func (d *Driver) watchHost(ctx context.Context, h *host, box *mailbox) {
	for pause := backoffMin; ctx.Err() == nil; pause = min(2*pause, backoffMax) {
		listened, err := d.listen(ctx, h, box)
		if ctx.Err() != nil {
			return
		}
		d.log.Warn("events of a host ended", "host", h.name, "error", err)
		if listened {
			pause = backoffMin
			box.put(eventsLost) // whoever waits looks now, not only when the host is back
		}
		if !waited(ctx, pause) {
			return
		}
	}
}

// listen opens an event connection and takes what comes until it breaks.
func (d *Driver) listen(ctx context.Context, h *host, box *mailbox) (listened bool, err error) {
	dctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	s, err := openSession(dctx, h.ep)
	if err != nil {
		return false, err
	}
	defer s.close()
	var drained sync.WaitGroup
	defer drained.Wait() // after the close, which ends the stream
	defer s.close()
	subscribed := func(lv *golibvirt.Libvirt) error {
		// never cancelled: the library leaks a stream that is not drained to its end
		events, err := lv.LifecycleEvents(context.Background())
		if err != nil {
			return err
		}
		drained.Add(1)
		go func() {
			defer drained.Done()
			for e := range events {
				d.event(h, e, box)
			}
		}()
		return nil
	}
	if ok, err := s.enter(dctx); !ok {
		return false, &errLink{err: err}
	}
	if err := s.call(dctx, subscribed); err != nil {
		return false, err
	}
	h.facts.dropAll() // the events until now were missed
	h.watched.Add(1)
	defer h.watched.Add(-1)
	box.put(eventsLost)
	for {
		beat, cancel := context.WithTimeout(ctx, pulse)
		select {
		case <-s.wire.gone:
			cancel()
			return true, s.wire.why
		case <-beat.Done():
			cancel()
		}
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		pctx, cancel := context.WithTimeout(ctx, pingWithin)
		ok, err := s.enter(pctx)
		if ok {
			err = s.call(pctx, ping)
		}
		cancel()
		if err != nil {
			return true, err
		}
	}
}

// event turns an event into a hint. What was known of the machine is dropped;
// whether the event says started or stopped does not matter: the reader looks.
func (d *Driver) event(h *host, e golibvirt.DomainEventLifecycleMsg, box *mailbox) {
	f, known := h.facts.get(e.Dom.UUID)
	h.facts.drop(e.Dom.UUID)
	switch id, ok := hcp.VMIDFromUUID(formatUUID(e.Dom.UUID)); {
	case known && f.mark.ID != "":
		box.put(f.mark.ID)
	case ok:
		box.put(id)
	case !known: // ours under a derived id, or a stranger: only a look can tell
		box.put(eventsLost)
	}
}

// mailbox holds hints without growing: a machine is in it once.
type mailbox struct {
	mu    sync.Mutex
	ids   map[hcp.VMID]bool
	ready chan struct{}
}

func newMailbox() *mailbox { return &mailbox{ids: map[hcp.VMID]bool{}, ready: make(chan struct{}, 1)} }

func (b *mailbox) put(id hcp.VMID) {
	b.mu.Lock()
	if len(b.ids) >= maxHints {
		clear(b.ids)
		id = eventsLost
	}
	b.ids[id] = true
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *mailbox) wait(ctx context.Context) ([]hcp.VMID, error) {
	select {
	case <-b.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]hcp.VMID, 0, len(b.ids))
	for id := range b.ids {
		ids = append(ids, id)
	}
	clear(b.ids)
	return ids, nil
}
