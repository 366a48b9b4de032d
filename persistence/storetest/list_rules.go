package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func position(k hcp.Known) *persistence.Position {
	return &persistence.Position{CreatedAt: k.VM.CreatedAt, ID: string(k.VM.ID)}
}

// readAll pages through a filter and returns every VM in the order it came.
func (w *world) readAll(f persistence.VMFilter, size int) []hcp.Known {
	w.t.Helper()
	var all []hcp.Known
	f.Page = page(size)
	for range 10000 {
		items := ok(w.store.ListVMs(w.ctx, f))(w)
		if len(items) > size {
			w.t.Fatalf("a page of %d has %d rows", size, len(items))
		}
		all = append(all, items...)
		if len(items) < size {
			return all
		}
		f.Page.After = position(items[len(items)-1])
	}
	w.t.Fatal("the pages do not end")
	return nil
}

func (s *suite) TestG01PagesOfEqualTimesHoldEachVMOnce(t *testing.T) {
	// Acceptance G01, the store's half: 1,000 VMs with one created_at, read 7 by 7.
	w := s.world(t)
	var commits []persistence.Commit
	for range 1000 {
		commits = append(commits, w.insert(w.vm(func(v *hcp.VM) { v.Labels = map[string]string{"env": "test"} })))
	}
	for _, err := range w.submitAll(commits) {
		w.check(err, "insert")
	}
	for name, f := range map[string]persistence.VMFilter{
		"project": {Project: projectP}, "all": {}, "state": {Project: projectP, State: hcp.StateCreating}, "cluster": {Cluster: clusterC},
		"label": {Project: projectP, Labels: map[string]string{"env": "test"}}, "with deleted": {Project: projectP, WithDeleted: true},
	} {
		all := w.readAll(f, 7)
		ids := map[hcp.VMID]bool{}
		for i, k := range all {
			ids[k.VM.ID] = true
			if i > 0 && k.VM.ID >= all[i-1].VM.ID {
				t.Fatalf("%s: row %d is out of order", name, i)
			}
		}
		if len(all) != 1000 || len(ids) != 1000 {
			t.Errorf("%s: %d rows, %d distinct, want 1000", name, len(all), len(ids))
		}
	}
}

func (s *suite) TestListsAreNewestFirstAndStableWhileVMsAreMade(t *testing.T) {
	w := s.world(t)
	for i := range 30 {
		w.must(w.insert(w.vm(func(v *hcp.VM) { v.CreatedAt = w.at(i / 3) })))
	}
	first := ok(w.store.ListVMs(w.ctx, persistence.VMFilter{Project: projectP, Page: page(10)}))(w)
	w.must(w.insert(w.vm(func(v *hcp.VM) { v.CreatedAt = w.at(100) })))
	rest := w.store
	next := ok(rest.ListVMs(w.ctx, persistence.VMFilter{Project: projectP, Page: persistence.Page{After: position(first[9]), Limit: 1000}}))(w)
	all := append(slices.Clone(first), next...)
	w.same("rows", 30, len(all))
	for i := 1; i < len(all); i++ {
		a, b := all[i-1].VM, all[i].VM
		if a.CreatedAt.Before(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && a.ID <= b.ID {
			t.Fatalf("row %d is out of order", i)
		}
	}
}

func (s *suite) TestAPageHasBetweenOneAndMaxLimitRows(t *testing.T) {
	w := s.world(t)
	for _, n := range []int{-1, 0, persistence.MaxLimit, persistence.MaxLimit + 1} {
		for name, err := range map[string]error{
			"VMs":   second(w.store.ListVMs(w.ctx, persistence.VMFilter{Page: page(n)})),
			"jobs":  second(w.store.ListJobs(w.ctx, persistence.JobFilter{Page: page(n)})),
			"audit": second(w.store.ListAudit(w.ctx, persistence.AuditFilter{Page: page(n)})),
		} {
			if (err == nil) != (n == persistence.MaxLimit) {
				t.Errorf("%s: a page of %d: %v", name, n, err)
			}
		}
	}
}

func (s *suite) TestEveryFilterOfVMsSelects(t *testing.T) {
	w := s.world(t)
	var all []hcp.VM
	for i := range 48 {
		v := w.vm(func(v *hcp.VM) {
			v.CreatedAt = w.at(i / 5)
			v.Name = fmt.Sprintf("vm-%d", i)
			v.Project = []hcp.ProjectID{projectP, projectQ}[i%2]
			v.Org = []hcp.OrgID{orgA, "org_b"}[i%3%2]
			v.Zone = []hcp.ZoneID{zoneZ, "zone_y"}[i%4%2]
			v.Cluster = []hcp.ClusterID{clusterC, clusterD}[i%5%2]
			v.Lifecycle, v.Activity = hcp.Lifecycles()[i%5], ""
			v.Labels = map[string]string{"n": fmt.Sprint(i % 4), "m": fmt.Sprint(i % 3)}
			if i%7 == 0 {
				v.Labels = nil
			}
		})
		all = append(all, v)
		w.must(w.insert(v))
	}
	// Labels and the name follow the row.
	all[1].Labels, all[1].Name, all[1].Cluster = map[string]string{"n": "9"}, "renamed", clusterC
	w.must(persistence.Commit{Actor: vmActor(all[1].ID), Epoch: 1, Seq: 1, VM: &all[1]})

	filters := []persistence.VMFilter{{}, {Project: projectP}, {Org: "org_b"}, {Zone: zoneZ}, {Cluster: clusterC}, {Cluster: clusterD, Project: projectQ},
		{Name: "vm-8"}, {Name: "vm-8", Project: projectQ}, {Name: "renamed"}, {Name: "vm-1"}, {Name: "none"}, {State: "nonsense"},
		{Labels: map[string]string{"n": "1"}}, {Labels: map[string]string{"n": "1", "m": "2"}, Project: projectP}, {Labels: map[string]string{"n": "9"}},
		{Labels: map[string]string{"n": "1"}, Cluster: clusterC, Zone: zoneZ}, {Name: "vm-8", Labels: map[string]string{"n": "0"}}, {Labels: map[string]string{"none": ""}}}
	for _, l := range hcp.Lifecycles() {
		filters = append(filters, persistence.VMFilter{Lifecycle: l}, persistence.VMFilter{Lifecycle: l, Project: projectP, Labels: map[string]string{"m": "0"}})
	}
	for _, st := range hcp.States() {
		filters = append(filters, persistence.VMFilter{State: st, Project: projectQ})
	}
	for _, f := range filters {
		for _, deleted := range []bool{false, true} {
			f.WithDeleted = deleted
			var want, got []hcp.VMID
			for _, v := range all {
				if matches(f, v) {
					want = append(want, v.ID)
				}
			}
			slices.SortFunc(want, func(a, b hcp.VMID) int { return byAge(all, a, b) })
			for _, k := range w.readAll(f, 4) {
				got = append(got, k.VM.ID)
			}
			if !slices.Equal(want, got) {
				t.Errorf("%+v: got %d rows %v, want %d %v", f, len(got), got, len(want), want)
			}
		}
	}
}

// matches is the filter as the contract says it.
func matches(f persistence.VMFilter, v hcp.VM) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	for k, val := range f.Labels {
		if have, has := v.Labels[k]; !has || have != val {
			return false
		}
	}
	gone := v.Lifecycle == hcp.LifecycleDeleted
	asked := f.WithDeleted || f.Lifecycle == hcp.LifecycleDeleted || f.State == hcp.StateDeleted
	return is(string(f.Project), string(v.Project)) && is(string(f.Org), string(v.Org)) && is(f.Name, v.Name) && is(string(f.Zone), string(v.Zone)) &&
		is(string(f.Cluster), string(v.Cluster)) && is(string(f.Lifecycle), string(v.Lifecycle)) && is(string(f.State), string(v.State())) && (!gone || asked)
}

func byAge(all []hcp.VM, a, b hcp.VMID) int {
	find := func(id hcp.VMID) hcp.VM {
		return all[slices.IndexFunc(all, func(v hcp.VM) bool { return v.ID == id })]
	}
	x, y := find(a), find(b)
	if !x.CreatedAt.Equal(y.CreatedAt) {
		return y.CreatedAt.Compare(x.CreatedAt)
	}
	if a < b {
		return 1
	}
	return -1
}

// stateMatrix is every VM whose state could be read differently: each lifecycle,
// activity and power, never seen, seen once, with and without a provider object,
// and each kind of observation, older and newer than the VM's own word.
func (w *world) stateMatrix() (vms []hcp.VM, observed []hcp.Observed) {
	activities := append([]hcp.JobKind{""}, hcp.JobKinds()...)
	powers := []hcp.Power{hcp.PowerRunning, hcp.PowerStopped, hcp.PowerPaused, hcp.PowerSuspended, hcp.PowerUnknown}
	shapes := []func(*hcp.VM){
		func(*hcp.VM) {}, // never seen
		func(v *hcp.VM) { v.PowerAt = w.at(100) },
		func(v *hcp.VM) { v.PowerAt, v.Ref = w.at(100), &hcp.ProviderRef{ID: "r" + string(v.ID)} },
		func(v *hcp.VM) { v.Ref = &hcp.ProviderRef{ID: "r" + string(v.ID)} },
	}
	n := 0
	for _, l := range hcp.Lifecycles() {
		for _, a := range activities {
			for _, p := range powers {
				for _, shape := range shapes {
					v := w.vm(func(v *hcp.VM) { v.Lifecycle, v.Activity, v.Power = l, a, p }, shape)
					vms = append(vms, v)
					obs := hcp.Observed{VM: v.ID, Cluster: v.Cluster, Power: powers[n%5], At: w.at([]int{50, 100, 150}[n%3]), Missing: n%4 == 3}
					if n%7 != 0 {
						observed = append(observed, obs)
					}
					n++
				}
			}
		}
	}
	return vms, observed
}

func (s *suite) TestTheStateFilterSaysWhatTheViewSays(t *testing.T) {
	w := s.world(t)
	vms, observed := w.stateMatrix()
	var commits []persistence.Commit
	for i, v := range vms {
		if i%2 == 1 { // half of them on a cluster of their own
			v.Cluster = clusterD
		}
		commits = append(commits, w.insert(v))
	}
	for _, err := range w.submitAll(commits) {
		w.check(err, "insert")
	}
	check := func(when string) {
		w.agreeOnStates(when)
	}
	check("never probed")
	w.check(w.store.PutObserved(w.ctx, observed), "observe")
	check("observed")
	down, up := hcp.Reachability{Reason: "unreachable", ChangedAt: w.at(5)}, hcp.Reachability{Reachable: true, ChangedAt: w.at(6)}
	w.check(w.store.PutReachability(w.ctx, clusterD, down), "down")
	check("one cluster down")
	w.check(w.store.PutReachability(w.ctx, clusterC, down), "down")
	check("both down")

	// Every VM is written again while its cluster is down, then what is shown changes.
	commits = nil
	for i, v := range vms {
		if i%2 == 1 {
			v.Cluster = clusterD
		}
		v.Power = hcp.PowerStopped
		drop := []hcp.VMID(nil)
		if i%5 == 0 {
			drop = []hcp.VMID{v.ID}
		}
		commits = append(commits, persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, VM: &v, DropObserved: drop})
	}
	for _, err := range w.submitAll(commits) {
		w.check(err, "update")
	}
	check("written while down")
	for i := range observed {
		observed[i].Power, observed[i].Missing, observed[i].At = hcp.PowerPaused, false, w.at(300+i)
	}
	w.check(w.store.PutObserved(w.ctx, observed), "observe")
	check("observed while down")
	w.check(w.store.PutReachability(w.ctx, clusterC, up), "up")
	check("one cluster up")
	w.must(persistence.Commit{DropObserved: []hcp.VMID{observed[0].VM, observed[1].VM, "vm_none"}})
	check("dropped by a commit of nobody")
}

// agreeOnStates compares, for every state, what the filter lists with what the
// views say.
func (w *world) agreeOnStates(when string) {
	w.t.Helper()
	want := map[hcp.State][]hcp.VMID{}
	for _, k := range w.readAll(persistence.VMFilter{WithDeleted: true}, 1000) {
		state := k.View().State
		want[state] = append(want[state], k.VM.ID)
	}
	for _, state := range hcp.States() {
		for _, f := range []persistence.VMFilter{{State: state, WithDeleted: true}, {State: state, Project: projectP}} {
			var got []hcp.VMID
			for _, k := range w.readAll(f, 97) {
				got = append(got, k.VM.ID)
			}
			if !slices.Equal(want[state], got) {
				w.t.Errorf("%s: %d VMs are listed as %s, the views say %d", when, len(got), state, len(want[state]))
			}
		}
	}
}

func (s *suite) TestADeadClusterCostsOneWrite(t *testing.T) {
	w := s.world(t)
	for range 50 {
		w.must(w.insert(w.vm(active)))
	}
	before := w.store.Stats()
	w.check(w.store.PutReachability(w.ctx, clusterC, hcp.Reachability{Reason: "unreachable", ChangedAt: w.at(1), LastGoodAt: w.at(0), Unreached: []string{"h1"}}), "down")
	after := w.store.Stats()
	w.same("flushes", int64(1), after.OtherFlushes-before.OtherFlushes+after.Groups-before.Groups)
	w.same("unknown", 50, len(w.readAll(persistence.VMFilter{Project: projectP, State: hcp.StateUnknown}, 20)))
	w.same("running", 0, len(w.readAll(persistence.VMFilter{Project: projectP, State: hcp.StateRunning}, 20)))
	k := ok(w.store.ListVMs(w.ctx, persistence.VMFilter{Page: page(1)}))(w)[0]
	w.same("reachability", &hcp.Reachability{Reason: "unreachable", ChangedAt: w.at(1), LastGoodAt: w.at(0), Unreached: []string{"h1"}}, k.Reachability)
	w.same("map", map[hcp.ClusterID]hcp.Reachability{clusterC: *k.Reachability}, ok(w.store.Reachability(w.ctx))(w))
}

func (s *suite) TestJobsAreFilteredAndPaged(t *testing.T) {
	w := s.world(t)
	v, q := w.vm(), w.vm(func(v *hcp.VM) { v.Project, v.Cluster = projectQ, clusterD })
	var all []hcp.Job
	for _, vm := range []hcp.VM{v, q} {
		var jobs []hcp.Job
		for i := range 20 {
			jobs = append(jobs, w.job(vm, hcp.JobKinds()[i%7], int64(i), func(j *hcp.Job) {
				j.CreatedAt, j.State = w.at(i/4), hcp.JobStates()[i%8]
			}))
		}
		all = append(all, jobs...)
		w.must(persistence.Commit{Actor: vmActor(vm.ID), VM: &vm, Jobs: jobs})
	}
	for _, f := range []persistence.JobFilter{{}, {Project: projectP}, {VM: q.ID}, {Cluster: clusterD}, {Kind: hcp.JobStart}, {State: hcp.JobFailed},
		{Project: projectP, Kind: hcp.JobCreate, State: hcp.JobQueued}, {Project: projectP, VM: q.ID}} {
		want := 0
		for _, j := range all {
			if (f.Project == "" || f.Project == j.Project) && (f.VM == "" || f.VM == j.VM) && (f.Cluster == "" || f.Cluster == j.Cluster) &&
				(f.Kind == "" || f.Kind == j.Kind) && (f.State == "" || f.State == j.State) {
				want++
			}
		}
		seen := map[hcp.JobID]bool{}
		last := persistence.Position{CreatedAt: time.Unix(1<<40, 0), ID: "z"}
		f.Page = page(3)
		for {
			jobs := ok(w.store.ListJobs(w.ctx, f))(w)
			for _, j := range jobs {
				if j.CreatedAt.After(last.CreatedAt) || j.CreatedAt.Equal(last.CreatedAt) && string(j.ID) >= last.ID {
					t.Fatalf("%+v: out of order", f)
				}
				seen[j.ID], last = true, persistence.Position{CreatedAt: j.CreatedAt, ID: string(j.ID)}
			}
			if len(jobs) < 3 {
				break
			}
			f.Page.After = &last
		}
		if len(seen) != want {
			t.Errorf("%+v: %d jobs, want %d", f, len(seen), want)
		}
	}
}
