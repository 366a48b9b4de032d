package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// model is the store as the contract says it, small enough to be believed:
// fences, names, keys, one quota limit and one capacity.
type model struct {
	w     *world
	rows  map[hcp.VMID]*modelRow
	order []hcp.VMID
	keys  map[string]hcp.VMID
	limit int64 // of VMs in projectP
	room  int64 // vCPUs of clusterC
}

type modelRow struct {
	vm         hcp.VM
	epoch, seq int64
	held       int64 // vCPUs held, 0 is none
	claimed    int64
}

func (m *model) used() (vms, vcpus, claimed int64) {
	for _, r := range m.rows {
		if r.held > 0 {
			vms++
			vcpus += r.held
		}
		claimed += r.claimed
	}
	return vms, vcpus, claimed
}

func (m *model) nameTaken(name string, but hcp.VMID) bool {
	for id, r := range m.rows {
		if id != but && r.vm.Name == name && r.vm.HoldsName() {
			return true
		}
	}
	return false
}

// expect says what must become of the commit; "" is accepted.
func (m *model) expect(c persistence.Commit) persistence.RefusalKind {
	r, exists := m.rows[c.VM.ID]
	var held, claimed, epoch, seq int64
	if exists {
		held, claimed, epoch, seq = r.held, r.claimed, r.epoch, r.seq
	}
	if epoch != c.Epoch || seq != c.Seq {
		return persistence.RefusedFenced
	}
	if c.Key != nil {
		if _, dup := m.keys[c.Key.Key]; dup {
			return persistence.RefusedKey
		}
	}
	holdsAlready := exists && r.vm.HoldsName() && r.vm.Name == c.VM.Name
	if c.VM.HoldsName() && !holdsAlready && m.nameTaken(c.VM.Name, c.VM.ID) {
		return persistence.RefusedName
	}
	vms, _, total := m.used()
	if len(c.Holds) > 0 && len(c.Holds[0].Amounts) > 0 && held == 0 && vms+1 > m.limit {
		return persistence.RefusedQuota
	}
	if len(c.Claims) > 0 {
		if more := c.Claims[0].Sizes.VCPUs - claimed; more > 0 && total+more > m.room {
			return persistence.RefusedCapacity
		}
	}
	return ""
}

func (m *model) apply(c persistence.Commit) {
	r, exists := m.rows[c.VM.ID]
	if !exists {
		r = &modelRow{epoch: 1}
		m.rows[c.VM.ID] = r
		m.order = append(m.order, c.VM.ID)
	} else if c.Claim {
		r.epoch++
	}
	r.seq++
	r.vm = *c.VM
	if len(c.Holds) > 0 {
		r.held = c.Holds[0].Amounts[hcp.ResourceVCPUs]
	}
	if len(c.Claims) > 0 {
		r.claimed = c.Claims[0].Sizes.VCPUs
	}
	if c.Key != nil {
		m.keys[c.Key.Key] = c.VM.ID
	}
}

// draw makes a commit: often right, sometimes stale, greedy, or a repetition.
func (m *model) draw(t *rapid.T) persistence.Commit {
	var v hcp.VM
	c := persistence.Commit{}
	if len(m.order) == 0 || rapid.Bool().Draw(t, "new") {
		v = m.w.vm()
	} else {
		id := rapid.SampledFrom(m.order).Draw(t, "vm")
		r := m.rows[id]
		v, c.Epoch, c.Seq = r.vm, r.epoch, r.seq
		c.Claim = rapid.IntRange(0, 4).Draw(t, "claim") == 0
	}
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		c.Epoch, c.Seq = c.Epoch+rapid.Int64Range(0, 1).Draw(t, "epoch"), max(0, c.Seq+rapid.Int64Range(-1, 1).Draw(t, "seq"))
		if rapid.Bool().Draw(t, "insert") {
			c.Epoch, c.Seq = 0, 0
		}
	}
	v.Name = fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "name"))
	v.Lifecycle = rapid.SampledFrom(hcp.Lifecycles()).Draw(t, "lifecycle")
	v.Activity = ""
	v.Flavor.VCPUs = rapid.IntRange(1, 4).Draw(t, "vcpus")
	c.Actor, c.VM = vmActor(v.ID), &v
	switch rapid.IntRange(0, 2).Draw(t, "hold") {
	case 0:
		c.Holds = []persistence.QuotaChange{holdOf(v)}
		c.Claims = []persistence.CapacityChange{claimOf(v)}
	case 1:
		c.Holds = []persistence.QuotaChange{releaseOf(v)}
		c.Claims = []persistence.CapacityChange{{Cluster: v.Cluster, VM: v.ID}}
	}
	if rapid.IntRange(0, 2).Draw(t, "keyed") == 0 {
		c.Key = &persistence.IdempotencyRecord{IdempotencyKey: hcp.IdempotencyKey{Principal: "p", Key: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))}, VM: v.ID}
	}
	return c
}

func (s *suite) TestAnySequenceOfCommitsDoesWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{w: s.world(t), rows: map[hcp.VMID]*modelRow{}, keys: map[string]hcp.VMID{}, limit: 3, room: 9}
		w := m.w
		w.must(persistence.Commit{Limits: []persistence.LimitChange{limit(hcp.QuotaProject, string(projectP), hcp.ResourceVMs, m.limit)},
			Capacity: []persistence.CapacityLimit{{Cluster: clusterC, Limit: hcp.Sizes{VCPUs: m.room, MemoryMiB: 1 << 40, DiskGiB: 1 << 40}}}})
		for range rapid.IntRange(1, 30).Draw(rt, "length") {
			c := m.draw(rt)
			want := m.expect(c)
			err := w.store.Commit(w.ctx, c)
			r, refused := persistence.RefusalOf(err)
			switch {
			case want == "" && err != nil, want != "" && (!refused || r.Kind != want):
				rt.Fatalf("got %v, want %q", err, want)
			case want == persistence.RefusedKey && r.Record.VM != m.keys[c.Key.Key]:
				rt.Fatalf("the record is of %s, want %s", r.Record.VM, m.keys[c.Key.Key])
			case want == "":
				m.apply(c)
			}
		}
		m.compare(rt)
	})
}

func (m *model) compare(t *rapid.T) {
	w := m.w
	for id, r := range m.rows {
		st, err := w.store.LoadVM(w.ctx, id)
		if err != nil || st.Epoch != r.epoch || st.Seq != r.seq || st.VM.Name != r.vm.Name || st.VM.Lifecycle != r.vm.Lifecycle {
			t.Fatalf("%s: got %d/%d %+v, %v; want %d/%d %+v", id, st.Epoch, st.Seq, st.VM, err, r.epoch, r.seq, r.vm)
		}
	}
	known, err := w.store.ListVMs(w.ctx, persistence.VMFilter{WithDeleted: true, Page: page(1000)})
	if err != nil || len(known) != len(m.rows) {
		t.Fatalf("%d VMs listed, %v; want %d", len(known), err, len(m.rows))
	}
	vms, vcpus, claimed := m.used()
	use, err := w.store.Quota(w.ctx, hcp.SubjectsOf(orgA, projectP, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range use {
		if u.Lines[0].Used != vms || u.Lines[1].Used != vcpus {
			t.Fatalf("%s uses %+v, want %d and %d", u.Subject.Scope, u.Lines, vms, vcpus)
		}
	}
	capacity, err := w.store.ClusterCapacity(w.ctx)
	if err != nil || capacity[clusterC].Claimed.VCPUs != claimed {
		t.Fatalf("%d claimed, %v; want %d", capacity[clusterC].Claimed.VCPUs, err, claimed)
	}
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		r, err := w.store.FindKey(w.ctx, hcp.IdempotencyKey{Principal: "p", Key: key})
		if err != nil || r.VM != m.keys[key] {
			t.Fatalf("key %s: %s, %v; want %s", key, r.VM, err, m.keys[key])
		}
	}
}
