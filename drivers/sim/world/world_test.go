package world

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// replica follows a world through its records, as the journal does.
type replica struct {
	t     *rapid.T
	w     *World
	lines [][]byte
}

func (r *replica) follow(w *World) {
	rec := w.Drain()
	if rec == nil {
		return
	}
	b, err := json.Marshal(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.lines = append(r.lines, b)
	apply(r.t, r.w, b)
}

func apply(t *rapid.T, w *World, line []byte) {
	var rec Record
	if err := json.Unmarshal(line, &rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(&rec); err != nil {
		t.Fatal(err)
	}
}

// dump is everything that must survive, in an order of its own.
func dump(w *World) string {
	tasks := map[string]task{}
	for id, t := range w.tasks {
		if t.act == nil && t.State == simapi.TaskRunning {
			continue // a hung read dies with its connection
		}
		c := *t
		c.act = nil
		tasks[id] = c
	}
	var hosts []simapi.Host
	for _, h := range w.hosts {
		hosts = append(hosts, *h)
	}
	b, _ := json.Marshal(map[string]any{"machines": w.machines, "hosts": hosts, "tasks": tasks, "finished": w.finished, "volumes": w.volumes,
		"consoles": w.consoles, "omit": w.omit, "settings": w.settings, "seq": w.seq, "images": w.images})
	return string(b)
}

var ids = []string{"1", "2", "3", "4"}

// body is a plausible request of op; many are refused.
func body(t *rapid.T, op simapi.Op) string {
	id := rapid.SampledFrom(ids).Draw(t, "id")
	marker := ""
	if rapid.Bool().Draw(t, "expect") {
		marker = fmt.Sprintf(`,"expect_marker":"vm_%s"`, id)
	}
	vol := rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "volume")
	switch op {
	case simapi.OpClone:
		return fmt.Sprintf(`{"id":"%s","name":"n","marker":"vm_%s","image":"debian-12","vcpus":1,"memory_mib":%d,"disk_gib":1}`, id, id,
			rapid.SampledFrom([]int{10, 100, 5000}).Draw(t, "memory"))
	case simapi.OpConfigure, simapi.OpResize:
		return fmt.Sprintf(`{"id":"%s","memory_mib":%d%s}`, id, rapid.SampledFrom([]int{10, 300, 900}).Draw(t, "memory"), marker)
	case simapi.OpSnapshot, simapi.OpRevert, simapi.OpDeleteSnapshot:
		return fmt.Sprintf(`{"id":"%s","snapshot":"s"%s}`, id, marker)
	case simapi.OpAttach, simapi.OpDetach:
		return fmt.Sprintf(`{"id":"%s","volume":"%s"%s}`, id, vol, marker)
	case simapi.OpCreateVolume:
		return fmt.Sprintf(`{"volume":"%s","gib":1}`, vol)
	case simapi.OpDeleteVolume:
		return fmt.Sprintf(`{"volume":"%s"}`, vol)
	case simapi.OpOpenConsole, simapi.OpCloseConsole:
		return fmt.Sprintf(`{"id":"%s","console":"c"%s}`, id, marker)
	case simapi.OpImportImage:
		return fmt.Sprintf(`{"name":"i%s","sha256":"%064d"}`, id, 1)
	}
	return fmt.Sprintf(`{"id":"%s"%s}`, id, marker)
}

// Any history of calls, faults, strangers and time gives the same world from its
// journal, from a snapshot, and from a snapshot with the journal applied again;
// and at each moment the books are right.
func TestJournalAndSnapshotAreTheWorld(t *testing.T) {
	var mutating []simapi.Op
	for _, op := range simapi.Ops() {
		if op.Mutating() {
			mutating = append(mutating, op)
		}
	}
	// Without machines most calls are refused, so more are made than anything else.
	mutating = append(mutating, slices.Repeat([]simapi.Op{simapi.OpClone, simapi.OpPowerOn, simapi.OpAttach}, 4)...)
	rapid.Check(t, func(t *rapid.T) {
		w := New(Config{Hosts: []simapi.Host{{Name: "a", VCPUs: 9, MemoryMiB: 1000, DiskGiB: 9}, {Name: "b", VCPUs: 9, MemoryMiB: 1000, DiskGiB: 9}}})
		r := &replica{t: t, w: Restore()}
		if err := w.Snapshot(func(rec *Record) error {
			b, err := json.Marshal(rec)
			apply(t, r.w, b)
			r.lines = append(r.lines, b)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(1_000_000)
		for range rapid.IntRange(20, 80).Draw(t, "steps") {
			w.At(now)
			r.w.now = w.now
			step(t, w, mutating)
			r.follow(w)
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			check(t, w)
		}
		want := dump(w)
		if got := dump(r.w); got != want {
			t.Fatalf("the journal gives\n%s\nthe world is\n%s", got, want)
		}
		if len(r.w.due) != len(w.due) {
			t.Fatalf("by the journal %d tasks are due, in the world %d", len(r.w.due), len(w.due))
		}
		again := Restore()
		if err := w.Snapshot(func(rec *Record) error {
			b, err := json.Marshal(rec)
			apply(t, again, b)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got := dump(again); got != want {
			t.Fatalf("the snapshot gives\n%s\nthe world is\n%s", got, want)
		}
		if len(again.due) != len(w.due) {
			t.Fatalf("%d tasks are due after a restart, %d before", len(again.due), len(w.due))
		}
	})
}

func step(t *rapid.T, w *World, mutating []simapi.Op) {
	op := rapid.SampledFrom(mutating).Draw(t, "op")
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		fault(t, w, op)
	case 1:
		verb := rapid.SampledFrom([]string{"create", "delete", "start", "stop", "set_cpu", "add_disk", "migrate", "unmark", "recycle"}).Draw(t, "verb")
		_, _ = w.OOB(simapi.OOBRequest{Verb: verb, VM: rapid.SampledFrom(ids).Draw(t, "vm"), VCPUs: 3, GiB: 1, Host: "a"})
	case 2:
		w.Release(rapid.SampledFrom([]simapi.Op{"", op}).Draw(t, "released"))
	case 3:
		_ = w.Omit(simapi.OmitRequest{VM: "1", N: rapid.IntRange(-1, 2).Draw(t, "n")})
		_, _ = w.List(simapi.ListRequest{})
		w.Gate(simapi.OpGet)
	default:
		w.Do(op, []byte(body(t, op)))
	}
}

func fault(t *rapid.T, w *World, op simapi.Op) {
	n := rapid.SampledFrom([]int{1, 2, simapi.Forever}).Draw(t, "n")
	kind := rapid.IntRange(0, 8).Draw(t, "fault")
	_ = w.SetFault(op, func(s *simapi.OpState) {
		switch kind {
		case 0:
			s.DelayMS = rapid.IntRange(0, 40).Draw(t, "delay")
		case 1:
			s.Fail = &simapi.FailFault{OpFault: simapi.OpFault{Op: op, N: n}, Code: "internal", InTask: rapid.Bool().Draw(t, "in task")}
		case 2:
			s.DropBefore = n
		case 3:
			s.DropAfter = n
		case 4:
			s.Noop = n
		case 5:
			s.Hang = &simapi.HangFault{Op: op, N: max(n, 0), Answer: rapid.Bool().Draw(t, "answer")}
		case 6:
			s.Lose = &simapi.LoseFault{OpFault: simapi.OpFault{Op: op, N: n}, When: rapid.SampledFrom([]string{"before", "after"}).Draw(t, "when")}
		}
	})
	if kind == 7 {
		w.Clear()
	}
}

// check proves what must hold between any two calls.
func check(t *rapid.T, w *World) {
	used := map[string]simapi.Sizes{}
	for id, m := range w.machines {
		u := used[m.Host]
		u.VCPUs += int64(m.VCPUs)
		u.MemoryMiB += int64(m.MemoryMiB)
		u.DiskGiB += int64(m.DiskGiB)
		used[m.Host] = u
		if m.ID != id {
			t.Fatalf("machine %s is filed under %s", m.ID, id)
		}
		if m.Lock != nil {
			if k := w.tasks[m.Lock.Task]; k == nil || k.State != simapi.TaskRunning || k.Machine != id {
				t.Fatalf("machine %s is locked by task %s, which is %+v", id, m.Lock.Task, k)
			}
		}
		if m.Creating && m.Lock == nil {
			t.Fatalf("machine %s is being cloned by nobody", id)
		}
		for _, v := range m.Volumes {
			if w.volumes[v].Machine != id {
				t.Fatalf("machine %s holds volume %s, which says %q", id, v, w.volumes[v].Machine)
			}
		}
	}
	for _, h := range w.hosts {
		if h.Used != used[h.Name] {
			t.Fatalf("host %s counts %+v, its machines use %+v", h.Name, h.Used, used[h.Name])
		}
	}
	marked := map[string][]string{}
	for marker, list := range w.markers {
		for _, id := range list {
			if m := w.machines[id]; m == nil || m.Marker != marker {
				t.Fatalf("marker %s points at %s, which is %+v", marker, id, m)
			}
			marked[marker] = append(marked[marker], id)
		}
	}
	n := 0
	for _, m := range w.machines {
		if m.Marker != "" {
			n++
		}
	}
	for _, list := range marked {
		n -= len(list)
	}
	if n != 0 {
		t.Fatalf("%d marked machines are not in the index", n)
	}
	if all := w.All(); len(all.Machines) != len(w.machines) {
		t.Fatalf("a list shows %d of %d machines", len(all.Machines), len(w.machines))
	}
}

func TestAddressesAreDistinctAndUsable(t *testing.T) {
	w := New(Config{})
	seen := map[string]bool{}
	for range 100_000 {
		ip := w.nextIP()
		if seen[ip] {
			t.Fatalf("%s is given twice", ip)
		}
		seen[ip] = true
	}
	first := New(Config{})
	if got := []string{first.nextIP(), first.nextIP()}; !reflect.DeepEqual(got, []string{"10.99.0.1", "10.99.0.2"}) {
		t.Errorf("the first addresses are %v", got)
	}
}

func TestEndedTasksAreKeptForAWhile(t *testing.T) {
	w := New(Config{})
	w.At(time.UnixMilli(1))
	for range keptTasks + 10 {
		w.Do(simapi.OpCreateVolume, []byte(`{"volume":"v","gib":1}`))
		w.Do(simapi.OpDeleteVolume, []byte(`{"volume":"v"}`))
		w.Drain()
	}
	if len(w.tasks) != keptTasks || len(w.finished) != keptTasks {
		t.Errorf("%d tasks are kept, want %d", len(w.tasks), keptTasks)
	}
}

// A task that fails at its end must give its lock back in the journal too, or a
// restart finds the machine locked for ever.
func TestLockOfAFailedTaskIsGoneAfterARestart(t *testing.T) {
	w := New(Config{})
	w.At(time.UnixMilli(1))
	w.Do(simapi.OpClone, []byte(`{"id":"1","name":"n","image":"debian-12","vcpus":1,"memory_mib":1,"disk_gib":1}`))
	_ = w.SetFault(simapi.OpPowerOn, func(s *simapi.OpState) { s.Hang = &simapi.HangFault{Answer: true} })
	w.Do(simapi.OpPowerOn, []byte(`{"id":"1"}`))
	_, _ = w.OOB(simapi.OOBRequest{Verb: "start", VM: "1"})
	again := Restore()
	keep := func(r *Record) error {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var c Record
		if err := json.Unmarshal(b, &c); err != nil {
			return err
		}
		return again.Apply(&c)
	}
	w.Drain()
	if err := w.Snapshot(keep); err != nil {
		t.Fatal(err)
	}
	if again.machines["1"].Lock == nil {
		t.Fatal("the machine is not locked while its task hangs")
	}
	ids := w.Release("")
	if len(ids) != 1 || w.tasks[ids[0]].State != simapi.TaskFailed {
		t.Fatalf("release gave %v, want one task that failed because the machine runs already", ids)
	}
	if err := keep(w.Drain()); err != nil {
		t.Fatal(err)
	}
	if w.machines["1"].Lock != nil || again.machines["1"].Lock != nil {
		t.Errorf("the lock is %v, after a restart %v; want none", w.machines["1"].Lock, again.machines["1"].Lock)
	}
}
