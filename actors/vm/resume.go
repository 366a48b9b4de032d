package vm

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// Resume takes up the job that has the turn after an activation, and Due does so
// when its next attempt has come. What was running when the process ended has an
// unknown outcome: the next try looks before it acts.
func (c *Core) Resume(st State, now time.Time) Decision {
	t := c.begin(st, now)
	job := t.head()
	if job == nil {
		return Decision{State: t.st}
	}
	switch {
	case job.State == hcp.JobQueued:
		t.startHead()
	case job.State == hcp.JobWaiting || !job.NextAttemptAt.IsZero():
		if now.Before(job.NextAttemptAt) {
			return Decision{State: t.st, WakeAt: job.NextAttemptAt}
		}
		t.again(job)
	default:
		t.trail(job, "taken up again by a new activation")
		t.interrupted(job)
	}
	return t.decision()
}

// Due begins the attempt that a waiting job waits for.
func (c *Core) Due(st State, now time.Time) Decision {
	job := firstJob(st)
	if st.Running != nil || job == nil || job.NextAttemptAt.IsZero() {
		return Decision{State: st, Run: nil}
	}
	return c.Resume(st, now)
}

// Hurry begins the next attempt of a job that waits for its provider: it answers
// again.
func (c *Core) Hurry(st State, now time.Time) Decision {
	job := firstJob(st)
	if job == nil || job.NextAttemptAt.IsZero() {
		return Decision{State: st}
	}
	if e := job.Current().Error; e == nil || e.Code != hcp.CodeProviderUnavailable {
		return Decision{State: st}
	}
	t := c.begin(st, now)
	t.again(t.head())
	return t.decision()
}

func firstJob(st State) *hcp.Job {
	if len(st.Jobs) == 0 {
		return nil
	}
	return &st.Jobs[0]
}

// again starts the next attempt of the current step.
func (t *turn) again(job *hcp.Job) {
	if job.Phase == hcp.PhaseUndo {
		t.tryUndo(job)
		return
	}
	t.beginStep(job, job.Step)
}

// interrupted takes up a step whose run nobody heard of.
func (t *turn) interrupted(job *hcp.Job) {
	if job.Phase == hcp.PhaseUndo {
		job.Current().UndoTries-- // the interrupted try does not count
		t.tryUndo(job)
		return
	}
	step := job.Current()
	if step.Task != nil {
		t.beginStep(job, job.Step)
		return
	}
	if t.Kinds[job.Kind].Steps[job.Step].Makes {
		step.Unknown = true
		step.LookUntil = t.now.Add(t.Settle(job.Cluster))
	}
	t.beginStep(job, job.Step)
}

// Notice is what an inventory sweep saw and the VM's record does not say.
type Notice struct {
	Seen    *drivers.Observation // nil: absent
	Missing bool                 // a healthy provider said "not found" when asked directly
	Residue bool                 // our marker on a VM that should have no machine
	At      time.Time
}

// Observe weighs a notice. While a job has the turn the provider's state is its
// business, and the notice is dropped: the next sweep sees again.
func (c *Core) Observe(st State, n Notice, now time.Time) Decision {
	if !st.exists() || len(st.Jobs) > 0 {
		return Decision{State: st}
	}
	t := c.begin(st, now)
	vm := &t.st.VM
	switch {
	case n.Residue:
		gone := vm.Lifecycle == hcp.LifecycleError || vm.Lifecycle == hcp.LifecycleDeleted
		if !gone || !vm.CreateIntent || failedCleanup(st, now) {
			return Decision{State: st}
		}
		t.enqueue(hcp.JobCleanup, hcp.JobParams{})
		t.startHead()
	case vm.Lifecycle != hcp.LifecycleActive:
		return Decision{State: st}
	case n.Missing:
		t.missing()
	case n.Seen != nil && n.At.After(vm.PowerAt):
		known := len(vm.Conditions)
		vm.ClearCondition("missing")
		if n.Seen.Power == vm.Power && len(vm.Conditions) == known {
			return Decision{State: st}
		}
		vm.Power, vm.PowerAt = n.Seen.Power, n.At
	default:
		return Decision{State: st}
	}
	return t.decision()
}

// cleanupPause is how long HCP lets residue be that it could not remove.
const cleanupPause = 15 * time.Minute

// failedCleanup reports whether a cleanup failed so lately that another would
// only fail again; each sweep asks for one.
func failedCleanup(st State, now time.Time) bool {
	last := st.Last
	return last != nil && last.Kind == hcp.JobCleanup && last.State != hcp.JobSucceeded && now.Sub(last.FinishedAt) < cleanupPause
}
