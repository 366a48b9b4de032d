package world

import (
	"maps"
	"slices"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// taken is what the faults of an operation do to the call at hand.
type taken struct {
	delayMS               int
	hang, hangAnswer      bool
	fail                  string
	failInTask            bool
	dropBefore, dropAfter bool
	noop                  bool
	lose                  string // "", "before", "after"
}

// takeFaults uses up one hit of each fault that strikes. A fault that ends the
// call leaves those behind it for the next one.
func (w *World) takeFaults(op simapi.Op) taken {
	s, ok := w.settings.Faults[op]
	if !ok {
		return taken{}
	}
	before := s
	t := taken{delayMS: s.DelayMS}
	switch {
	case s.Hang != nil:
		h := *s.Hang
		t.hang, t.hangAnswer = true, h.Answer
		s.Hang = &h
		if h.N > 0 {
			if h.N--; h.N == 0 {
				s.Hang = nil
			}
		}
	case s.Fail != nil:
		f := *s.Fail
		t.fail, t.failInTask = string(f.Code), f.InTask
		s.Fail = &f
		if use(&f.N) && f.N == 0 {
			s.Fail = nil
		}
	case s.DropBefore != 0:
		t.dropBefore = use(&s.DropBefore)
	case s.Noop != 0:
		t.noop = use(&s.Noop)
	default:
		if s.Lose != nil {
			l := *s.Lose
			t.lose = l.When
			s.Lose = &l
			if use(&l.N) && l.N == 0 {
				s.Lose = nil
			}
		}
		t.dropAfter = use(&s.DropAfter)
	}
	if s != before {
		w.setFaults(op, s)
	}
	return t
}

// use takes one of n hits; a negative n never ends.
func use(n *int) bool {
	if *n == 0 {
		return false
	}
	if *n > 0 {
		*n--
	}
	return true
}

func (w *World) setFaults(op simapi.Op, s simapi.OpState) {
	if s == (simapi.OpState{}) {
		delete(w.settings.Faults, op)
	} else {
		w.settings.Faults[op] = s
	}
	w.touchFlag(&w.changed.settings)
}

// SetFault changes the faults of one operation, or of all when op is "*".
func (w *World) SetFault(op simapi.Op, change func(*simapi.OpState)) *simapi.Error {
	ops := []simapi.Op{op}
	if op == "*" {
		ops = simapi.Ops()
	} else if !op.Known() {
		return simapi.Errorf(simapi.CodeBadRequest, "there is no operation %q", op)
	}
	for _, o := range ops {
		s := w.settings.Faults[o]
		change(&s)
		w.setFaults(o, s)
	}
	return nil
}

// Clear ends every fault and brings the cluster up. Hung calls stay hung: see Release.
func (w *World) Clear() {
	w.settings.Faults = map[simapi.Op]simapi.OpState{}
	w.settings.Down = ""
	w.touchFlag(&w.changed.settings)
	clear(w.omit)
	w.touchFlag(&w.changed.omit)
	for _, h := range w.hosts {
		h.Down = false
	}
	w.touchFlag(&w.changed.hosts)
}

// Release ends hang for the operation ("" for all) and lets every hung call go
// on, the oldest first: its effect comes now. It names the tasks.
func (w *World) Release(op simapi.Op) []string {
	for o, s := range maps.Clone(w.settings.Faults) {
		if s.Hang != nil && (op == "" || op == o) {
			s.Hang = nil
			w.setFaults(o, s)
		}
	}
	var ids []string
	for id, t := range w.tasks {
		if t.State == simapi.TaskRunning && t.Due == 0 && (op == "" || op == t.Op) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, byNumber)
	for _, id := range ids {
		w.release(w.tasks[id])
	}
	return ids
}

func (w *World) release(t *task) {
	if t.act == nil { // a read: it begins only now
		delete(w.tasks, t.ID)
		return
	}
	if t.Limbo {
		if err := w.begin(t); err != nil {
			t.State, t.Error, t.Body, t.Limbo, t.act = simapi.TaskFailed, err, nil, false, nil
			w.retire(t)
			w.touchTask(t)
			return
		}
	}
	w.end(t)
}

// SetDown makes the API refuse ("refuse") or cut ("cut") every call; "" ends it.
func (w *World) SetDown(mode string) {
	w.settings.Down = mode
	w.touchFlag(&w.changed.settings)
}

// Down is how the API is down, "" when it is up.
func (w *World) Down() string { return w.settings.Down }

// SetBoot sets the time from power on to the address, for boots from now on.
func (w *World) SetBoot(ms int) {
	w.settings.BootMS = ms
	w.touchFlag(&w.changed.settings)
}

// SetPassword sets what Password compares with; "" accepts any.
func (w *World) SetPassword(p string) {
	w.settings.Password = p
	w.touchFlag(&w.changed.settings)
}

// Password reports whether a login with it is good.
func (w *World) Password(p string) bool { return w.settings.Password == "" || w.settings.Password == p }

// Counts returns the counters of every operation that was called, and the open consoles.
func (w *World) Counts() simapi.CountAnswer {
	return simapi.CountAnswer{Ops: maps.Clone(w.counts), OpenConsoles: len(w.consoles)}
}

// ResetCounts starts every counter anew.
func (w *World) ResetCounts() {
	for op := range w.counts {
		w.counts[op] = simapi.Count{}
		w.changed.counts[op] = true
	}
	w.changed.any = true
}

// Status shows every switch and what is at work.
func (w *World) Status() simapi.StatusAnswer {
	a := simapi.StatusAnswer{Down: w.settings.Down, BootMS: w.settings.BootMS, Faults: maps.Clone(w.settings.Faults), Running: []simapi.Task{}}
	for _, t := range w.tasks {
		if t.State == simapi.TaskRunning {
			a.Running = append(a.Running, t.Task)
		}
	}
	slices.SortFunc(a.Running, func(x, y simapi.Task) int { return byNumber(x.ID, y.ID) })
	for _, h := range w.hosts {
		a.Hosts = append(a.Hosts, *h)
	}
	return a
}
