package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestADuplicateKeyAnswersWithTheWinnersRecord(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	key := w.create(w.vm()).Key.IdempotencyKey
	_, err := w.store.FindKey(w.ctx, key)
	w.wantCode(err, hcp.CodeNotFound, "find")
	var commits []persistence.Commit
	for range 20 {
		c := w.create(w.vm())
		c.Key.IdempotencyKey = key
		commits = append(commits, c)
	}
	var winner *persistence.IdempotencyRecord
	results := w.submitAll(commits)
	for i, err := range results {
		if err == nil {
			if winner != nil {
				t.Fatal("two candidates won with one key")
			}
			winner = commits[i].Key
		}
	}
	if winner == nil {
		t.Fatal("nobody won")
	}
	for i, err := range results {
		if err == nil {
			continue
		}
		r, is := persistence.RefusalOf(err)
		if !is || r.Kind != persistence.RefusedKey || r.Record == nil {
			t.Fatalf("loser %d: %v", i, err)
		}
		w.same("record", winner, r.Record)
		_, err = w.store.LoadVM(w.ctx, commits[i].VM.ID)
		w.wantCode(err, hcp.CodeNotFound, "a loser's VM")
	}
	w.same("found", *winner, ok(w.store.FindKey(w.ctx, key))(w))
	w.used(w.vm(), 1, 2, 512)
	w.noDrift()
}

func (s *suite) TestAKeyIsOneOnlyWithItsPrincipalProjectMethodAndPath(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	base := w.create(w.vm()).Key.IdempotencyKey
	for _, change := range []func(*hcp.IdempotencyKey){
		func(*hcp.IdempotencyKey) {}, func(k *hcp.IdempotencyKey) { k.Principal = "bob" }, func(k *hcp.IdempotencyKey) { k.Project = projectQ },
		func(k *hcp.IdempotencyKey) { k.Method = "DELETE" }, func(k *hcp.IdempotencyKey) { k.Path += "/x" }, func(k *hcp.IdempotencyKey) { k.Key += "x" },
	} {
		c := w.create(w.vm())
		c.Key.IdempotencyKey = base
		change(&c.Key.IdempotencyKey)
		w.must(c)
	}
	other := base
	other.Fingerprint = "another body"
	w.same("the record keeps its own fingerprint", base.Fingerprint, ok(w.store.FindKey(w.ctx, other))(w).Fingerprint)
}

func (s *suite) TestPurgingKeysLeavesThoseOfLiveJobs(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	live, final, young := w.create(w.vm()), w.create(w.vm()), w.create(w.vm())
	final.Jobs[0].State, young.Jobs[0].State = hcp.JobFailed, hcp.JobSucceeded
	young.Key.ExpiresAt = w.at(200000)
	noJob := persistence.Commit{Key: &persistence.IdempotencyRecord{IdempotencyKey: hcp.IdempotencyKey{Principal: "p", Key: "k"}, Status: 200, ExpiresAt: w.at(86400)}}
	for _, c := range []persistence.Commit{live, final, young, noJob} {
		w.must(c)
	}
	w.same("before anything expires", int64(0), ok(w.store.PurgeKeys(w.ctx, w.at(86399)))(w))
	w.same("purged", int64(2), ok(w.store.PurgeKeys(w.ctx, w.at(86401)))(w))
	for name, c := range map[string]struct {
		key  hcp.IdempotencyKey
		kept bool
	}{"live": {live.Key.IdempotencyKey, true}, "young": {young.Key.IdempotencyKey, true}, "final": {final.Key.IdempotencyKey, false}, "no job": {noJob.Key.IdempotencyKey, false}} {
		if _, err := w.store.FindKey(w.ctx, c.key); (err == nil) != c.kept {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (s *suite) TestANameIsFreeFromTheCommitThatAcceptsTheDelete(t *testing.T) {
	w := s.world(t)
	a := w.vm(active, func(v *hcp.VM) { v.Name = "web" })
	w.must(w.insert(a))
	named := func(change ...func(*hcp.VM)) hcp.VM {
		return w.vm(append([]func(*hcp.VM){func(v *hcp.VM) { v.Name = "web" }}, change...)...)
	}
	r := w.refused(w.insert(named()), persistence.RefusedName)
	if r.Err.Code != hcp.CodeConflict {
		t.Errorf("got %v", r.Err)
	}
	w.must(w.insert(named(func(v *hcp.VM) { v.Project = projectQ }))) // another project has names of its own

	deleting := a
	deleting.Activity = hcp.JobDelete
	w.must(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 1, VM: &deleting})
	_, err := w.store.GetVM(w.ctx, projectP, "web")
	w.wantCode(err, hcp.CodeNotFound, "by its old name")
	w.same("by id", a.ID, ok(w.store.GetVM(w.ctx, projectP, string(a.ID)))(w).VM.ID)

	b := named()
	w.must(w.insert(b))
	w.same("the name is the new one's", b.ID, ok(w.store.GetVM(w.ctx, projectP, "web"))(w).VM.ID)
	// A delete that gave up wants its name back: it is taken.
	w.refused(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 2, VM: &a}, persistence.RefusedName)
	renamed := a
	renamed.Name = "web-old"
	w.must(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 2, VM: &renamed})
	w.refused(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 3, VM: &a}, persistence.RefusedName)
	w.same("renamed", a.ID, ok(w.store.GetVM(w.ctx, projectP, "web-old"))(w).VM.ID)
}

func (s *suite) TestOfParallelCreatesWithOneNameOneWins(t *testing.T) {
	w := s.world(t)
	var commits []persistence.Commit
	for range 30 {
		commits = append(commits, w.insert(w.vm(func(v *hcp.VM) { v.Name = "web" })))
	}
	won := 0
	for _, err := range w.submitAll(commits) {
		if err == nil {
			won++
		} else if r, is := persistence.RefusalOf(err); !is || r.Kind != persistence.RefusedName {
			t.Errorf("got %v", err)
		}
	}
	w.same("winners", 1, won)
}

func (s *suite) TestAProviderIDIsUniqueInItsCluster(t *testing.T) {
	w := s.world(t)
	ref := func(id string) func(*hcp.VM) { return func(v *hcp.VM) { v.Ref = &hcp.ProviderRef{ID: id, Host: "h"} } }
	a := w.vm(ref("100"))
	w.must(w.insert(a))
	w.refused(w.insert(w.vm(ref("100"))), persistence.RefusedRef)
	other := w.vm(ref("100"), func(v *hcp.VM) { v.Cluster = clusterD })
	w.must(w.insert(other))
	for range 3 {
		w.must(w.insert(w.vm())) // many VMs have none yet
	}
	w.same("by ref", a.ID, ok(w.store.VMByRef(w.ctx, clusterC, "100"))(w).VM.ID)
	w.same("by ref", other.ID, ok(w.store.VMByRef(w.ctx, clusterD, "100"))(w).VM.ID)
	for _, id := range []string{"101", ""} {
		_, err := w.store.VMByRef(w.ctx, clusterC, id)
		w.wantCode(err, hcp.CodeNotFound, "by an unknown ref")
	}
	b := w.vm()
	w.must(w.insert(b))
	b.Ref = &hcp.ProviderRef{ID: "100"}
	w.refused(persistence.Commit{Actor: vmActor(b.ID), Epoch: 1, Seq: 1, VM: &b}, persistence.RefusedRef)
	a.Ref = nil // verified absent: the id may be used again
	w.must(persistence.Commit{Actor: vmActor(a.ID), Epoch: 1, Seq: 1, VM: &a})
	w.must(persistence.Commit{Actor: vmActor(b.ID), Epoch: 1, Seq: 1, VM: &b})
	moved := other
	moved.Cluster = clusterC
	w.refused(persistence.Commit{Actor: vmActor(other.ID), Epoch: 1, Seq: 1, VM: &moved}, persistence.RefusedRef)
}

func (s *suite) TestRecordsAreVersionedAndTheirNamesUnique(t *testing.T) {
	w := s.world(t)
	rec := func(kind persistence.RecordKind, id, name, parent string, version int64, body string) persistence.RecordChange {
		return persistence.RecordChange{Record: persistence.Record{Kind: kind, ID: id, Name: name, Parent: parent, Version: version, Body: []byte(body)}}
	}
	put := func(changes ...persistence.RecordChange) persistence.Commit {
		return persistence.Commit{Records: changes}
	}
	w.must(put(rec(persistence.RecordProject, "p1", "one", "o1", 0, `{"a":1}`), rec(persistence.RecordProject, "p2", "two", "o2", 0, `{}`)))
	w.same("by id", persistence.Record{Kind: persistence.RecordProject, ID: "p1", Name: "one", Parent: "o1", Version: 1, Body: []byte(`{"a":1}`)},
		ok(w.store.GetRecord(w.ctx, persistence.RecordProject, "p1"))(w))
	w.same("by name", "p1", ok(w.store.GetRecord(w.ctx, persistence.RecordProject, "one"))(w).ID)
	w.refused(put(rec(persistence.RecordProject, "p1", "one", "", 0, ``)), persistence.RefusedVersion)
	w.refused(put(rec(persistence.RecordProject, "p3", "one", "", 0, ``)), persistence.RefusedName)
	w.refused(put(rec(persistence.RecordProject, "p1", "two", "", 1, ``)), persistence.RefusedName)
	w.refused(put(rec(persistence.RecordProject, "p1", "one", "", 2, ``)), persistence.RefusedVersion)
	w.must(put(rec(persistence.RecordProject, "p1", "one", "o1", 1, `{"a":2}`)))
	w.same("version", int64(2), ok(w.store.GetRecord(w.ctx, persistence.RecordProject, "p1"))(w).Version)
	w.must(put(rec(persistence.RecordOrg, "p1", "one", "", 0, ``))) // another kind has ids and names of its own

	// A later change of one commit sees the earlier ones.
	drop := rec(persistence.RecordProject, "p1", "", "", 2, ``)
	drop.Delete = true
	w.must(put(drop, rec(persistence.RecordProject, "p3", "one", "o1", 0, ``), rec(persistence.RecordProject, "p3", "uno", "o1", 1, ``)))
	_, err := w.store.GetRecord(w.ctx, persistence.RecordProject, "p1")
	w.wantCode(err, hcp.CodeNotFound, "a deleted record")
	w.refused(put(drop), persistence.RefusedVersion)
	drop.Version = 0
	w.refused(put(drop), persistence.RefusedVersion)

	for _, id := range []string{"b1", "b2"} { // rows without names
		w.must(put(rec(persistence.RecordBinding, id, "", "p3", 0, ``)))
	}
	_, err = w.store.GetRecord(w.ctx, persistence.RecordBinding, "")
	w.wantCode(err, hcp.CodeNotFound, "an empty name")
	names := func(kind persistence.RecordKind, parent string) (out []string) {
		for _, r := range ok(w.store.ListRecords(w.ctx, kind, parent))(w) {
			out = append(out, r.ID+":"+r.Name)
		}
		return out
	}
	w.same("by name", []string{"p2:two", "p3:uno"}, names(persistence.RecordProject, ""))
	w.same("of a parent", []string{"p3:uno"}, names(persistence.RecordProject, "o1"))
	w.same("of nobody", 0, len(names(persistence.RecordProject, "none")))
}

func (s *suite) TestTheFirstRingKeyWinsAndEverybodyGetsIt(t *testing.T) {
	w := s.world(t)
	keys := make([]hcp.Sealed, 20)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key, err := w.store.RingKey(w.ctx, "page", hcp.Sealed{byte(i), 0, 255})
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, k := range keys {
		w.same("key", []byte(keys[0]), []byte(k))
	}
	if len(keys[0]) != 3 {
		t.Errorf("the key is not one of those offered: %d bytes", len(keys[0]))
	}
	other := ok(w.store.RingKey(w.ctx, "cursor", hcp.Sealed{42}))(w)
	w.same("another purpose", []byte{42}, []byte(other))
}

func (s *suite) TestSecretsArePutReplacedAndDropped(t *testing.T) {
	w := s.world(t)
	for _, sealed := range []hcp.Sealed{{1, 0, 2}, {3}} {
		w.must(persistence.Commit{Secrets: []persistence.SecretChange{{Name: "s", Sealed: sealed}}})
		w.same("secret", []byte(sealed), []byte(ok(w.store.Secret(w.ctx, "s"))(w)))
	}
	w.must(persistence.Commit{Secrets: []persistence.SecretChange{{Name: "s"}}})
	_, err := w.store.Secret(w.ctx, "s")
	w.wantCode(err, hcp.CodeNotFound, "a dropped secret")
	if errors.Is(err, persistence.ErrClosed) {
		t.Error("the store is closed")
	}
}
