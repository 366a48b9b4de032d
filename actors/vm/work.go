package vm

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/saga"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/persistence"
)

// start begins a run, after its pause.
func (a *Actor) start(run *Run) {
	a.runID++
	a.out = run
	if run.After <= 0 {
		a.submit(*run)
		return
	}
	id := a.runID
	a.deps.Clock.AfterFunc(run.After, func() { a.self.Tell(due{id}) })
}

// submit hands the run to the provider's workers. Everything it needs is copied:
// the actor goes on meanwhile.
func (a *Actor) submit(run Run) {
	job := a.state.Jobs[0].Clone()
	vm := a.state.VM.Clone()
	def := a.deps.Core.Kinds[job.Kind]
	id := a.runID
	turn := (&turn{Core: a.deps.Core, st: a.state}).turnOf(&job)
	epoch := a.epoch
	a.deps.Workers.Submit(vm.Cluster, provider.Work{
		VM: vm.ID, Project: vm.Project, Kind: job.Kind, Mutates: run.Undo || !def.Steps[run.Step].Reads,
		Do: func(ctx context.Context, s provider.Session) error {
			w := worker{a: a, vm: vm, job: job, run: run, session: s, turn: turn, epoch: epoch}
			results := w.do(ctx, def)
			a.self.Tell(ran{run: run, id: id, results: results})
			if last := results[len(results)-1]; last.Err != nil {
				return last.Err
			}
			return nil
		},
		Refused: func(err *hcp.Error) {
			now := a.deps.Clock.Now()
			r := saga.StepResult{Index: run.Step, StartedAt: now, EndedAt: now, Result: saga.Fail(err)}
			a.self.Tell(ran{run: run, id: id, results: []saga.StepResult{r}})
		},
	})
}

// worker is one run outside of the mailbox.
type worker struct {
	a       *Actor
	vm      hcp.VM
	job     hcp.Job
	run     Run
	session provider.Session
	turn    persistence.Turn
	epoch   int64
}

func (w *worker) do(ctx context.Context, def saga.Definition) []saga.StepResult {
	if w.run.Undo {
		return []saga.StepResult{saga.RunUndo(ctx, def, w.run.Step, w.input)}
	}
	results := saga.Run(ctx, def, w.run.Step, w.input)
	for _, r := range results {
		if r.Change.Observed != nil && w.session.Report != nil {
			w.session.Report(*r.Change.Observed)
		}
	}
	return results
}

// input builds what step i may look at.
func (w *worker) input(i int, soFar saga.Change) saga.Input {
	vm := w.vm.Clone()
	soFar.Apply(&vm)
	step := w.job.Steps[i]
	attempt := step.Attempts
	name := step.Name
	round := 0
	switch {
	case w.run.Undo:
		attempt, name, round = step.UndoTries, "undo:"+step.Name, w.run.Round
	case i == w.run.Step:
		round = w.run.Round
	default:
		attempt++ // joined to the step before; its begin is stored with its end
	}
	return saga.Input{
		VM: vm, Job: w.job, Step: step, Round: round, Settle: w.session.Info.SettleTime, Now: w.a.deps.Clock.Now,
		Token:  drivers.Token{VM: vm.ID, Job: w.job.ID, Step: name, Attempt: max(attempt, 1)},
		Driver: w.driver(step),
		Spec:   func() (drivers.Spec, error) { return w.a.spec(vm) },
	}
}

// driver is the session's driver behind the fence of this run.
func (w *worker) driver(step hcp.Step) drivers.Driver {
	deps := w.a.deps
	timeout := min(w.session.CallTimeout, deps.Core.Policy.StepTimeout)
	if left := step.Deadline.Sub(deps.Clock.Now()); !w.run.Undo && !step.Deadline.IsZero() && left > 0 {
		timeout = min(timeout, left)
	}
	fence := persistence.Fence{Node: deps.Node, Incarnation: deps.Incarnation, Cluster: w.vm.Cluster,
		ClusterEpoch: w.session.ClusterEpoch, VM: w.vm.ID, VMEpoch: w.epoch, Turn: w.turn}
	return &provider.Fenced{
		Inner: w.session.Driver, Log: &w.a.calls, Now: deps.Clock.Now, Timeout: timeout,
		Check: func(ctx context.Context) error {
			err := deps.Store.CheckFence(ctx, fence)
			if _, fenced := persistence.RefusalOf(err); fenced {
				return hcp.Errorf(hcp.CodeUnavailable, "fenced", "the intent of this call no longer stands")
			}
			return err
		},
		Observe: func(op string, took time.Duration, err error) {
			if deps.Called != nil {
				deps.Called(w.vm.Cluster, op, took, err)
			}
		},
	}
}

// spec opens what is sealed and describes the machine for the driver.
func (a *Actor) spec(vm hcp.VM) (drivers.Spec, error) {
	s := drivers.Spec{
		VM: vm.ID, Name: vm.ProviderName, Project: vm.Project, Hostname: vm.Hostname, VCPUs: vm.Flavor.VCPUs,
		MemoryMiB: vm.Flavor.MemoryMiB, DiskGiB: vm.Flavor.DiskGiB, Image: vm.Image.Artefact, Firmware: vm.Image.Firmware,
		Pool: vm.Pool, Networks: vm.Networks, SSHKeys: vm.SSHKeys,
	}
	if len(vm.UserData) > 0 {
		plain, err := a.deps.Sealer.Open(vm.UserData, hcp.UserDataContext(vm.ID))
		if err != nil {
			return drivers.Spec{}, hcp.Errorf(hcp.CodeInternal, "unseal", "the VM's user data could not be opened").WithCause(err)
		}
		s.UserData = plain
	}
	return s, nil
}
