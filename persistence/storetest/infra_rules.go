package storetest

import (
	"errors"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestObservedRowsAreReplacedJoinedAndDropped(t *testing.T) {
	w := s.world(t)
	a, b := w.vm(active), w.vm(active)
	w.must(w.insert(a))
	w.must(w.insert(b))
	obs := hcp.Observed{VM: a.ID, Cluster: clusterC, Power: hcp.PowerStopped, Host: "h1", VCPUs: 2, MemoryMiB: 512, DiskGiB: 10, Disks: 1,
		Addresses: []hcp.Address{{IP: "10.0.0.5", Source: "lease"}}, At: w.at(50)}
	w.check(w.store.PutObserved(w.ctx, []hcp.Observed{obs, {VM: b.ID, Cluster: clusterD, Power: hcp.PowerRunning, At: w.at(50)}}), "put")
	w.check(w.store.PutObserved(w.ctx, nil), "put nothing")
	w.same("joined", &obs, ok(w.store.GetVM(w.ctx, projectP, a.Name))(w).Observed)
	w.same("by ref", &obs, ok(w.store.VMByRef(w.ctx, clusterC, a.Ref.ID))(w).Observed)
	w.same("of the cluster", []hcp.Observed{obs}, ok(w.store.ListObserved(w.ctx, clusterC))(w))
	obs.Power, obs.Addresses, obs.At = hcp.PowerRunning, nil, w.at(60)
	w.check(w.store.PutObserved(w.ctx, []hcp.Observed{obs}), "put")
	w.same("replaced", []hcp.Observed{obs}, ok(w.store.ListObserved(w.ctx, clusterC))(w))
	w.must(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 1, DropObserved: []hcp.VMID{a.ID}})
	if k := ok(w.store.GetVM(w.ctx, projectP, a.Name))(w); k.Observed != nil {
		t.Errorf("dropped, and still there: %+v", k.Observed)
	}
	w.same("dropped", 0, len(ok(w.store.ListObserved(w.ctx, clusterC))(w)))
}

func (s *suite) TestAFenceHoldsOnlyWhileNothingMoved(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	turn := persistence.Turn{Job: "job_1", Step: "create", Attempt: 2}
	c := w.insert(v)
	w.must(c)
	cl := hcp.Cluster{ID: clusterC, Name: "c"}
	clusterActor := persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(clusterC)}
	w.must(persistence.Commit{Actor: clusterActor, Cluster: &cl})
	incarnation := ok(w.store.Join(w.ctx, persistence.Member{Node: "n1", Version: "v1", JoinedAt: w.at(0), RenewedAt: w.at(0)}))(w)
	good := persistence.Fence{Node: "n1", Incarnation: incarnation, Cluster: clusterC, ClusterEpoch: 1, VM: v.ID, VMEpoch: 1, Turn: turn}

	moved := func(what string, f persistence.Fence) {
		t.Helper()
		err := w.store.CheckFence(w.ctx, f)
		if r, is := persistence.RefusalOf(err); !is || r.Kind != persistence.RefusedFenced {
			t.Errorf("%s: got %v, want fenced", what, err)
		}
	}
	moved("no turn was journalled", good)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Turn: &turn})
	w.check(w.store.CheckFence(w.ctx, good), "the fence as it is")
	for what, change := range map[string]func(*persistence.Fence){
		"node": func(f *persistence.Fence) { f.Node = "n2" }, "incarnation": func(f *persistence.Fence) { f.Incarnation++ },
		"cluster": func(f *persistence.Fence) { f.Cluster = clusterD }, "cluster epoch": func(f *persistence.Fence) { f.ClusterEpoch++ },
		"VM": func(f *persistence.Fence) { f.VM = "vm_none" }, "VM epoch": func(f *persistence.Fence) { f.VMEpoch++ },
		"job": func(f *persistence.Fence) { f.Turn.Job = "job_2" }, "step": func(f *persistence.Fence) { f.Turn.Step = "start" },
		"attempt": func(f *persistence.Fence) { f.Turn.Attempt++ }, "zero turn": func(f *persistence.Fence) { f.Turn = persistence.Turn{} },
	} {
		f := good
		change(&f)
		moved(what, f)
	}
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 2, VM: &v}) // a turn that says nothing of the intent keeps it
	w.check(w.store.CheckFence(w.ctx, good), "after another turn")
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 3, VM: &v, Turn: &persistence.Turn{}})
	moved("the turn is over", good)
	none := good
	none.Turn = persistence.Turn{}
	moved("the zero turn permits nothing", none)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 4, Turn: &turn})
	w.check(w.store.CheckFence(w.ctx, good), "again")
	w.must(persistence.Commit{Actor: clusterActor, Epoch: 1, Seq: 1, Claim: true})
	moved("the cluster was claimed", good)
	good.ClusterEpoch = 2
	w.check(w.store.CheckFence(w.ctx, good), "the new owner")
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 5, Claim: true})
	moved("the VM was claimed", good)
	good.VMEpoch = 2
	w.check(w.store.CheckFence(w.ctx, good), "the new owner")
	w.check(w.store.Leave(w.ctx, "n1", incarnation), "leave")
	moved("the node left", good)
}

func (s *suite) TestAMembersIncarnationIsAboveEveryOneBefore(t *testing.T) {
	w := s.world(t)
	m := persistence.Member{Node: "n1", Version: "v1", PeerAddr: "10.0.0.1:1", JoinedAt: w.at(1), RenewedAt: w.at(1)}
	first := ok(w.store.Join(w.ctx, m))(w)
	w.check(w.store.Renew(w.ctx, "n1", first, w.at(2)), "renew")
	m.Version = "v2"
	again := ok(w.store.Join(w.ctx, m))(w)
	if again <= first {
		t.Fatalf("incarnation %d after %d", again, first)
	}
	fenced := func(what string, err error) {
		t.Helper()
		if r, is := persistence.RefusalOf(err); !is || r.Kind != persistence.RefusedFenced {
			t.Errorf("%s: got %v, want fenced", what, err)
		}
	}
	fenced("the old incarnation renews", w.store.Renew(w.ctx, "n1", first, w.at(3)))
	fenced("a stranger renews", w.store.Renew(w.ctx, "n9", 1, w.at(3)))
	w.check(w.store.Leave(w.ctx, "n1", first), "the old incarnation leaves")
	w.check(w.store.Renew(w.ctx, "n1", again, w.at(4)), "the new one is not touched by that")
	other := ok(w.store.Join(w.ctx, persistence.Member{Node: "n0", JoinedAt: w.at(5), RenewedAt: w.at(5)}))(w)
	m.Incarnation, m.RenewedAt = again, w.at(4)
	w.same("members", []persistence.Member{{Node: "n0", Incarnation: other, JoinedAt: w.at(5), RenewedAt: w.at(5)}, m}, ok(w.store.ListMembers(w.ctx))(w))
	w.check(w.store.Leave(w.ctx, "n1", again), "leave")
	fenced("gone", w.store.Renew(w.ctx, "n1", again, w.at(6)))
	m.Gone = true
	w.same("marked, not deleted", m, ok(w.store.ListMembers(w.ctx))(w)[1])
	if third := ok(w.store.Join(w.ctx, m))(w); third <= again {
		t.Errorf("incarnation %d after %d", third, again)
	}
	_, err := w.store.Join(w.ctx, persistence.Member{})
	if err == nil {
		t.Error("a member without a name joined")
	}
}

func (s *suite) TestTheGenerationStays(t *testing.T) {
	w := s.world(t)
	g := ok(w.store.Generation(w.ctx))(w)
	if g == "" {
		t.Fatal("no generation")
	}
	w.must(w.insert(w.vm()))
	w.same("generation", g, ok(w.store.Generation(w.ctx))(w))
	if other := ok(s.open(t).Generation(w.ctx))(w); other == g {
		t.Error("two stores have one generation")
	}
}

func (s *suite) TestNoReaderOfATenantShowsAnother(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	mine, other := w.create(w.vm(func(v *hcp.VM) { v.Name = "same" })), w.create(w.vm(func(v *hcp.VM) { v.Name, v.Project, v.Owner = "other", projectQ, "bob" }))
	w.must(mine)
	w.must(other)
	for len(ok(w.store.Publish(w.ctx, 100))(w)) > 0 {
	}
	o := other.VM
	for what, err := range map[string]error{
		"VM by id":   second(w.store.GetVM(w.ctx, projectP, string(o.ID))),
		"VM by name": second(w.store.GetVM(w.ctx, projectP, o.Name)),
		"job":        second(w.store.GetJob(w.ctx, projectP, other.Jobs[0].ID)),
	} {
		w.wantCode(err, hcp.CodeNotFound, what)
		if missing := second(w.store.GetVM(w.ctx, projectP, w.id(hcp.KindVM))); what != "job" && err.Error() != missing.Error() {
			t.Errorf("%s: a foreign VM reads %q, an unknown one %q", what, err, missing)
		}
	}
	unknown := second(w.store.GetJob(w.ctx, projectP, "job_none"))
	if foreign := second(w.store.GetJob(w.ctx, projectP, other.Jobs[0].ID)); foreign.Error() != unknown.Error() {
		t.Errorf("a foreign job reads %q, an unknown one %q", foreign, unknown)
	}
	w.check(second(w.store.GetVM(w.ctx, "", string(o.ID))), "an operator finds by id")
	w.wantCode(second(w.store.GetVM(w.ctx, "", o.Name)), hcp.CodeNotFound, "an operator finds by id alone")
	w.check(second(w.store.GetJob(w.ctx, "", other.Jobs[0].ID)), "an operator finds jobs")

	for _, k := range w.readAll(persistence.VMFilter{Project: projectP, WithDeleted: true}, 10) {
		w.same("VMs", projectP, k.VM.Project)
	}
	w.same("VMs by the other's name", 0, len(w.readAll(persistence.VMFilter{Project: projectP, Name: o.Name}, 10)))
	for _, j := range ok(w.store.ListJobs(w.ctx, persistence.JobFilter{Project: projectP, Page: page(10)}))(w) {
		w.same("jobs", projectP, j.Project)
	}
	w.same("jobs of the other's VM", 0, len(ok(w.store.ListJobs(w.ctx, persistence.JobFilter{Project: projectP, VM: o.ID, Page: page(10)}))(w)))
	events, _, err := w.store.EventsAfter(w.ctx, persistence.EventFilter{Project: projectP}, 0, 100)
	w.check(err, "events")
	w.same("events", 3, len(events))
	for _, e := range events {
		w.same("events", projectP, e.Project)
	}
	events, _, err = w.store.EventsAfter(w.ctx, persistence.EventFilter{Project: projectP, VM: o.ID}, 0, 100)
	if err != nil || len(events) != 0 {
		t.Errorf("%d events of the other's VM, %v", len(events), err)
	}
	for _, a := range ok(w.store.ListAudit(w.ctx, persistence.AuditFilter{Project: projectP, Page: page(10)}))(w) {
		w.same("audit", projectP, a.Project)
	}
	key := other.Key.IdempotencyKey
	key.Project = projectP
	w.wantCode(second(w.store.FindKey(w.ctx, key)), hcp.CodeNotFound, "key")
	w.same("drift", 0, len(ok(w.store.VerifyQuota(w.ctx, projectP))(w)))
}

func (s *suite) TestReadsHonourTheirContext(t *testing.T) {
	w := s.world(t)
	w.must(w.insert(w.vm()))
	ctx, cancel := contextWithCancel(w.ctx)
	cancel()
	for what, err := range map[string]error{
		"list":  second(w.store.ListVMs(ctx, persistence.VMFilter{Page: page(10)})),
		"load":  second(w.store.LoadVM(ctx, "vm_x")),
		"quota": second(w.store.Quota(ctx, hcp.SubjectsOf("o", "p", "u"))),
		"put":   w.store.PutReachability(ctx, clusterC, hcp.Reachability{}),
	} {
		if !hcp.IsCode(err, hcp.CodeUnavailable) || !errors.Is(err, ctx.Err()) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	w.check(second(w.store.ListVMs(w.ctx, persistence.VMFilter{Page: page(10)})), "the store is well")
}
