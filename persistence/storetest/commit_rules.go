package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestACreateCommitIsReadBackWhole(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm(func(v *hcp.VM) {
		v.Labels = map[string]string{"tier": "web", "env": "prod"}
		v.UserData, v.SSHKeys, v.Networks = hcp.Sealed{1, 2, 0}, []string{"ssh-ed25519 A"}, []string{"n"}
		v.Conditions = []hcp.Condition{{Type: "x", Reason: "y", Message: "z", Since: w.at(3)}}
	})
	c := w.create(v)
	w.must(c)

	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if st.Epoch != 1 || st.Seq != 1 || st.Last != nil {
		t.Errorf("epoch %d seq %d last %v, want 1, 1 and none", st.Epoch, st.Seq, st.Last)
	}
	w.same("VM", v, st.VM)
	w.same("jobs", c.Jobs, st.Jobs)
	w.same("job", c.Jobs[0], ok(w.store.GetJob(w.ctx, projectP, c.Jobs[0].ID))(w))
	w.same("known", hcp.Known{VM: v}, ok(w.store.GetVM(w.ctx, projectP, string(v.ID)))(w))
	w.same("known by name", hcp.Known{VM: v}, ok(w.store.GetVM(w.ctx, projectP, v.Name))(w))
	w.same("key", *c.Key, ok(w.store.FindKey(w.ctx, c.Key.IdempotencyKey))(w))
	w.same("audit", c.Audit, ok(w.store.ListAudit(w.ctx, persistence.AuditFilter{Page: page(10)}))(w))
	history := ok(w.store.VMHistory(w.ctx, v.ID, 0, 10))(w)
	for i, e := range c.Events {
		e.Seq = int64(i + 1)
		w.same("event", e, history[len(history)-1-i])
	}
	w.same("capacity", v.Flavor.Sizes(), ok(w.store.ClusterCapacity(w.ctx))(w)[clusterC].Claimed)
	w.used(v, 1, 2, 512)
	w.noDrift()
}

func (w *world) same(what string, want, got any) {
	w.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// everyRefusal makes, for each kind, a commit that is refused for that reason
// alone and carries everything a commit can carry.
func (w *world) everyRefusal() map[persistence.RefusalKind]persistence.Commit {
	w.t.Helper()
	taken := w.vm(func(v *hcp.VM) { v.Name, v.Ref = "taken", &hcp.ProviderRef{ID: "100"} })
	first := w.create(taken)
	first.Records = []persistence.RecordChange{{Record: persistence.Record{Kind: persistence.RecordFlavor, ID: "f1", Name: "small", Body: []byte("{}")}}}
	first.Limits = []persistence.LimitChange{{Subject: hcp.QuotaSubject{Scope: hcp.QuotaUser, ID: string(projectP) + "/alice"}, Resource: hcp.ResourceVMs, Limit: hcp.LimitOf(2)}}
	w.must(first)
	full := func() persistence.Commit {
		c := w.create(w.vm())
		c.Records = []persistence.RecordChange{{Record: persistence.Record{Kind: persistence.RecordFlavor, ID: "f2", Name: "large", Body: []byte("{}")}}}
		c.Secrets = []persistence.SecretChange{{Name: "s", Sealed: hcp.Sealed{1}}}
		c.Limits = []persistence.LimitChange{{Subject: hcp.QuotaSubject{Scope: hcp.QuotaOrg, ID: string(orgA)}, Resource: hcp.ResourceVMs, Limit: hcp.LimitOf(50)}}
		c.Capacity = []persistence.CapacityLimit{{Cluster: clusterC, Limit: hcp.Sizes{VCPUs: 1 << 30, MemoryMiB: 1 << 30, DiskGiB: 1 << 30}}}
		return c
	}
	out := map[persistence.RefusalKind]persistence.Commit{}
	c := full()
	c.Epoch, c.Seq = 1, 1
	out[persistence.RefusedFenced] = c
	c = full()
	key := *first.Key
	c.Key = &key
	out[persistence.RefusedKey] = c
	c = full()
	c.VM.Name = "taken"
	out[persistence.RefusedName] = c
	c = full()
	c.VM.Ref = &hcp.ProviderRef{ID: "100"}
	out[persistence.RefusedRef] = c
	c = full()
	c.Records = append(c.Records, persistence.RecordChange{Record: persistence.Record{Kind: persistence.RecordFlavor, ID: "f1", Name: "small2", Version: 7}})
	out[persistence.RefusedVersion] = c
	c = full()
	c.VM.Owner = "alice"
	c.Limits = append(c.Limits, persistence.LimitChange{Subject: hcp.QuotaSubject{Scope: hcp.QuotaUser, ID: string(projectP) + "/alice"}, Resource: hcp.ResourceVMs, Limit: hcp.LimitOf(1)})
	out[persistence.RefusedQuota] = c
	c = full()
	c.Claims = append(c.Claims, persistence.CapacityChange{Cluster: clusterD, VM: c.VM.ID, Sizes: hcp.Sizes{VCPUs: 1}})
	out[persistence.RefusedCapacity] = c
	return out
}

func (s *suite) TestARefusedCommitLeavesNothingAtAll(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	cases := w.everyRefusal()
	for kind, c := range cases {
		before := w.contents(c.VM.ID)
		w.refused(c, kind)
		w.same(string(kind), before, w.contents(c.VM.ID))
		if kind != persistence.RefusedKey {
			_, err := w.store.FindKey(w.ctx, c.Key.IdempotencyKey)
			w.wantCode(err, hcp.CodeNotFound, string(kind)+": the key")
		}
	}
	if n := w.store.Stats().Refusals; n != int64(len(cases)) {
		t.Errorf("%d refusals counted, want %d", n, len(cases))
	}
	w.noDrift()
}

func (s *suite) TestARefusedMemberNeverFailsItsNeighbours(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	w.must(persistence.Commit{Limits: []persistence.LimitChange{{Subject: hcp.QuotaSubject{Scope: hcp.QuotaUser, ID: string(projectP) + "/bob"}, Resource: hcp.ResourceVMs, Limit: hcp.LimitOf(0)}}})
	var commits []persistence.Commit
	wantRefused := map[int]bool{}
	for i := range 300 {
		v := w.vm(func(v *hcp.VM) {
			if i%3 == 1 {
				v.Owner = "bob"
			}
		})
		c := w.create(v)
		if i%3 == 1 {
			wantRefused[i] = true
		}
		commits = append(commits, c)
	}
	results := w.submitAll(commits)
	for i, err := range results {
		_, refused := persistence.RefusalOf(err)
		if wantRefused[i] != refused || !refused && err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
	}
	stats := w.store.Stats()
	if stats.Groups >= stats.Commits {
		t.Errorf("%d commits took %d transactions: nothing was grouped", stats.Commits, stats.Groups)
	}
	w.noDrift()
}

// submitAll submits at once and waits for all, in the order of the commits.
func (w *world) submitAll(commits []persistence.Commit) []error {
	results := make([]error, len(commits))
	var wg sync.WaitGroup
	for i, c := range commits {
		wg.Add(1)
		w.store.Submit(c, func(err error) { results[i] = err; wg.Done() })
	}
	wg.Wait()
	return results
}

func (s *suite) TestATroubledMemberNeverFailsItsNeighbours(t *testing.T) {
	// A member that breaks the contract in a way only the engine notices (a job id
	// that another VM has) must not take its whole group along.
	w := s.world(t)
	w.room(clusterC)
	first := w.create(w.vm())
	w.must(first)
	var commits []persistence.Commit
	for i := range 40 {
		c := w.create(w.vm())
		if i == 20 {
			c.Jobs[0].ID = first.Jobs[0].ID
		}
		commits = append(commits, c)
	}
	for i, err := range w.submitAll(commits) {
		if (i == 20) != (err != nil) {
			t.Errorf("member %d: %v", i, err)
		}
	}
	_, err := w.store.LoadVM(w.ctx, commits[20].VM.ID)
	w.wantCode(err, hcp.CodeNotFound, "the troubled member")
	w.same("the stranger's job", first.Jobs[0], ok(w.store.GetJob(w.ctx, "", first.Jobs[0].ID))(w))
	w.noDrift()
}

func (s *suite) TestCommitsOfOneActorAreAppliedInTheOrderOfSubmission(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	commits := []persistence.Commit{w.insert(v)}
	for seq := range int64(200) {
		next := v.Clone()
		next.Generation = seq + 2
		commits = append(commits, persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: seq + 1, VM: &next, Events: []hcp.Event{w.event(v, hcp.EventResourceUpdated)}})
	}
	for i, err := range w.submitAll(commits) {
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if st.Seq != 201 || st.VM.Generation != 201 {
		t.Errorf("seq %d generation %d, want 201 both", st.Seq, st.VM.Generation)
	}
}

func (s *suite) TestAMalformedCommitIsAnErrorAndChangesNothing(t *testing.T) {
	w := s.world(t)
	a, b := w.vm(), w.vm()
	w.must(w.insert(a))
	w.must(w.insert(b))
	moved := a.Clone()
	moved.Project = projectQ
	before := w.contents(a.ID, b.ID)
	for name, c := range map[string]persistence.Commit{
		"no VM in an insert":   {Actor: vmActor("vm_x")},
		"another VM":           {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, VM: &b},
		"another VM's job":     {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, Jobs: []hcp.Job{w.job(b, hcp.JobStart, 1)}},
		"a VM without actor":   {VM: &a},
		"no id":                {Actor: persistence.ActorRef{Kind: persistence.ActorVM}, VM: &hcp.VM{}},
		"an unknown actor":     {Actor: persistence.ActorRef{Kind: "x", ID: "y"}},
		"a negative amount":    {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, Holds: []persistence.QuotaChange{{VM: a.ID, Subjects: hcp.SubjectsOf("o", "p", "u"), Amounts: map[hcp.Resource]int64{hcp.ResourceVMs: -1}}}},
		"one scope twice":      {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, Holds: []persistence.QuotaChange{{VM: a.ID, Subjects: []hcp.QuotaSubject{{Scope: hcp.QuotaOrg, ID: "a"}, {Scope: hcp.QuotaOrg, ID: "b"}}, Amounts: map[hcp.Resource]int64{hcp.ResourceVMs: 1}}}},
		"a negative claim":     {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, Claims: []persistence.CapacityChange{{Cluster: clusterC, VM: a.ID, Sizes: hcp.Sizes{VCPUs: 1, DiskGiB: -1}}}},
		"a VM that moves away": {Actor: vmActor(a.ID), Epoch: 1, Seq: 1, VM: &moved},
	} {
		err := w.store.Commit(w.ctx, c)
		if _, refused := persistence.RefusalOf(err); err == nil || refused || hcp.CodeOf(err) != hcp.CodeInternal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	w.same("contents", before, w.contents(a.ID, b.ID))
}

func (s *suite) TestDoneIsNeverCalledOnTheCallersStack(t *testing.T) {
	// An actor that submits under its own lock, and takes it in done, must not hang.
	w := s.world(t)
	v := w.vm()
	submit := func(c persistence.Commit) error {
		var mu sync.Mutex
		result := make(chan error, 1)
		mu.Lock()
		w.store.Submit(c, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			result <- err
		})
		mu.Unlock()
		return <-result
	}
	w.check(submit(w.insert(v)), "a good commit")
	if err := submit(persistence.Commit{VM: &v}); !hcp.IsCode(err, hcp.CodeInternal) {
		t.Errorf("a malformed commit: %v", err)
	}
	w.check(w.store.Close(), "close")
	if err := submit(w.insert(w.vm())); !errors.Is(err, persistence.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

func (s *suite) TestAnyTextIsKeptAsItIs(t *testing.T) {
	w := s.world(t)
	for _, text := range []string{"", " ", "a'b\"c", "100% _ \\", "naïve ☃ 🚀", "Ü", "u\u0308", "$1 ?1 :x @x", "line\nbreak\ttab"} {
		v := w.vm(func(v *hcp.VM) {
			v.Name, v.Owner, v.Description = text+string(v.ID), text, text
			v.Labels = map[string]string{"k" + text: text}
		})
		c := w.create(v)
		c.Claims = nil
		c.Key.Key, c.Key.Body = text+"key", []byte(text)
		w.must(c)
		w.same("by name", v, ok(w.store.GetVM(w.ctx, projectP, v.Name))(w).VM)
		w.same("by label", 1, len(w.readAll(persistence.VMFilter{Labels: v.Labels}, 10)))
		w.same("key", text, string(ok(w.store.FindKey(w.ctx, c.Key.IdempotencyKey))(w).Body))
	}
	w.same("drift", 0, len(ok(w.store.VerifyQuota(w.ctx, ""))(w)))
}

func (s *suite) TestACommitIsNotTouchedByLaterChangesOfItsCaller(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm(func(v *hcp.VM) { v.Labels = map[string]string{"a": "1"} })
	want := v.Clone()
	c := w.create(v)
	c.VM = &v
	done := make(chan error, 1)
	w.store.Submit(c, func(err error) { done <- err })
	v.Name, v.Lifecycle, c.Key.Key, c.Jobs[0].State = "changed", hcp.LifecycleError, "changed", hcp.JobFailed
	w.check(<-done, "commit")
	w.same("VM", want, ok(w.store.GetVM(w.ctx, projectP, string(v.ID)))(w).VM)
	if st := ok(w.store.LoadVM(w.ctx, v.ID))(w); len(st.Jobs) != 1 || st.Jobs[0].State != hcp.JobQueued {
		t.Errorf("jobs %+v", st.Jobs)
	}
}

func (s *suite) TestACancelledWaitIsAnUnknownOutcomeOrNothing(t *testing.T) {
	w := s.world(t)
	ctx, cancel := contextWithCancel(w.ctx)
	cancel()
	v := w.vm()
	err := w.store.Commit(ctx, w.insert(v))
	_, loadErr := w.store.LoadVM(w.ctx, v.ID)
	switch {
	case errors.Is(err, persistence.ErrUnknownOutcome):
	case err == nil:
		w.check(loadErr, "an acknowledged commit")
	case hcp.IsCode(err, hcp.CodeUnavailable):
		w.wantCode(loadErr, hcp.CodeNotFound, "a commit that was not submitted")
	default:
		t.Errorf("got %v", err)
	}
}

func (s *suite) TestCloseDrainsWhatWasSubmittedAndThenRefuses(t *testing.T) {
	w := s.world(t)
	var mu sync.Mutex
	results := map[hcp.VMID]error{}
	var wg sync.WaitGroup
	for range 100 {
		v := w.vm()
		wg.Add(1)
		w.store.Submit(w.insert(v), func(err error) {
			mu.Lock()
			defer mu.Unlock()
			results[v.ID] = err
			wg.Done()
		})
	}
	w.check(w.store.Close(), "close")
	wg.Wait()
	for id, err := range results {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	called := make(chan error, 1)
	w.store.Submit(w.insert(w.vm()), func(err error) { called <- err })
	for name, err := range map[string]error{
		"submit": <-called,
		"commit": w.store.Commit(w.ctx, w.insert(w.vm())),
		"get":    second(w.store.GetVM(w.ctx, projectP, "x")),
		"list":   second(w.store.ListVMs(w.ctx, persistence.VMFilter{Page: page(1)})),
		"quota":  second(w.store.Quota(w.ctx, hcp.SubjectsOf("o", "p", "u"))),
		"fence":  w.store.CheckFence(w.ctx, persistence.Fence{Turn: persistence.Turn{Job: "j"}}),
		"put":    w.store.PutReachability(w.ctx, clusterC, hcp.Reachability{}),
		"join":   second(w.store.Join(w.ctx, persistence.Member{Node: "n"})),
	} {
		if !errors.Is(err, persistence.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	w.check(w.store.Close(), "a second close")
}

func second[T any](_ T, err error) error { return err }
