package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/persistence"
)

// troubled is a store that refuses what the wish says, as a full disk does.
type troubled struct {
	persistence.Store
	refuses atomic.Pointer[func(persistence.Commit) bool]
}

func (s *troubled) Submit(c persistence.Commit, done func(error)) {
	if f := s.refuses.Load(); f != nil && (*f)(c) {
		go done(hcp.Errorf(hcp.CodeUnavailable, "store_full", "planted by the test"))
		return
	}
	s.Store.Submit(c, done)
}

func (s *troubled) refuse(f func(persistence.Commit) bool) { s.refuses.Store(&f) }

func (s *troubled) recover() { s.refuses.Store(nil) }

func ofClusters(c persistence.Commit) bool { return c.Actor.Kind == persistence.ActorCluster }

func TestAClusterIsGovernedAgainAfterTroubleInTheStore(t *testing.T) {
	// A commit of a provider actor that failed ended its activation, and nobody called it
	// back before the cluster's next job: no probe, no sweep, and an old reachability for ever.
	b := newBundle(t)
	store := &troubled{Store: b.store}
	b.wrap = store
	b.restart()
	b.do(hcp.Command{Verb: hcp.VerbClusterProbe})
	store.refuse(ofClusters)
	b.must(b.sim.Down(context.Background(), ""))
	b.eventually("the cluster is seen to be away", func() bool { return !b.reachable() })
	b.eventually("the activation leaves", func() bool { _, c := b.node.Counts(); return c.Activations > 1 })
	store.recover()
	b.must(b.sim.Up(context.Background()))
	b.eventually("the cluster is seen to be back", b.reachable)
}

func TestAProbeThatNobodyAnswersIsAnswered(t *testing.T) {
	// An operator's probe waited for an activation that had left for trouble in the store:
	// the reply never came, and the call hung until its deadline.
	b := newBundle(t)
	store := &troubled{Store: b.store}
	b.wrap = store
	b.restart()
	b.do(hcp.Command{Verb: hcp.VerbClusterProbe})
	b.must(b.sim.Hang(context.Background(), "cluster", 0))
	t.Cleanup(func() { _, _ = b.sim.Release(context.Background(), "") })
	answered := make(chan hcp.Answer, 1)
	b.must(b.node.clusters.Tell(string(b.id), provider.Ask{Command: hcp.Command{Verb: hcp.VerbClusterProbe, Cluster: b.id},
		Reply: func(a hcp.Answer) { answered <- a }}))
	store.refuse(ofClusters)
	_, err := b.ask(hcp.Command{Verb: hcp.VerbClusterMaintenance, Enable: true})
	if !hcp.IsCode(err, hcp.CodeUnavailable) {
		t.Errorf("a change that cannot be stored: %v", err)
	}
	store.recover()
	b.eventually("the probe is answered", func() bool { return len(answered) > 0 })
	if a := <-answered; a.Fault == nil || a.Fault.Reason != "not_governed" {
		t.Errorf("the probe was answered %+v", a)
	}
}

func (b *bundle) reachable() bool {
	all, err := b.store.Reachability(context.Background())
	return err == nil && all[b.id].Reachable
}

func TestCommandsAreAnsweredWhileOutcomesCannotBeStored(t *testing.T) {
	// While a VM's actor tried to store what its work had come to, commands for it waited
	// until their callers gave up. The row was also read anew outside of the actor's turn.
	b := newBundle(t)
	store := &troubled{Store: b.store}
	b.wrap = store
	b.restart()
	b.must(b.sim.Delay(context.Background(), "clone", 200*time.Millisecond))
	a := b.create("web")
	store.refuse(func(c persistence.Commit) bool { return c.Actor.Kind == persistence.ActorVM })
	for range 3 {
		_, err := b.ask(hcp.Command{Verb: hcp.VerbRefresh, VM: a.VM})
		if hcp.AsError(err).Reason != "store_unavailable" {
			t.Errorf("a command while nothing can be stored: %v", err)
		}
	}
	store.recover()
	if job := b.final(a.Job); job.State != hcp.JobSucceeded {
		t.Errorf("%s; error %+v", stepsOf(job), job.Error)
	}
	b.balanced()
}
