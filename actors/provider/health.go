package provider

import (
	"context"
	"reflect"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// waiter waits for the probe in flight: then is called when its answer has been
// taken in, lost when it never will be.
type waiter struct{ then, lost func() }

// giveUpProbe tells who waits that nothing will come.
func (a *Actor) giveUpProbe() {
	for _, w := range a.probeDone {
		w.lost()
	}
	a.probeDone = nil
}

// probe asks the provider who it is and how it fares.
func (a *Actor) probe(w *waiter) {
	if w != nil {
		a.probeDone = append(a.probeDone, *w)
	}
	if a.isProbing {
		return
	}
	if a.driver == nil {
		a.openDriver()
	}
	if a.driver == nil {
		a.onProbed(probed{err: a.notOpen()})
		return
	}
	a.isProbing = true
	d, timeout := a.driver, a.deps.Policy.CallTimeout
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		info, err := d.Probe(ctx)
		a.self.Tell(probed{info: info, err: err})
	}()
}

func (a *Actor) onProbed(m probed) {
	a.isProbing = false
	now := a.deps.Clock.Now()
	waiting := a.probeDone
	a.probeDone = nil
	defer func() {
		for _, w := range waiting {
			w.then()
		}
	}()
	if m.err != nil {
		// Away: ask more often than in good days.
		a.nextProbe = now.Add(min(a.deps.Policy.ProbeInterval, time.Second))
		e := hcp.AsError(m.err)
		reason := e.Reason
		if reason == "" {
			reason = "unreachable"
		}
		a.setReach(hcp.Reachability{Reachable: false, Reason: reason, LastGoodAt: a.reach.LastGoodAt, ChangedAt: now}, e)
		return
	}
	a.nextProbe = now.Add(a.deps.Policy.ProbeInterval)
	m.info.ProbedAt = now
	a.deps.Settled(a.id, m.info.SettleTime)
	if changed(a.cluster.Info, &m.info) {
		info := m.info
		a.commit(persistence.Commit{Events: []hcp.Event{a.event(hcp.EventClusterChanged, now)}},
			func(c *hcp.Cluster) { c.Info = &info }, nil)
	}
	unreached := []string{}
	for _, h := range m.info.Hosts {
		if !h.Reachable {
			unreached = append(unreached, h.Name)
		}
	}
	wasDown := !a.reach.Reachable
	a.setReach(hcp.Reachability{Reachable: true, LastGoodAt: now, ChangedAt: now, Unreached: unreached}, nil)
	if wasDown {
		a.breaker = newBreaker()
		a.nextSweep = now
		a.deps.VMs.ClusterUp(a.id)
	}
}

// changed reports whether a probe found anything new but its time and free room.
func changed(old, now *hcp.ClusterInfo) bool {
	if old == nil {
		return true
	}
	plain := func(i hcp.ClusterInfo) hcp.ClusterInfo {
		i.ProbedAt, i.ClockSkew = time.Time{}, 0
		hosts := make([]hcp.Host, len(i.Hosts))
		for n, h := range i.Hosts {
			h.Free, h.Message = hcp.Sizes{}, ""
			hosts[n] = h
		}
		i.Hosts = hosts
		return i
	}
	return !reflect.DeepEqual(plain(*old), plain(*now))
}

// setReach stores reachability when it changed: one write for all VMs of the cluster.
func (a *Actor) setReach(r hcp.Reachability, why *hcp.Error) {
	old := a.reach
	same := old.Reachable == r.Reachable && old.Reason == r.Reason && reflect.DeepEqual(old.Unreached, r.Unreached) && !old.ChangedAt.IsZero()
	if same {
		r.ChangedAt = old.ChangedAt
		a.reach = r
		return
	}
	a.reach = r
	typ := hcp.EventClusterUp
	if r.Reachable {
		a.log.Info("the cluster answers")
	} else {
		typ = hcp.EventClusterDown
		a.log.Warn("the cluster does not answer", "reason", r.Reason, "err", why)
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.deps.Store.PutReachability(ctx, a.id, r); err != nil {
			a.log.Error("reachability could not be stored", "err", err)
		}
	}()
	if old.Reachable != r.Reachable {
		a.commit(persistence.Commit{Events: []hcp.Event{a.event(typ, a.deps.Clock.Now())}}, nil, nil)
	}
}

// event is one of operators' events about the cluster.
func (a *Actor) event(typ hcp.EventType, at time.Time) hcp.Event {
	return hcp.Event{ID: hcp.EventID(a.deps.NewID(hcp.KindEvent)), Type: typ, Subject: hcp.LRNOf("cluster", string(a.id)),
		Actor: "hcp", Time: at, Data: hcp.EventData{Name: a.cluster.Name, Reason: a.reach.Reason}}
}
