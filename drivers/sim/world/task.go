package world

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// keptTasks is how many ended tasks can still be asked after.
const keptTasks = 4096

// task is one piece of work, with what it needs to go on after a restart.
type task struct {
	simapi.Task
	Body  json.RawMessage `json:"body,omitempty"`  // the request, while running
	Due   int64           `json:"due,omitempty"`   // ms; 0: not before its release
	Limbo bool            `json:"limbo,omitempty"` // hung before it began: the world does not know of it yet
	Lost  bool            `json:"lost,omitempty"`  // nobody can ask after it
	Doom  string          `json:"doom,omitempty"`  // the code it will fail with
	act   action
}

func (w *World) newTask(op simapi.Op, act action) *task {
	w.seq.Task++
	w.touchFlag(&w.changed.seq)
	t := &task{Task: simapi.Task{ID: strconv.FormatInt(w.seq.Task, 10), Op: op, State: simapi.TaskRunning}, act: act}
	if act != nil {
		t.Machine = act.target().ID
	}
	return t
}

// keep stores a task that goes on after its call.
func (w *World) keep(t *task, body []byte) {
	t.Body = body
	w.tasks[t.ID] = t
	if t.Due > 0 {
		heap.Push(&w.due, t)
	}
	w.touchTask(t)
}

// begin checks the request, shows what shows while it runs, and locks the machine.
func (w *World) begin(t *task) *simapi.Error {
	if id := t.act.target().ID; id != "" {
		if m := w.machines[id]; m != nil && m.Lock != nil && t.Op != simapi.OpClone {
			if _, err := w.ready(t.act.target()); err != nil {
				return err
			}
			return simapi.Errorf(simapi.CodeLocked, "machine %s is locked by %s", id, m.Lock.Op)
		}
	}
	if err := t.act.begin(w); err != nil {
		return err
	}
	t.Machine = t.act.target().ID
	return nil
}

// lock marks the machine while a task that outlives its call works on it.
func (w *World) lock(t *task) {
	if m := w.machines[t.Machine]; m != nil {
		m.Lock = &simapi.Lock{Task: t.ID, Op: t.Op}
		w.touch(m.ID)
	}
}

// end does the effect of a begun task and unlocks.
func (w *World) end(t *task) {
	var err *simapi.Error
	if t.Doom != "" {
		err = simapi.Errorf(t.Doom, "%s failed, as the control fail asked", t.Op)
		t.act.abort(w)
	} else if err = t.act.effect(w); err == nil {
		w.count(t.Op, 0, 1)
	} else {
		t.act.abort(w)
	}
	if m := w.machines[t.Machine]; m != nil && m.Lock != nil && m.Lock.Task == t.ID {
		m.Lock = nil
		w.touch(m.ID)
	}
	t.State, t.Error, t.Body, t.Due, t.Limbo, t.act = simapi.TaskDone, nil, nil, 0, false, nil
	if err != nil {
		t.State, t.Error = simapi.TaskFailed, err
	}
	w.retire(t)
	w.touchTask(t)
}

// retire keeps an ended task for a while, or not at all when it is lost.
func (w *World) retire(t *task) {
	if t.Lost {
		delete(w.tasks, t.ID)
		return
	}
	w.tasks[t.ID] = t
	w.finished = append(w.finished, t.ID)
	for len(w.finished) > keptTasks {
		delete(w.tasks, w.finished[0])
		w.finished = w.finished[1:]
	}
}

// applyTask takes in a stored task; one that runs gets its request back.
func (w *World) applyTask(t *task) error {
	old := w.tasks[t.ID]
	if t.State != simapi.TaskRunning {
		if old != nil && old.State != simapi.TaskRunning {
			return nil
		}
		if old != nil {
			w.due.remove(old)
			delete(w.tasks, t.ID)
		}
		w.retire(t)
		return nil
	}
	if old != nil {
		w.due.remove(old)
	}
	act, err := decode(t.Op, t.Body)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.ID, err)
	}
	t.act = act
	if m := t.Machine; m != "" {
		act.adopt(m)
	}
	w.tasks[t.ID] = t
	if t.Due > 0 {
		heap.Push(&w.due, t)
	}
	return nil
}

// endDue ends every task whose time has come, in the order of their times.
func (w *World) endDue() {
	for len(w.due) > 0 && w.due[0].Due <= w.now {
		w.end(heap.Pop(&w.due).(*task))
	}
}

// NextDue is when At must be called next for the sake of a running task.
func (w *World) NextDue() (time.Time, bool) {
	if len(w.due) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(w.due[0].Due), true
}

// dueHeap is running tasks by the time they end.
type dueHeap []*task

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].Due < h[j].Due || h[i].Due == h[j].Due && byNumber(h[i].ID, h[j].ID) < 0
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(*task)) }
func (h *dueHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

func (h *dueHeap) remove(t *task) {
	for i, other := range *h {
		if other == t {
			heap.Remove(h, i)
			return
		}
	}
}
