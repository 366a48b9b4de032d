package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
)

// vmCondition is what `vm wait --for` waits for: any of it.
type vmCondition struct {
	text    string
	states  []hcp.State
	address bool
	deleted bool
}

func parseCondition(s string) (vmCondition, error) {
	c := vmCondition{text: s}
	switch {
	case s == "address":
		c.address = true
		return c, nil
	case s == "deleted":
		c.deleted = true
		return c, nil
	}
	words, ok := strings.CutPrefix(s, "state=")
	if !ok {
		return c, usage("invalid_flag", "--for is state=STATE[,STATE], address or deleted, not %q", s)
	}
	for _, w := range strings.Split(words, ",") {
		if !slices.Contains(hcp.States(), hcp.State(w)) {
			return c, unknownState(w)
		}
		c.states = append(c.states, hcp.State(w))
	}
	c.deleted = slices.Contains(c.states, hcp.StateDeleted)
	return c, nil
}

func (c vmCondition) holds(v hcp.VMView) bool {
	switch {
	case c.address:
		return len(v.Addresses) > 0
	case c.deleted && v.Lifecycle == hcp.LifecycleDeleted:
		return true
	}
	return slices.Contains(c.states, v.State)
}

// hopeless says why the condition cannot come true by itself any more.
func (c vmCondition) hopeless(v hcp.VMView) bool {
	if v.Activity != "" {
		return false // a job is at work on it
	}
	if v.Lifecycle == hcp.LifecycleDeleted {
		return true
	}
	if v.Lifecycle != hcp.LifecycleError {
		return false
	}
	if c.deleted { // only a delete that failed ends the wait for one
		return v.LastJob != nil && v.LastJob.Kind == hcp.JobDelete && v.LastJob.State.Final()
	}
	return true
}

// vmLookEvery bounds how late the end of a wait is noticed.
const vmLookEvery = 500 * time.Millisecond

func (a *app) waitVM(ctx context.Context, name string, want vmCondition, timeout time.Duration, allowMissing bool) error {
	p, err := a.projectFor(name)
	if err != nil {
		return err
	}
	timed, cancel := context.WithCancelCause(ctx)
	stop := a.clock.AfterFunc(timeout, func() { cancel(errWaitTimedOut) })
	defer func() { stop(); cancel(nil) }()
	w := &vmWaiter{a: a, project: p, ref: name, name: name, want: want, allowMissing: allowMissing}
	for {
		done, err := w.look(timed)
		switch {
		case ctx.Err() != nil:
			return &failure{Code: codeInterrupted, Message: "interrupted while waiting for " + name}
		case errors.Is(context.Cause(timed), errWaitTimedOut):
			return w.timedOut(timeout)
		case err != nil:
			return err
		case done:
			return showOne(a, vmListing, w.last)
		}
		a.pause(timed, vmLookEvery)
	}
}

// vmWaiter looks at one VM again and again.
type vmWaiter struct {
	a            *app
	project      *client.Project
	name         string
	ref          string // the id from the first sight on: a name may pass to another VM
	want         vmCondition
	allowMissing bool
	last         hcp.VMView
}

func (w *vmWaiter) look(ctx context.Context) (done bool, err error) {
	v, err := w.project.GetVM(ctx, w.ref)
	switch {
	case err == nil:
		w.last, w.ref = v, string(v.ID)
		if !w.want.holds(v) && w.want.hopeless(v) {
			return false, w.gaveUp(v)
		}
		return w.want.holds(v), nil
	case isMissing(err) && w.last.ID != "":
		w.last.State, w.last.Lifecycle, w.last.Activity = hcp.StateDeleted, hcp.LifecycleDeleted, ""
		if w.want.deleted {
			return true, nil
		}
		f := w.a.about("vm", w.name, "").failed(err)
		f.Message = fmt.Sprintf("%s was deleted while it was waited for (%s)", w.name, w.want.text)
		f.Try = w.a.commandLine("vm", "list")
		return false, f
	case isMissing(err) && w.want.deleted:
		w.last = hcp.VMView{Name: w.name, State: hcp.StateDeleted, Lifecycle: hcp.LifecycleDeleted}
		if hcp.IsID(hcp.KindVM, w.name) {
			w.last.ID, w.last.Name = hcp.VMID(w.name), ""
			return true, nil
		}
		if w.allowMissing {
			return true, nil
		}
		f := w.a.about("vm", w.name, "").failed(err) // a name says nothing: it may never have been one
		f.Message += "; its id would tell whether it is deleted, --allow-missing takes it for deleted"
		return false, f
	case isMissing(err) && w.allowMissing, isPassing(err):
		return false, nil
	}
	f := w.a.about("vm", w.name, "").failed(err)
	if isMissing(err) {
		f.Message += "; --allow-missing waits for it to appear"
	}
	return false, f
}

func (w *vmWaiter) gaveUp(v hcp.VMView) *failure {
	f := &failure{Code: hcp.CodeConflict, Reason: "wrong_lifecycle", Exit: hcp.ExitJobFailed, Details: map[string]any{"state": v.State},
		Message: fmt.Sprintf("%s is %s and will not come to %s by itself", w.name, v.State, w.want.text),
		Try:     w.a.commandLine("vm", "describe", string(v.ID))}
	if v.Lifecycle == hcp.LifecycleDeleted {
		f.Code, f.Reason, f.Exit = hcp.CodeNotFound, "deleted", hcp.ExitNotFound
	}
	if v.LastJob != nil && v.LastJob.Error != nil {
		f.Code, f.Reason, f.Job = v.LastJob.Error.Code, v.LastJob.Error.Reason, v.LastJob.ID
		f.Message += ": " + v.LastJob.Error.Message
	}
	return f
}

func (w *vmWaiter) timedOut(after time.Duration) *failure {
	state := "it did not exist"
	if w.last.ID != "" {
		state = "it is " + stateText(w.last)
	}
	return &failure{Code: codeWaitTimeout, Message: fmt.Sprintf("waited %s for %s to come to %s; %s", after, w.name, w.want.text, state),
		Hint: "wait longer with --timeout", Try: w.a.commandLine("vm", "explain", w.name)}
}
