package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// action is one decoded request that changes the world.
type action interface {
	target() simapi.Target
	// begin refuses, or prepares what others see while the task runs.
	begin(w *World) *simapi.Error
	// effect does it. It checks again: much may have happened since begin.
	effect(w *World) *simapi.Error
	// abort takes back what begin showed.
	abort(w *World)
	// adopt gives a stored action the machine id that begin picked.
	adopt(id string)
}

// Outcome says how a call is to be answered.
type Outcome struct {
	Task    simapi.Task   // of a call that changes the world
	Err     *simapi.Error // answer this instead
	DelayMS int           // of a read: answer so much later
	Hang    string        // answer when Release names this task, or never
	Cut     bool          // cut the connection instead of an answer
}

// Do takes one call that changes the world. The order of the faults: hang, fail,
// drop before, noop; then the work; then lose, drop after.
func (w *World) Do(op simapi.Op, body []byte) Outcome {
	act, err := decode(op, body)
	if err != nil {
		return Outcome{Err: err}
	}
	w.count(op, 1, 0)
	f := w.takeFaults(op)
	t := w.newTask(op, act)
	switch {
	case f.hang && !f.hangAnswer:
		t.Limbo = true
		w.keep(t, body)
		return Outcome{Hang: t.ID}
	case f.fail != "" && !f.failInTask:
		return Outcome{Err: simapi.Errorf(f.fail, "%s failed, as the control fail asked", op)}
	case f.dropBefore:
		return Outcome{Cut: true}
	case f.noop:
		t.State = simapi.TaskDone
		return Outcome{Task: t.Task}
	case f.lose == "before":
		return Outcome{Task: t.Task}
	}
	if err := w.begin(t); err != nil {
		return Outcome{Err: err}
	}
	if f.failInTask {
		t.Doom = f.fail
	}
	t.Lost = f.lose == "after"
	answer := t.Task
	switch {
	case f.hang:
		w.lock(t)
		w.keep(t, body)
	case f.delayMS > 0:
		t.Due = w.now + int64(f.delayMS)
		w.lock(t)
		w.keep(t, body)
	default:
		w.end(t)
		// Without delay an error of the effect is the answer, as if it were of begin.
		if t.Error != nil && t.Doom == "" {
			return Outcome{Err: t.Error, Cut: f.dropAfter}
		}
		if !t.Lost && t.Doom == "" {
			answer = t.Task
		}
	}
	answer.Machine = t.Machine
	return Outcome{Task: answer, Cut: f.dropAfter}
}

// Gate takes the faults of one call that only reads; the read itself comes after
// whatever the outcome asks for.
func (w *World) Gate(op simapi.Op) Outcome {
	w.count(op, 1, 0)
	f := w.takeFaults(op)
	switch {
	case f.hang:
		t := w.newTask(op, nil)
		t.Limbo = true
		w.tasks[t.ID] = t
		return Outcome{Hang: t.ID}
	case f.fail != "":
		return Outcome{Err: simapi.Errorf(f.fail, "%s failed, as the control fail asked", op)}
	case f.dropBefore || f.dropAfter:
		return Outcome{Cut: true}
	}
	return Outcome{DelayMS: f.delayMS}
}

// Released is the outcome of a call that hung, once Release has named it.
func (w *World) Released(id string) Outcome {
	t := w.tasks[id]
	if t == nil {
		return Outcome{Cut: true}
	}
	if t.State == simapi.TaskFailed {
		return Outcome{Err: t.Error}
	}
	return Outcome{Task: t.Task}
}

// strict decodes one JSON object and nothing else; no body reads as {}.
func strict(body []byte, into any) *simapi.Error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return simapi.Errorf(simapi.CodeBadRequest, "the body is wrong: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return simapi.Errorf(simapi.CodeBadRequest, "the body holds more than one JSON object")
	}
	return nil
}

// Strict decodes a request as every part of the sim does: unknown fields are refused.
func Strict(body []byte, into any) *simapi.Error { return strict(body, into) }

// decode makes the action of a request.
func decode(op simapi.Op, body []byte) (action, *simapi.Error) {
	var act action
	switch op {
	case simapi.OpClone:
		act = &clone{}
	case simapi.OpConfigure, simapi.OpResize:
		act = &size{op: op}
	case simapi.OpPowerOn, simapi.OpPowerOff, simapi.OpShutdown, simapi.OpReset:
		act = &power{op: op}
	case simapi.OpDelete:
		act = &remove{}
	case simapi.OpSnapshot, simapi.OpRevert, simapi.OpDeleteSnapshot:
		act = &snapshot{op: op}
	case simapi.OpAttach, simapi.OpDetach:
		act = &attach{op: op}
	case simapi.OpCreateVolume:
		act = &createVolume{}
	case simapi.OpDeleteVolume:
		act = &deleteVolume{}
	case simapi.OpOpenConsole, simapi.OpCloseConsole:
		act = &console{op: op}
	case simapi.OpImportImage:
		act = &importImage{}
	default:
		return nil, simapi.Errorf(simapi.CodeNoPath, "there is no operation %q", op)
	}
	return act, strict(body, act)
}
