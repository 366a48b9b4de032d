package node

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/fault"
)

func TestAFailedDeleteWhoseNameIsTakenEnds(t *testing.T) {
	// A delete gives the name away at once. When it failed after another VM had taken
	// the name, no commit of its end could be stored, and the actor read and tried for ever.
	b := newBundle(t)
	old := b.create("web")
	b.final(old.Job)
	b.faults.Set(fault.Rule{Op: "Delete", When: fault.Before, Err: refusedByProvider})
	var heir hcp.Answer
	d := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: old.VM})
	heir = b.create("web")
	if job := b.final(d.Job); job.State != hcp.JobNeedsAttention {
		t.Errorf("delete: %s; error %+v", stepsOf(job), job.Error)
	}
	b.final(heir.Job)
	if v, h := b.vm(old.VM), b.vm(heir.VM); v.Lifecycle != hcp.LifecycleError || v.Name == "web" || h.Name != "web" {
		t.Errorf("the old VM is %s and called %q, the new one %q", v.Lifecycle, v.Name, h.Name)
	}
	b.faults.Set()
	again := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: old.VM})
	if job := b.final(again.Job); job.State != hcp.JobSucceeded {
		t.Errorf("delete again: %s; error %+v", stepsOf(job), job.Error)
	}
	b.balanced()
}

func TestManyCallsWithOneKeyGetOneAnswer(t *testing.T) {
	// Calls with one key that arrive together all pass the look for a former answer.
	// The second was then judged against what the first had done: the answer was
	// "generation_moved", "job_over" or "already_in_state" and not the first one's.
	b := newBundle(t)
	a := b.create("web")
	b.final(a.Job)
	name := "web-2"
	for _, cmd := range []hcp.Command{
		{Verb: hcp.VerbUpdate, Update: &hcp.UpdateVM{Name: &name, IfGeneration: b.vm(a.VM).Generation}},
		{Verb: hcp.VerbStop, Stop: &hcp.StopVM{Mode: hcp.StopForce}},
		{Verb: hcp.VerbStart},
		{Verb: hcp.VerbDelete},
	} {
		t.Run(string(cmd.Verb), func(t *testing.T) {
			cmd.VM = a.VM
			cmd.Key = &hcp.IdempotencyKey{Principal: "tester", Project: testProject, Method: http.MethodPost, Path: "/" + string(cmd.Verb), Key: "k", Fingerprint: "f"}
			answers := make([]string, 50)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					got, err := b.ask(cmd)
					answers[i] = fmt.Sprintf("%d %s %v", got.Status, got.Body, err)
					if got.Job != "" && i == 0 {
						b.final(got.Job) // the rest of the batch may come when it is over
					}
				})
			}
			all.Wait()
			late, err := b.ask(cmd)
			for _, got := range append(answers, fmt.Sprintf("%d %s %v", late.Status, late.Body, err)) {
				if got != answers[0] {
					t.Fatalf("one call was answered\n%s\nanother\n%s", answers[0], got)
				}
			}
			if late.Job != "" {
				b.final(late.Job)
			}
		})
	}
}

func TestADeleteKeepsAnUnclearCreateInMind(t *testing.T) {
	// Deleting a VM whose create nobody knows the outcome of closed the create's intent: a
	// machine that came late was listed as a stranger's and never removed.
	b := newBundle(t)
	b.jobs.StepTimeout = 300 * time.Millisecond
	b.restart()
	b.faults.Set(fault.Rule{Op: "Create", When: fault.Before, Err: nobodyKnows})
	a := b.create("web")
	b.final(a.Job)
	if v := b.vm(a.VM); v.Lifecycle != hcp.LifecycleError || !v.CreateIntent {
		t.Fatalf("the VM is %s, with an open intent: %t", v.Lifecycle, v.CreateIntent)
	}
	d := b.do(hcp.Command{Verb: hcp.VerbDelete, VM: a.VM})
	if job := b.final(d.Job); job.State != hcp.JobSucceeded || !b.vm(a.VM).CreateIntent {
		t.Errorf("%s; open intent: %t", stepsOf(job), b.vm(a.VM).CreateIntent)
	}
	b.balanced()
}
