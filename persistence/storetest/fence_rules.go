package storetest

import (
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestAVMExistsOnlyFromItsCreateCommit(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	w.refused(persistence.Commit{Actor: vmActor(v.ID), VM: &v, Epoch: 1, Seq: 1}, persistence.RefusedFenced)
	w.refused(persistence.Commit{Actor: vmActor(v.ID), VM: &v, Epoch: 0, Seq: 1}, persistence.RefusedFenced)
	_, err := w.store.LoadVM(w.ctx, v.ID)
	w.wantCode(err, hcp.CodeNotFound, "load")
	w.must(w.insert(v))
	w.refused(w.insert(v), persistence.RefusedFenced)
}

func (s *suite) TestACommitIsFencedOnEpochAndOnSeq(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	w.must(w.insert(v))
	for _, at := range [][2]int64{{1, 0}, {1, 2}, {2, 1}, {0, 1}, {1, 99}, {99, 1}} {
		v.Description = "changed"
		w.refused(persistence.Commit{Actor: vmActor(v.ID), Epoch: at[0], Seq: at[1], VM: &v}, persistence.RefusedFenced)
	}
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, VM: &v})
	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if st.Epoch != 1 || st.Seq != 2 || st.VM.Description != "changed" {
		t.Errorf("got epoch %d seq %d %q", st.Epoch, st.Seq, st.VM.Description)
	}
}

func (s *suite) TestAClaimFencesEveryOlderActivation(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	w.must(w.insert(v))
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Claim: true})
	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if st.Epoch != 2 || st.Seq != 2 {
		t.Fatalf("epoch %d seq %d after the claim, want 2 and 2", st.Epoch, st.Seq)
	}
	w.refused(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 2}, persistence.RefusedFenced)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 2, Seq: 2})
	// Two activations that read the same row race for it: one wins.
	var won, lost int
	for range 2 {
		err := w.store.Commit(w.ctx, persistence.Commit{Actor: vmActor(v.ID), Epoch: 2, Seq: 3, Claim: true})
		if r, is := persistence.RefusalOf(err); is && r.Kind == persistence.RefusedFenced {
			lost++
		} else if err == nil {
			won++
		}
	}
	if won != 1 || lost != 1 {
		t.Errorf("%d won and %d lost", won, lost)
	}
}

func (s *suite) TestAClusterIsFencedLikeAVM(t *testing.T) {
	w := s.world(t)
	c := hcp.Cluster{ID: clusterC, Name: "one", Driver: "sim", Options: map[string]string{"a": "b"}, CreatedAt: w.at(0)}
	actor := persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(c.ID)}
	w.must(persistence.Commit{Actor: actor, Cluster: &c, Events: []hcp.Event{{ID: "evt_1", Type: hcp.EventClusterChanged, Time: w.at(1)}}})
	w.refused(persistence.Commit{Actor: actor, Cluster: &c}, persistence.RefusedFenced)
	w.must(persistence.Commit{Actor: actor, Epoch: 1, Seq: 1, Claim: true})
	w.refused(persistence.Commit{Actor: actor, Epoch: 1, Seq: 2, Cluster: &c}, persistence.RefusedFenced)
	c.Maintenance = true
	w.must(persistence.Commit{Actor: actor, Epoch: 2, Seq: 2, Cluster: &c})
	w.same("cluster", persistence.ClusterState{Cluster: c, Epoch: 2, Seq: 3}, ok(w.store.LoadCluster(w.ctx, "one"))(w))
	w.same("by id", persistence.ClusterState{Cluster: c, Epoch: 2, Seq: 3}, ok(w.store.LoadCluster(w.ctx, string(c.ID)))(w))

	other := hcp.Cluster{ID: clusterD, Name: "one", Driver: "sim"}
	w.refused(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(other.ID)}, Cluster: &other}, persistence.RefusedName)
	c.Deleted = true
	w.must(persistence.Commit{Actor: actor, Epoch: 2, Seq: 3, Cluster: &c})
	if left := ok(w.store.ListClusters(w.ctx))(w); len(left) != 0 {
		t.Errorf("a deleted cluster is listed: %v", left)
	}
	w.must(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(other.ID)}, Cluster: &other})
	w.same("the name is free", clusterD, ok(w.store.LoadCluster(w.ctx, "one"))(w).Cluster.ID)
	_, err := w.store.LoadCluster(w.ctx, "none")
	w.wantCode(err, hcp.CodeNotFound, "load")
}
