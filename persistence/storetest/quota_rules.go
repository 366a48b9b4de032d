package storetest

import (
	"sync"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func limit(scope hcp.QuotaScope, id string, r hcp.Resource, n int64) persistence.LimitChange {
	return persistence.LimitChange{Subject: hcp.QuotaSubject{Scope: scope, ID: id}, Resource: r, Limit: hcp.LimitOf(n)}
}

func (s *suite) TestAHoldCountsAgainstAllThreeCountersOrNone(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	for _, tight := range hcp.SubjectsOf(orgA, projectP, "alice") {
		for _, r := range hcp.QuotaResources() {
			w.must(persistence.Commit{Limits: []persistence.LimitChange{{Subject: tight, Resource: r, Limit: hcp.LimitOf(0)}}})
			ref := w.refused(w.create(w.vm()), persistence.RefusedQuota)
			if ref.Err.Code != hcp.CodeQuotaExceeded || ref.Err.Details["scope"] != string(tight.Scope) || ref.Err.Details["resource"] != string(r) {
				t.Errorf("limit on %s %s: %+v", tight.Scope, r, ref.Err)
			}
			w.used(w.vm(), 0, 0, 0)
			w.must(persistence.Commit{Limits: []persistence.LimitChange{{Subject: tight, Resource: r, Limit: hcp.NoLimit()}}})
		}
	}
	v := w.vm()
	w.must(w.create(v))
	w.used(v, 1, 2, 512)
	w.noDrift()
}

func (s *suite) TestParallelCreatesNeverExceedALimit(t *testing.T) {
	// Acceptance E03: of 200 at once under a limit of 10, exactly 10 are accepted.
	w := s.world(t)
	w.room(clusterC)
	w.must(persistence.Commit{Limits: []persistence.LimitChange{limit(hcp.QuotaProject, string(projectP), hcp.ResourceVMs, 10)}})
	var mu sync.Mutex
	accepted, refused := 0, 0
	var wg sync.WaitGroup
	for range 200 {
		c := w.create(w.vm())
		wg.Go(func() {
			err := w.store.Commit(w.ctx, c)
			r, is := persistence.RefusalOf(err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				accepted++
			case is && r.Kind == persistence.RefusedQuota:
				refused++
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if accepted != 10 || refused != 190 {
		t.Errorf("%d accepted and %d refused, want 10 and 190", accepted, refused)
	}
	w.used(w.vm(), 10, 20, 5120)
	w.noDrift()
}

func (s *suite) TestParallelClaimsNeverExceedACapacity(t *testing.T) {
	w := s.world(t)
	w.must(persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: clusterC, Limit: hcp.Sizes{VCPUs: 1000, MemoryMiB: 512 * 7, DiskGiB: 1000}}}})
	var commits []persistence.Commit
	for range 50 {
		commits = append(commits, w.create(w.vm()))
	}
	accepted := 0
	for _, err := range w.submitAll(commits) {
		if err == nil {
			accepted++
		} else if r, is := persistence.RefusalOf(err); !is || r.Kind != persistence.RefusedCapacity || r.Err.Code != hcp.CodeNoCapacity {
			t.Errorf("got %v", err)
		}
	}
	if accepted != 7 {
		t.Errorf("%d accepted, want 7", accepted)
	}
	w.same("claimed", persistence.Capacity{Limit: hcp.Sizes{VCPUs: 1000, MemoryMiB: 512 * 7, DiskGiB: 1000}, Claimed: hcp.Sizes{VCPUs: 14, MemoryMiB: 512 * 7, DiskGiB: 70}},
		ok(w.store.ClusterCapacity(w.ctx))(w)[clusterC])
	w.noDrift()
}

func (s *suite) TestWithoutACapacityRowNothingMayBeClaimed(t *testing.T) {
	w := s.world(t)
	w.refused(w.create(w.vm()), persistence.RefusedCapacity)
	w.room(clusterC)
	w.must(w.create(w.vm()))
}

func (s *suite) TestHoldingAgainIsNoChangeAndOtherAmountsReplace(t *testing.T) {
	w := s.world(t)
	w.room(clusterC, clusterD)
	v := w.vm()
	w.must(w.create(v))
	w.must(persistence.Commit{Limits: []persistence.LimitChange{limit(hcp.QuotaOrg, string(orgA), hcp.ResourceVMs, 1), limit(hcp.QuotaOrg, string(orgA), hcp.ResourceVCPUs, 4)}})
	seq := int64(1)
	turn := func(next hcp.VM, holds []persistence.QuotaChange, claims ...persistence.CapacityChange) persistence.Commit {
		return persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: seq, VM: &next, Holds: holds, Claims: claims}
	}
	w.must(turn(v, []persistence.QuotaChange{holdOf(v), holdOf(v)}, claimOf(v), claimOf(v))) // a replay, twice
	seq++
	w.used(v, 1, 2, 512)
	w.noDrift()

	grown := v
	grown.Flavor.VCPUs, grown.Flavor.MemoryMiB = 4, 256
	w.must(turn(grown, []persistence.QuotaChange{holdOf(grown)}, claimOf(grown)))
	seq++
	w.used(v, 1, 4, 256)
	w.same("claimed", hcp.Sizes{VCPUs: 4, MemoryMiB: 256, DiskGiB: 10}, ok(w.store.ClusterCapacity(w.ctx))(w)[clusterC].Claimed)
	w.noDrift()

	tooBig := grown
	tooBig.Flavor.VCPUs = 5
	w.refused(turn(tooBig, []persistence.QuotaChange{holdOf(tooBig)}), persistence.RefusedQuota)
	w.used(v, 1, 4, 256)

	moved := grown
	moved.Cluster = clusterD // placed again: one commit gives the old room back and takes the new
	old := claimOf(grown)
	old.Sizes = hcp.Sizes{}
	w.must(turn(moved, nil, old, claimOf(moved)))
	seq++
	capacity := ok(w.store.ClusterCapacity(w.ctx))(w)
	w.same("old cluster", hcp.Sizes{}, capacity[clusterC].Claimed)
	w.same("new cluster", grown.Flavor.Sizes(), capacity[clusterD].Claimed)
	w.noDrift()

	gone := moved
	gone.Lifecycle, gone.Activity = hcp.LifecycleDeleted, ""
	free := claimOf(moved)
	free.Sizes = hcp.Sizes{}
	w.must(turn(gone, []persistence.QuotaChange{releaseOf(v), releaseOf(v)}, free, free))
	seq++
	w.must(turn(gone, []persistence.QuotaChange{releaseOf(v)}, free)) // releasing nothing is no change
	w.used(v, 0, 0, 0)
	w.same("claimed", hcp.Sizes{}, ok(w.store.ClusterCapacity(w.ctx))(w)[clusterD].Claimed)
	w.noDrift()
}

func (s *suite) TestOneCommitMayUseWhatItReleases(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	w.must(persistence.Commit{Limits: []persistence.LimitChange{limit(hcp.QuotaProject, string(projectP), hcp.ResourceVMs, 1)}})
	a, b := w.vm(), w.vm()
	w.must(w.create(a))
	c := w.create(b)
	w.refused(c, persistence.RefusedQuota)
	c.Holds = append(c.Holds, releaseOf(a))
	w.must(c)
	w.used(b, 1, 2, 512)
}

func (s *suite) TestALimitBelowUseStopsGrowthAndNothingElse(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	a, b := w.vm(), w.vm()
	w.must(w.create(a))
	w.must(w.create(b))
	w.must(persistence.Commit{Limits: []persistence.LimitChange{limit(hcp.QuotaProject, string(projectP), hcp.ResourceVMs, 1), limit(hcp.QuotaProject, string(projectP), hcp.ResourceVCPUs, 1)}})
	w.must(persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: clusterC, Limit: hcp.Sizes{}}}})
	w.refused(w.create(w.vm()), persistence.RefusedQuota)
	smaller := a
	smaller.Flavor.VCPUs = 1
	w.must(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 1, VM: &smaller, Holds: []persistence.QuotaChange{holdOf(smaller)}, Claims: []persistence.CapacityChange{claimOf(smaller)}})
	w.used(a, 2, 3, 1024)
	use := ok(w.store.Quota(w.ctx, hcp.SubjectsOf(orgA, projectP, "alice")))(w)
	w.same("org limit", hcp.NoLimit(), use[0].Lines[0].Limit)
	w.same("project limit", hcp.LimitOf(1), use[1].Lines[0].Limit)
	w.noDrift()
}

func (s *suite) TestVerifyFindsWhatDrifted(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm()
	w.must(w.create(v))
	q := w.vm(func(v *hcp.VM) { v.Project, v.Owner = projectQ, "bob" })
	w.must(w.create(q))

	// A deleted VM that still holds.
	gone := v
	gone.Lifecycle, gone.Activity = hcp.LifecycleDeleted, ""
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, VM: &gone})
	drift := ok(w.store.VerifyQuota(w.ctx, projectP))(w)
	w.same("project and user, three resources each", 6, len(drift))
	for _, d := range drift {
		if d.Derived != 0 || d.Counter == 0 {
			t.Errorf("%+v", d)
		}
	}
	w.same("another project sees nothing of it", 0, len(ok(w.store.VerifyQuota(w.ctx, projectQ))(w)))
	w.same("everything", 9, len(ok(w.store.VerifyQuota(w.ctx, ""))(w)))
	capacity := ok(w.store.VerifyCapacity(w.ctx))(w)
	w.same("capacity", 3, len(capacity))
	for _, d := range capacity {
		if d.Subject.ID != string(clusterC) || d.Counter != 2*d.Derived {
			t.Errorf("%+v", d)
		}
	}
	// A living VM that does not hold.
	w.must(w.insert(w.vm(func(v *hcp.VM) { v.Project = projectQ })))
	if d := ok(w.store.VerifyQuota(w.ctx, projectQ))(w); len(d) == 0 {
		t.Error("a VM without its hold was not found")
	}
}

func (s *suite) TestAFailedVMHoldsWhileSomethingOfItIsLeft(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm(func(v *hcp.VM) { v.Holding = true })
	w.must(w.create(v))
	seq := int64(1)
	turn := func(v hcp.VM, release bool) {
		t.Helper()
		c := persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: seq, VM: &v}
		if release {
			c.Holds, c.Claims = []persistence.QuotaChange{releaseOf(v)}, []persistence.CapacityChange{{Cluster: v.Cluster, VM: v.ID}}
		}
		w.must(c)
		seq++
	}
	failed := v
	failed.Lifecycle, failed.Activity = hcp.LifecycleError, ""
	for _, left := range []func(*hcp.VM){
		func(v *hcp.VM) {
			v.Conditions = []hcp.Condition{{Type: "residue", Reason: "undo_failed", Message: "a disk is left"}}
		},
		func(v *hcp.VM) { v.Ref = &hcp.ProviderRef{ID: "1"} }, func(v *hcp.VM) { v.CreateIntent = true },
	} {
		withResidue := failed
		left(&withResidue)
		turn(withResidue, false)
		w.noDrift() // it holds, and must
	}
	turn(failed, false)
	if d := ok(w.store.VerifyQuota(w.ctx, ""))(w); len(d) == 0 {
		t.Error("a failed VM with nothing left holds, and that is no drift")
	}
	failed.Holding = false
	turn(failed, true)
	w.noDrift()
	deleting := failed // what a failed create gave back is not taken again for the delete
	deleting.Lifecycle = hcp.LifecycleDeleting
	turn(deleting, false)
	w.noDrift()
	w.used(v, 0, 0, 0)
}

func (s *suite) TestAVMHoldsUntilItsDeleteIsDone(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm(func(v *hcp.VM) { v.Holding = true })
	w.must(w.create(v))
	v.Lifecycle = hcp.LifecycleDeleting
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, VM: &v})
	w.used(v, 1, 2, 512)
	w.noDrift()
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 2, Holds: []persistence.QuotaChange{releaseOf(v)}})
	if d := ok(w.store.VerifyQuota(w.ctx, ""))(w); len(d) == 0 {
		t.Error("a VM that is still there gave its hold back, and that is no drift")
	}
}
