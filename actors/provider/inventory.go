package provider

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/persistence"
)

// sweep is one look at every machine of the cluster, beside the VM rows as they
// were read after it.
type sweep struct {
	began     time.Time
	moment    int64
	seen      []drivers.Observation
	unreached []string
	known     map[hcp.VMID]hcp.Known
	limit     *hcp.Sizes
	confirmed map[hcp.VMID]bool // absent, and "not found" when asked directly
	err       error
}

// sweep looks at the whole cluster in a worker.
func (a *Actor) sweep() {
	a.isSweeping = true
	d, id, store := a.driver, a.id, a.deps.Store
	s := sweep{began: a.deps.Clock.Now(), moment: a.moment, confirmed: map[hcp.VMID]bool{}}
	timeout := a.deps.Policy.CallTimeout
	info := a.cluster.Info
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
		defer cancel()
		s.unreached, s.err = d.Inventory(ctx, func(o drivers.Observation) error {
			s.seen = append(s.seen, o)
			return nil
		})
		if s.err == nil {
			s.known, s.err = rowsOf(ctx, store, id, s.seen)
		}
		if s.err == nil && info != nil {
			s.limit, s.err = limitOf(ctx, store, id, info.Capacity, s.seen)
		}
		if s.err == nil {
			confirm(ctx, d, &s)
		}
		a.self.Tell(swept(s))
	}()
}

// rowsOf reads the cluster's VM rows, and those of machines with our marker that
// the list does not have: deleted VMs.
func rowsOf(ctx context.Context, store persistence.VMReader, id hcp.ClusterID, seen []drivers.Observation) (map[hcp.VMID]hcp.Known, error) {
	known := map[hcp.VMID]hcp.Known{}
	page := persistence.Page{Limit: 1000}
	for {
		rows, err := store.ListVMs(ctx, persistence.VMFilter{Cluster: id, Page: page})
		if err != nil {
			return nil, err
		}
		for _, k := range rows {
			known[k.VM.ID] = k
		}
		if len(rows) < page.Limit {
			break
		}
		last := rows[len(rows)-1].VM
		page.After = &persistence.Position{CreatedAt: last.CreatedAt, ID: string(last.ID)}
	}
	for _, o := range seen {
		if _, ok := known[o.VM]; ok || o.VM == "" {
			continue
		}
		k, err := store.GetVM(ctx, "", string(o.VM))
		switch {
		case hcp.IsCode(err, hcp.CodeNotFound):
		case err != nil:
			return nil, err
		default:
			known[o.VM] = k
		}
	}
	return known, nil
}

// limitOf is how much may be claimed: capacity x ratio of the most generous zone
// - what machines use that are not ours.
func limitOf(ctx context.Context, store persistence.Catalogue, id hcp.ClusterID, capacity hcp.Sizes, seen []drivers.Observation) (*hcp.Sizes, error) {
	records, err := store.ListRecords(ctx, persistence.RecordZone, "")
	if err != nil {
		return nil, err
	}
	member := hcp.ZoneCluster{Cluster: id}
	for _, r := range records {
		var z hcp.Zone
		if json.Unmarshal(r.Body, &z) != nil {
			continue
		}
		for _, m := range z.Members {
			if m.Cluster == id {
				member.CPURatio, member.MemoryRatio = max(member.CPURatio, m.CPURatio), max(member.MemoryRatio, m.MemoryRatio)
			}
		}
	}
	var foreign hcp.Sizes
	for _, o := range seen {
		if o.VM == "" {
			foreign = foreign.Plus(hcp.Sizes{VCPUs: int64(o.VCPUs), MemoryMiB: int64(o.MemoryMiB), DiskGiB: int64(o.DiskGiB)})
		}
	}
	limit := hcp.LimitOfCluster(capacity, foreign, member)
	return &limit, nil
}

// confirmAtMost bounds the direct questions of one sweep.
const confirmAtMost = 50

// confirm asks directly for VMs that the sweep did not show: absence from a list
// is no proof.
func confirm(ctx context.Context, d drivers.Driver, s *sweep) {
	present := map[hcp.VMID]bool{}
	for _, o := range s.seen {
		present[o.VM] = true
	}
	asked := 0
	for id, k := range s.known {
		vm := k.VM
		settled := vm.Lifecycle == hcp.LifecycleActive && vm.Activity == "" && vm.Ref != nil && vm.PowerAt.Before(s.began)
		if present[id] || !settled || asked >= confirmAtMost || slices.Contains(s.unreached, vm.Ref.Host) {
			continue
		}
		asked++
		if _, err := d.Get(ctx, *vm.Ref); hcp.IsCode(err, hcp.CodeNotFound) {
			s.confirmed[id] = true
		}
	}
}

func (a *Actor) onSwept(s sweep) {
	a.isSweeping = false
	now := a.deps.Clock.Now()
	a.nextSweep = now.Add(a.deps.Policy.InventoryInterval)
	if s.err != nil {
		a.log.Warn("the inventory failed", "err", s.err)
		if isAway(s.err) {
			a.probe(nil)
		}
		return
	}
	if s.limit != nil {
		a.setLimit(*s.limit)
	}
	for i := range s.seen {
		o := s.seen[i]
		k, ours := s.known[o.VM]
		if !ours || a.stale(o.VM, s.moment) {
			continue
		}
		a.note(o, s.began)
		a.judge(k.VM, &o, s.began)
	}
	for id := range s.confirmed {
		if a.stale(id, s.moment) {
			continue
		}
		if o, ok := a.stored[id]; !ok || !o.Missing {
			o.VM, o.Cluster, o.Missing, o.At = id, a.id, true, s.began
			a.fresh[id] = o
		}
		if !isKnownMissing(s.known[id].VM) { // a notice that came during a job was dropped
			a.deps.VMs.Notice(id, nil, true, false, s.began)
		}
	}
	a.forget(s)
	a.flush()
}

func isKnownMissing(vm hcp.VM) bool {
	return slices.ContainsFunc(vm.Conditions, func(c hcp.Condition) bool { return c.Type == "missing" })
}

// mutation is the end of a mutating call of ours.
type mutation struct {
	moment int64
	at     time.Time
}

// forget drops what is remembered of VMs that are gone, and of calls that ended
// before any read that may still be out began.
func (a *Actor) forget(s sweep) {
	for id := range a.stored {
		if _, lives := s.known[id]; !lives {
			delete(a.stored, id) // of a VM made meanwhile one row is written once more
		}
	}
	oldest := a.deps.Clock.Now().Add(-2 * a.deps.Policy.CallTimeout)
	for id, m := range a.mutated {
		if m.moment <= s.moment && m.at.Before(oldest) {
			delete(a.mutated, id)
		}
	}
}

// stale reports whether a call of ours may have overtaken an observation whose
// read began at that moment.
func (a *Actor) stale(vm hcp.VMID, moment int64) bool {
	return a.mutating[vm] > 0 || a.mutated[vm].moment > moment
}

// judge tells the VM's actor what its record does not say.
func (a *Actor) judge(vm hcp.VM, o *drivers.Observation, at time.Time) {
	switch {
	case vm.Activity != "":
	case vm.Lifecycle == hcp.LifecycleError || vm.Lifecycle == hcp.LifecycleDeleted:
		if vm.CreateIntent {
			a.deps.VMs.Notice(vm.ID, o, false, true, at)
		}
	case vm.Lifecycle == hcp.LifecycleActive && (o.Power != vm.Power || len(vm.Conditions) > 0):
		a.deps.VMs.Notice(vm.ID, o, false, false, at)
	}
}

// note keeps an observation for the store when it says anything new.
func (a *Actor) note(o drivers.Observation, at time.Time) {
	row := hcp.Observed{VM: o.VM, Cluster: a.id, Power: o.Power, Host: o.Ref.Host, VCPUs: o.VCPUs, MemoryMiB: o.MemoryMiB,
		DiskGiB: o.DiskGiB, Disks: o.Disks, Addresses: o.Addresses, At: at}
	old, ok := a.fresh[o.VM]
	if !ok {
		old, ok = a.stored[o.VM]
	}
	same := old
	same.At = row.At
	if ok && reflect.DeepEqual(same, row) {
		return
	}
	a.fresh[o.VM] = row
}

// onReported takes what a job of ours has just read.
func (a *Actor) onReported(m reported) {
	if m.obs.VM == "" {
		return
	}
	a.note(m.obs, a.deps.Clock.Now())
	if m.obs.Power == hcp.PowerRunning && len(m.obs.Addresses) == 0 {
		// The guest is coming up: look for its address before the next sweep.
		vm := m.obs.VM
		for _, after := range []time.Duration{2 * time.Second, 5 * time.Second} {
			a.deps.Clock.AfterFunc(after, func() { a.self.Tell(Look{vm}) })
		}
	}
}

// look reads one VM, or sweeps when the hint names none.
func (a *Actor) look(vm hcp.VMID) {
	if a.driver == nil || !a.reach.Reachable {
		return
	}
	if vm == "" {
		a.nextSweep = a.deps.Clock.Now()
		return
	}
	d, store, began, moment := a.driver, a.deps.Store, a.deps.Clock.Now(), a.moment
	timeout := a.deps.Policy.CallTimeout
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		k, err := store.GetVM(ctx, "", string(vm))
		if err != nil || k.VM.Ref == nil || k.VM.Cluster != a.id {
			return
		}
		o, err := d.Get(ctx, *k.VM.Ref)
		if err != nil || !o.Marked(vm) {
			return // the sweep weighs absence
		}
		a.self.Tell(looked{o, k, began, moment})
	}()
}

// looked is the answer of a look.
type looked struct {
	obs    drivers.Observation
	known  hcp.Known
	began  time.Time
	moment int64
}

func (a *Actor) onLooked(m looked) {
	if a.stale(m.obs.VM, m.moment) {
		return
	}
	a.note(m.obs, m.began)
	a.judge(m.known.VM, &m.obs, m.began)
}

// flush stores what is new, in one batch.
func (a *Actor) flush() {
	if a.isStoring || len(a.fresh) == 0 {
		return
	}
	a.isStoring = true
	rows := make([]hcp.Observed, 0, len(a.fresh))
	for _, o := range a.fresh {
		rows = append(rows, o)
	}
	a.fresh = map[hcp.VMID]hcp.Observed{}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		a.self.Tell(storedRows{rows, a.deps.Store.PutObserved(ctx, rows)})
	}()
}

func (a *Actor) onStored(m storedRows) {
	a.isStoring = false
	if m.err != nil {
		a.log.Error("observations could not be stored", "err", m.err)
		return // the next sweep sees them again
	}
	for _, o := range m.rows {
		a.stored[o.VM] = o
	}
}

// setLimit stores how much may be claimed, when it changed.
func (a *Actor) setLimit(limit hcp.Sizes) {
	if a.isShut || a.limit != nil && *a.limit == limit {
		return
	}
	a.limit = &limit
	a.commit(persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: a.id, Limit: limit}}}, nil, nil)
}
