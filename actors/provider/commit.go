package provider

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// pendingCommit is one change of the cluster's row on its way to disk. They go
// one at a time, in order.
type pendingCommit struct {
	commit persistence.Commit
	// change makes the record after it, from the record as it is when its turn comes;
	// nil leaves it alone.
	change func(*hcp.Cluster)
	// complete adds what depends on the record after: the answer to remember.
	complete func(*persistence.Commit, hcp.Cluster)
	record   *hcp.Cluster
	then     func(error)
	ask      *Ask // the command that then answers; nil where nobody waits
}

// commit makes a change durable; then is called in the actor's turn.
func (a *Actor) commit(c persistence.Commit, change func(*hcp.Cluster), then func(error)) {
	a.queueCommit(pendingCommit{commit: c, change: change, then: then})
}

func (a *Actor) queueCommit(p pendingCommit) {
	a.commits = append(a.commits, p)
	a.sendCommit()
}

// sendCommit sends the first commit that waits, unless one is on its way.
func (a *Actor) sendCommit() {
	if a.isSending || len(a.commits) == 0 {
		return
	}
	a.isSending = true
	p := &a.commits[0]
	c := p.commit
	if p.change != nil {
		record := a.cluster
		p.change(&record)
		record.UpdatedAt = a.deps.Clock.Now()
		p.record, c.Cluster = &record, &record
		if p.complete != nil {
			p.complete(&c, record)
		}
	}
	c.Actor = persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(a.id)}
	c.Epoch, c.Seq = a.epoch, a.seq
	c.Claim = !a.claimed && a.seq > 0
	a.deps.Store.Submit(c, func(err error) { a.self.Tell(committed{err}) })
}

func (a *Actor) onCommitted(m committed) {
	p := a.commits[0]
	if m.err == nil {
		if a.seq == 0 {
			a.epoch = 1
		} else if !a.claimed {
			a.epoch++
		}
		a.claimed = true
		a.seq++
		if p.record != nil {
			a.cluster = *p.record
		}
		if len(p.commit.Events) > 0 {
			a.deps.Published()
		}
	}
	a.commits = a.commits[1:]
	a.isSending = false
	if p.then != nil {
		p.then(m.err) // may queue another
	}
	if m.err != nil {
		a.onRefused(m.err)
		return
	}
	a.sendCommit()
	a.dispatch()
}

// onRefused leaves when another activation owns the cluster, and reads afresh
// when the store cannot tell.
func (a *Actor) onRefused(err error) {
	refusal, ok := persistence.RefusalOf(err)
	if ok && refusal.Kind != persistence.RefusedFenced {
		if a.isShut { // it was the cluster's end; it goes on and needs room
			a.isShut, a.limit, a.nextSweep = false, nil, time.Time{}
		}
		a.sendCommit() // this one was refused on its own account
		return
	}
	a.log.Warn("the activation leaves", "err", err)
	for _, p := range a.commits {
		if p.then != nil {
			p.then(err)
		}
	}
	a.commits = nil
	a.isClosed = true
	a.giveUpProbe()
	a.closeDriver()
	for w, ok := a.queue.pop(); ok; w, ok = a.queue.pop() {
		go w.Refused(gone())
	}
	a.self.Retire()
}
