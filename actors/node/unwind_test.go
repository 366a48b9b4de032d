package node

import (
	"fmt"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/fault"
)

var (
	refusedByProvider = hcp.Errorf(hcp.CodeInternal, "planted", "planted by the test")
	awayForAMoment    = hcp.Errorf(hcp.CodeProviderUnavailable, "busy", "planted by the test")
	nobodyKnows       = hcp.Errorf(hcp.CodeOutcomeUnknown, "planted", "planted by the test")
)

// createCalls are the mutating and verifying calls of a create, in order.
var createCalls = []string{"Prepare", "Create", "Start", "Get"}

func TestEveryFailureOfACreateUnwinds(t *testing.T) {
	// A create that fails at any call, before or after its effect, leaves nothing: no
	// machine, no quota, no capacity; and the VM says why.
	for _, op := range createCalls {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s %s", op, []string{"before", "after"}[when]), func(t *testing.T) {
				t.Parallel()
				b := newBundle(t)
				b.faults.Set(fault.Rule{Op: op, Nth: b.faults.Calls(op) + 1, When: when, Err: refusedByProvider})
				a := b.create("web")
				job := b.final(a.Job)
				if job.State != hcp.JobFailed || job.Error == nil || job.Error.Reason != "planted" || len(job.Residue) > 0 {
					t.Fatalf("%s; error %+v, residue %v", stepsOf(job), job.Error, job.Residue)
				}
				if v := b.vm(a.VM); v.State() != hcp.StateError || v.Ref != nil || v.Holding || v.LastJob.Error == nil {
					t.Errorf("the VM is %s, ref %v, holding %v", v.State(), v.Ref, v.Holding)
				}
				b.balanced()
			})
		}
	}
}

func TestEveryUnclearOutcomeOfACreateIsLookedUp(t *testing.T) {
	// At any call the answer is lost or the provider is away for a moment: the create
	// succeeds with exactly one machine.
	for _, op := range createCalls {
		for _, when := range []fault.When{fault.Before, fault.After} {
			for name, err := range map[string]*hcp.Error{"unknown": nobodyKnows, "away": awayForAMoment} {
				t.Run(fmt.Sprintf("%s %s %s", op, []string{"before", "after"}[when], name), func(t *testing.T) {
					t.Parallel()
					b := newBundle(t)
					b.faults.Set(fault.Rule{Op: op, Nth: b.faults.Calls(op) + 1, When: when, Err: err})
					a := b.create("web")
					if job := b.final(a.Job); job.State != hcp.JobSucceeded {
						t.Fatalf("%s; error %+v", stepsOf(job), job.Error)
					}
					if n := len(b.machines()); n != 1 {
						t.Errorf("%d machines, want 1", n)
					}
					b.balanced()
				})
			}
		}
	}
}

func TestAnUndoThatFailsIsTriedAgain(t *testing.T) {
	// The undo itself meets trouble: it is repeated until it works, and nothing is left.
	for _, op := range []string{"Find", "Delete", "Stop"} {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s %s", op, []string{"before", "after"}[when]), func(t *testing.T) {
				t.Parallel()
				b := newBundle(t)
				b.faults.Set(
					fault.Rule{Op: "Start", Nth: b.faults.Calls("Start") + 1, When: fault.After, Err: refusedByProvider},
					fault.Rule{Op: op, Nth: b.faults.Calls(op) + 1, When: when, Err: awayForAMoment})
				a := b.create("web")
				job := b.final(a.Job)
				if job.State != hcp.JobFailed || len(job.Residue) > 0 {
					t.Fatalf("%s; residue %v", stepsOf(job), job.Residue)
				}
				if n := len(b.machines()); n != 0 {
					t.Errorf("%d machines are left", n)
				}
				b.balanced()
			})
		}
	}
}

func TestAnUndoThatNeverWorksNamesItsResidue(t *testing.T) {
	// The undo can never delete: the job ends needing a person, names what is left, and
	// the quota stays held for it. A delete that works later resolves all of it.
	t.Parallel()
	b := newBundle(t)
	b.faults.Set(fault.Rule{Op: "Start", When: fault.After, Err: refusedByProvider}, fault.Rule{Op: "Delete", Err: refusedByProvider})
	a := b.create("web")
	job := b.final(a.Job)
	if job.State != hcp.JobNeedsAttention || len(job.Residue) != 1 || job.Residue[0].Kind != "vm" {
		t.Fatalf("%s; residue %v", stepsOf(job), job.Residue)
	}
	if v := b.vm(a.VM); !v.Holding || v.State() != hcp.StateError {
		t.Errorf("the VM is %s, holding %v", v.State(), v.Holding)
	}
	b.balanced()
	b.faults.Set()
	d := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: a.VM})
	if job := b.final(d.Job); job.State != hcp.JobSucceeded {
		t.Fatalf("delete: %s; error %+v", stepsOf(job), job.Error)
	}
	if n := len(b.machines()); n != 0 {
		t.Errorf("%d machines are left", n)
	}
	b.balanced()
}

func TestPowerAndDeleteSurviveEveryUnclearCall(t *testing.T) {
	// Stop, start, reboot and delete meet a lost answer or a busy provider at any call.
	for _, verb := range []hcp.Verb{hcp.VerbStop, hcp.VerbReboot, hcp.VerbDelete} {
		for _, op := range []string{"Stop", "Start", "Delete", "Get"} {
			for _, when := range []fault.When{fault.Before, fault.After} {
				t.Run(fmt.Sprintf("%s %s %s", verb, op, []string{"before", "after"}[when]), func(t *testing.T) {
					t.Parallel()
					b := newBundle(t)
					a := b.create("web")
					b.final(a.Job)
					b.faults.Set(fault.Rule{Op: op, Nth: b.faults.Calls(op) + 1, When: when, Err: nobodyKnows})
					d := b.do(hcp.Command{Verb: verb, VM: a.VM, Stop: &hcp.StopVM{Mode: hcp.StopForce}})
					if job := b.final(d.Job); job.State != hcp.JobSucceeded {
						t.Fatalf("%s; error %+v", stepsOf(job), job.Error)
					}
					b.balanced()
				})
			}
		}
	}
}
