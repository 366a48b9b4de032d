package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/fault"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

func TestARestartAtAnyMomentEndsTheSame(t *testing.T) {
	// The node stops anywhere in a create, stop, start or delete, and another takes up
	// its jobs: each ends as it would have, with one machine or none.
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for round := range 8 {
		pause := time.Duration(random.IntN(120)) * time.Millisecond
		t.Run(fmt.Sprintf("%d after %s", round, pause), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			for _, op := range []simapi.Op{"clone", "power_on", "power_off", "delete"} {
				b.must(b.sim.Delay(context.Background(), op, 40*time.Millisecond))
			}
			var vm hcp.VMID
			for _, verb := range []hcp.Verb{hcp.VerbCreate, hcp.VerbStop, hcp.VerbStart, hcp.VerbDelete} {
				var a hcp.Answer
				if verb == hcp.VerbCreate {
					a = b.create("web")
					vm = a.VM
				} else {
					a = b.do(hcp.Command{Verb: verb, VM: vm, Stop: &hcp.StopVM{Mode: hcp.StopForce}})
				}
				over := make(chan struct{})
				time.AfterFunc(pause, func() { close(over) })
				<-over
				b.restart()
				if job := b.final(a.Job); job.State != hcp.JobSucceeded {
					t.Fatalf("%s: %s; error %+v", verb, stepsOf(job), job.Error)
				}
				want := 1
				if verb == hcp.VerbDelete {
					want = 0
				}
				if n := len(b.machines()); n != want {
					t.Errorf("after %s: %d machines, want %d", verb, n, want)
				}
				b.balanced()
			}
		})
	}
}

func TestADeleteDuringACreateEndsWithNothing(t *testing.T) {
	// A delete at any moment of a create: the create is cancelled or done, the delete
	// succeeds, nothing is left.
	for _, pause := range []time.Duration{0, 10, 30, 60, 100, 150, 250} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.must(b.sim.Delay(context.Background(), "clone", 100*time.Millisecond))
			a := b.create("web")
			over := make(chan struct{})
			time.AfterFunc(pause*time.Millisecond, func() { close(over) })
			<-over
			d := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: a.VM})
			if job := b.final(d.Job); job.State != hcp.JobSucceeded {
				t.Fatalf("delete: %s; error %+v", stepsOf(job), job.Error)
			}
			if job := b.final(a.Job); job.State != hcp.JobCancelled && job.State != hcp.JobSucceeded {
				t.Errorf("create: %s", stepsOf(job))
			}
			if n := len(b.machines()); n != 0 {
				t.Errorf("%d machines are left", n)
			}
			if v := b.vm(a.VM); v.Lifecycle != hcp.LifecycleDeleted {
				t.Errorf("the VM is %s", v.Lifecycle)
			}
			b.balanced()
		})
	}
}

func TestALateMachineIsResidueAndGoes(t *testing.T) {
	// A create hung, HCP gave up, and the machine came into being later: the sweep finds
	// it by our marker on a failed VM and removes it.
	t.Parallel()
	b := newBundle(t)
	b.jobs.StepTimeout = 300 * time.Millisecond
	b.restart()
	b.must(b.sim.Hang(context.Background(), "clone", 1))
	a := b.create("web")
	job := b.final(a.Job)
	if job.State != hcp.JobFailed || job.Error.Code != hcp.CodeProviderTimeout || job.Error.Details["call_started_at"] == nil {
		t.Fatalf("%s; error %+v", stepsOf(job), job.Error)
	}
	if _, err := b.sim.Release(context.Background(), "clone"); err != nil {
		t.Fatal(err)
	}
	b.eventually("the late machine is there and goes again", func() bool {
		v := b.vm(a.VM)
		return v.LastJob != nil && v.LastJob.Kind == hcp.JobCleanup && v.LastJob.State == hcp.JobSucceeded && len(b.machines()) == 0
	})
	b.balanced()
}

func TestAnActorLearnsWhatHappenedBehindItsBack(t *testing.T) {
	// Somebody stopped the machine by hand: the record follows within a sweep, and a
	// start is not refused as done already.
	t.Parallel()
	b := newBundle(t)
	a := b.create("web")
	b.final(a.Job)
	if _, err := b.sim.OOB(context.Background(), simapi.OOBRequest{Verb: "stop", VM: string(a.VM)}); err != nil {
		t.Fatal(err)
	}
	b.eventually("the record says stopped", func() bool { return b.vm(a.VM).Power == hcp.PowerStopped })
	s := b.do(hcp.Command{Verb: hcp.VerbStart, VM: a.VM})
	if job := b.final(s.Job); job.State != hcp.JobSucceeded {
		t.Fatalf("start: %s", stepsOf(job))
	}
	b.balanced()
}

func TestTwoMachinesWithOneMarkerAreTouchedByNobody(t *testing.T) {
	// Somebody copied a machine, marker and all: an undo that finds two does not guess
	// which is whose; it names what is left and a person decides.
	t.Parallel()
	b := newBundle(t)
	b.faults.Set(fault.Rule{Op: "Start", When: fault.Before, Err: refusedByProvider})
	b.must(b.sim.Delay(context.Background(), "clone", 50*time.Millisecond))
	v := b.newVM("web")
	if _, err := b.sim.OOB(context.Background(), simapi.OOBRequest{Verb: "create", Name: "copy", Marker: string(v.ID)}); err != nil {
		t.Fatal(err)
	}
	a := b.do(hcp.Command{Verb: hcp.VerbCreate, VM: v.ID, Create: &hcp.CreateVM{VM: v, Claim: v.Flavor.Sizes(), Start: true}})
	job := b.final(a.Job)
	if job.State != hcp.JobNeedsAttention || len(job.Residue) == 0 {
		t.Fatalf("%s; residue %v", stepsOf(job), job.Residue)
	}
	if n := len(b.machines()); n != 2 {
		t.Errorf("%d machines, want both untouched", n)
	}
}
