package node

import (
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/fault"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

func TestADeleteResolvesResidueThatWasNeverThere(t *testing.T) {
	// An undo that could not look names residue and keeps its quota. Nothing is there, and
	// a delete proves it: the quota comes back.
	t.Parallel()
	b := newBundle(t)
	b.faults.Set(fault.Rule{Op: "Create", When: fault.Before, Err: refusedByProvider}, fault.Rule{Op: "Find", Err: refusedByProvider})
	a := b.create("web")
	if job := b.final(a.Job); job.State != hcp.JobNeedsAttention || len(job.Residue) != 1 {
		t.Fatalf("%s; residue %v", stepsOf(job), job.Residue)
	}
	if v := b.vm(a.VM); !v.Holding {
		t.Error("named residue holds nothing")
	}
	b.faults.Set()
	d := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: a.VM})
	if job := b.final(d.Job); job.State != hcp.JobSucceeded {
		t.Fatalf("delete: %s; error %+v", stepsOf(job), job.Error)
	}
	if v := b.vm(a.VM); v.Holding || v.Lifecycle != hcp.LifecycleDeleted {
		t.Errorf("after the delete the VM is %s, holding %v", v.Lifecycle, v.Holding)
	}
	b.balanced()
}

func TestForceEndsAGracefulStopThatTheGuestIgnores(t *testing.T) {
	// The guest ignores every request; a stop with force joins the job that asks it, and
	// the machine is off long before the graceful one would have given up.
	t.Parallel()
	b := newBundle(t)
	a := b.create("web")
	b.final(a.Job)
	b.must(b.sim.CommitNoop(t.Context(), simapi.Op("shutdown"), -1))
	g := b.do(hcp.Command{Verb: hcp.VerbStop, VM: a.VM, Stop: &hcp.StopVM{Mode: hcp.StopGraceful, Timeout: 10 * time.Minute}})
	b.eventually("the guest is asked", func() bool {
		n, err := b.sim.Count(t.Context(), "shutdown")
		return err == nil && n.Calls > 1
	})
	f := b.do(hcp.Command{Verb: hcp.VerbStop, VM: a.VM, Stop: &hcp.StopVM{Mode: hcp.StopForce}})
	if f.Job != g.Job {
		t.Errorf("force made the job %s beside %s", f.Job, g.Job)
	}
	if job := b.final(g.Job); job.State != hcp.JobSucceeded {
		t.Fatalf("%s; error %+v", stepsOf(job), job.Error)
	}
	if v := b.vm(a.VM); v.Power != hcp.PowerStopped {
		t.Errorf("the VM is %s", v.Power)
	}
	b.balanced()
}
