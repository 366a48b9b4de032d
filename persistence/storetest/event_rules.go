package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestPositionsAreGapFreeAndKeepEachActorsOrder(t *testing.T) {
	w := s.world(t)
	const actors, turns = 20, 15
	var wg sync.WaitGroup
	for range actors {
		v := w.vm()
		wg.Go(func() {
			for seq := range int64(turns) {
				c := persistence.Commit{Actor: vmActor(v.ID), Seq: seq, VM: &v, Events: []hcp.Event{w.event(v, hcp.EventResourceUpdated), w.event(v, hcp.EventJobProgress)}}
				if seq > 0 {
					c.Epoch = 1
				}
				if err := w.store.Commit(w.ctx, c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() { wg.Wait(); close(stop) }()
	var published []hcp.Event
	for done := false; ; {
		select {
		case <-stop:
			done = true
		default:
		}
		events := ok(w.store.Publish(w.ctx, 7))(w)
		published = append(published, events...)
		if done && len(events) == 0 {
			break
		}
	}
	if len(published) != actors*turns*2 {
		t.Fatalf("%d events published, want %d", len(published), actors*turns*2)
	}
	last := map[hcp.VMID]int64{}
	for i, e := range published {
		if e.Pos != int64(i+1) {
			t.Fatalf("event %d has position %d", i, e.Pos)
		}
		if e.Seq != last[e.VM]+1 {
			t.Fatalf("seq %d of %s follows %d", e.Seq, e.VM, last[e.VM])
		}
		last[e.VM] = e.Seq
	}
	read, searched, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{}, 0, 10000)
	w.check(err, "read")
	w.same("read back", published, read)
	w.same("searched", int64(len(published)), searched)
	w.same("last", int64(len(published)), ok(w.store.LastPosition(w.ctx))(w))
	w.same("first", int64(1), ok(w.store.FirstPosition(w.ctx))(w))
}

func (s *suite) TestPublishingNothingCostsNoFlush(t *testing.T) {
	w := s.world(t)
	w.must(w.insert(w.vm()))
	before := w.store.Stats()
	for range 10 {
		w.same("events", 0, len(ok(w.store.Publish(w.ctx, 100))(w)))
	}
	w.same("stats", before, w.store.Stats())
}

func (s *suite) TestAReaderResumesWhereItsSearchEnded(t *testing.T) {
	w := s.world(t)
	v, q := w.vm(), w.vm(func(v *hcp.VM) { v.Project = projectQ })
	c := w.insert(v)
	for i := range 6000 { // more than one search window of a stranger's events
		if i < 3000 {
			c.Events = append(c.Events, w.event(v, hcp.EventJobProgress))
		}
	}
	w.must(c)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Events: c.Events})
	cq := w.insert(q)
	cq.Events = []hcp.Event{w.event(q, hcp.EventResourceCreated), w.event(q, hcp.EventJobQueued)}
	w.must(cq)
	for len(ok(w.store.Publish(w.ctx, 1000))(w)) > 0 {
	}
	var got []hcp.Event
	pos := int64(0)
	for range 10 {
		events, searched, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{Project: projectQ}, pos, 1)
		w.check(err, "read")
		got = append(got, events...)
		if searched == pos {
			break
		}
		if len(events) == 1 && searched != events[0].Pos {
			t.Fatalf("a full page was searched to %d, its last event is at %d", searched, events[0].Pos)
		}
		pos = searched
	}
	if len(got) != 2 || got[0].Type != hcp.EventResourceCreated || got[1].Type != hcp.EventJobQueued || pos != 6002 {
		t.Errorf("got %d events, ended at %d", len(got), pos)
	}
	for _, f := range []struct {
		filter persistence.EventFilter
		want   int
	}{{persistence.EventFilter{VM: q.ID}, 2}, {persistence.EventFilter{Types: []hcp.EventType{hcp.EventJobQueued, hcp.EventJobFailed}}, 1}, {persistence.EventFilter{Project: projectQ, Types: []hcp.EventType{hcp.EventJobFailed}}, 0}} {
		events, _, err := w.store.EventsAfter(w.ctx, f.filter, 6000, 10)
		w.check(err, "read")
		w.same("filtered", f.want, len(events))
	}
	events, searched, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{}, 6002, 10)
	if err != nil || len(events) != 0 || searched != 6002 {
		t.Errorf("at the end: %d events, searched %d, %v", len(events), searched, err)
	}
}

func (s *suite) TestUnpublishedEventsAreNotReadByPosition(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	c := w.insert(v)
	c.Events = []hcp.Event{w.event(v, hcp.EventResourceCreated)}
	w.must(c)
	events, searched, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{}, 0, 10)
	if err != nil || len(events) != 0 || searched != 0 {
		t.Errorf("%d events, searched %d, %v", len(events), searched, err)
	}
	w.same("history", 1, len(ok(w.store.VMHistory(w.ctx, v.ID, 0, 10))(w)))
}

func (s *suite) TestHistoryIsReadBackwardsPageByPage(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	c := w.insert(v)
	for range 5 {
		c.Events = append(c.Events, w.event(v, hcp.EventJobProgress))
	}
	w.must(c)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Claim: true, Events: []hcp.Event{w.event(v, hcp.EventVMStarted), w.event(v, hcp.EventVMStopped)}})
	var seqs []int64
	before := int64(0)
	for {
		events := ok(w.store.VMHistory(w.ctx, v.ID, before, 2))(w)
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
		before = seqs[len(seqs)-1]
	}
	w.same("seqs", []int64{7, 6, 5, 4, 3, 2, 1}, seqs)
	w.same("another VM", 0, len(ok(w.store.VMHistory(w.ctx, "vm_none", 0, 10))(w)))
}

func (s *suite) TestEventsOfNobodyAndOfClustersArePublishedToo(t *testing.T) {
	w := s.world(t)
	cl := hcp.Cluster{ID: clusterC, Name: "c"}
	w.must(persistence.Commit{Events: []hcp.Event{{ID: "evt_1", Type: hcp.EventSecurityAlert, Time: w.at(1)}, {ID: "evt_2", Type: hcp.EventQuotaExceeded, Time: w.at(1), Project: projectP}}})
	w.must(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(clusterC)}, Cluster: &cl, Events: []hcp.Event{{ID: "evt_3", Type: hcp.EventClusterUp, Time: w.at(1)}}})
	w.must(persistence.Commit{Events: []hcp.Event{{ID: "evt_4", Type: hcp.EventSecurityAlert, Time: w.at(1)}}})
	var ids []hcp.EventID
	for _, e := range ok(w.store.Publish(w.ctx, 100))(w) {
		ids = append(ids, e.ID)
	}
	w.same("events", []hcp.EventID{"evt_1", "evt_2", "evt_3", "evt_4"}, ids)
	events, _, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{Project: projectP}, 0, 100)
	if err != nil || len(events) != 1 || events[0].ID != "evt_2" {
		t.Errorf("a tenant sees %v, %v", events, err)
	}
}

func (s *suite) TestPurgingEventsExpiresCursorsAndTouchesNoState(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	c := w.create(v)
	c.Holds, c.Claims, c.Events = nil, nil, nil
	for i := range 20 {
		e := w.event(v, hcp.EventJobProgress)
		e.Time = w.at(i)
		if i == 12 {
			e.Time = w.at(1) // a clock that jumped: what follows an event that is kept is kept
		}
		c.Events = append(c.Events, e)
	}
	w.must(c)
	for len(ok(w.store.Publish(w.ctx, 15))(w)) == 15 {
	}
	v2 := w.vm()
	c2 := w.insert(v2)
	c2.Events = []hcp.Event{w.event(v2, hcp.EventResourceCreated)} // old, and not published
	w.must(c2)
	before, beforeVM := ok(w.store.LoadVM(w.ctx, v.ID))(w), ok(w.store.GetVM(w.ctx, projectP, v.Name))(w)
	w.same("dropped", int64(10), ok(w.store.PurgeEvents(w.ctx, w.at(10)))(w))
	w.same("VM state", before, ok(w.store.LoadVM(w.ctx, v.ID))(w))
	w.same("VM", beforeVM, ok(w.store.GetVM(w.ctx, projectP, v.Name))(w))
	w.same("first", int64(11), ok(w.store.FirstPosition(w.ctx))(w))
	for _, pos := range []int64{0, 5, 9} {
		_, _, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{}, pos, 10)
		w.wantCode(err, hcp.CodeCursorExpired, "an old cursor")
	}
	events, _, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{}, 10, 100)
	if err != nil || len(events) != 10 || events[0].Pos != 11 {
		t.Errorf("%d events, %v", len(events), err)
	}
	w.same("all", int64(10), ok(w.store.PurgeEvents(w.ctx, w.at(1<<20)))(w))
	w.same("first of none", int64(21), ok(w.store.FirstPosition(w.ctx))(w))
	w.same("last of none", int64(20), ok(w.store.LastPosition(w.ctx))(w))
	events = ok(w.store.Publish(w.ctx, 10))(w)
	if len(events) != 1 || events[0].Pos != 21 {
		t.Errorf("the unpublished event was purged, or its position is wrong: %+v", events)
	}
	// Numbers go on after a purge: the next turn's events are new rows.
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Events: []hcp.Event{w.event(v, hcp.EventVMStarted)}})
	if h := ok(w.store.VMHistory(w.ctx, v.ID, 0, 10))(w); len(h) != 1 || h[0].Seq != 21 {
		t.Errorf("history after a purge: %+v", h)
	}
}

func (s *suite) TestAuditRowsAreFilteredAndPaged(t *testing.T) {
	w := s.world(t)
	var rows []hcp.AuditRecord
	kinds := []hcp.AuditKind{hcp.AuditCall, hcp.AuditJobStarted, hcp.AuditJobFailed}
	for i := range 60 {
		rows = append(rows, hcp.AuditRecord{ID: hcp.AuditID(w.id(hcp.KindAudit)), Kind: kinds[i%3], Time: w.at(i / 7), Actor: []string{"alice", "bob"}[i%2],
			Action: []string{"vm.create", "vm.delete"}[i/2%2], Project: []hcp.ProjectID{projectP, projectQ, ""}[i%3], Result: "ok", Status: 200,
			RequestID: hcp.RequestID([]string{"r1", "r2", "r3", "r4"}[i%4]), Source: "10.0.0.1", Path: "/x"})
	}
	w.must(persistence.Commit{Audit: rows[:30]})
	w.must(persistence.Commit{Audit: rows[30:]})
	for _, f := range []persistence.AuditFilter{{}, {Project: projectQ}, {Actor: "bob"}, {Action: "vm.delete"}, {Kind: hcp.AuditCall}, {RequestID: "r3"},
		{Project: projectP, Actor: "alice", Action: "vm.create"}} {
		want := 0
		for _, a := range rows {
			if (f.Project == "" || f.Project == a.Project) && (f.Actor == "" || f.Actor == a.Actor) && (f.Action == "" || f.Action == a.Action) &&
				(f.Kind == "" || f.Kind == a.Kind) && (f.RequestID == "" || f.RequestID == a.RequestID) {
				want++
			}
		}
		got := map[hcp.AuditID]bool{}
		last := hcp.AuditRecord{Time: time.Unix(1<<40, 0), ID: "z"}
		f.Page = page(4)
		for {
			items := ok(w.store.ListAudit(w.ctx, f))(w)
			for _, a := range items {
				if a.Time.After(last.Time) || a.Time.Equal(last.Time) && a.ID >= last.ID {
					t.Fatalf("%+v: out of order", f)
				}
				got[a.ID], last = true, a
			}
			if len(items) < 4 {
				break
			}
			f.Page.After = &persistence.Position{CreatedAt: last.Time, ID: string(last.ID)}
		}
		if len(got) != want {
			t.Errorf("%+v: %d rows, want %d", f, len(got), want)
		}
	}
	w.same("whole", rows[59], ok(w.store.ListAudit(w.ctx, persistence.AuditFilter{Page: page(1)}))(w)[0])
}
