package api_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// owner stands in for the actors: it checks what every command must carry and
// accepts as a VM actor does, in one commit of the real store.
type owner struct {
	w  *world
	mu sync.Mutex
	// refuse, when set, answers in place of the actor.
	refuse func(hcp.Command) (hcp.Answer, error, bool)
	seen   []hcp.Command
}

func (o *owner) commands() []hcp.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]hcp.Command(nil), o.seen...)
}

func (o *owner) last() hcp.Command {
	all := o.commands()
	if len(all) == 0 {
		return hcp.Command{}
	}
	return all[len(all)-1]
}

func (o *owner) Do(ctx context.Context, c hcp.Command) (hcp.Answer, error) {
	t := o.w.t
	if !hcp.IsID(hcp.KindCommand, string(c.ID)) || c.Cluster == "" || c.Deadline.IsZero() {
		t.Errorf("the command %s lacks id, cluster or deadline", c.Verb)
	}
	if c.Call.Actor == "" || c.Call.Action == "" || c.Call.TraceID == "" || !hcp.IsID(hcp.KindRequest, string(c.Call.RequestID)) {
		t.Errorf("the command %s does not say who called: %+v", c.Verb, c.Call)
	}
	if _, has := ctx.Deadline(); !has {
		t.Errorf("the command %s has no deadline in its context", c.Verb)
	}
	o.mu.Lock()
	o.seen = append(o.seen, c)
	refuse := o.refuse
	o.mu.Unlock()
	if refuse != nil {
		if a, err, mine := refuse(c); mine {
			return a, err
		}
	}
	switch c.Verb {
	case hcp.VerbCreate:
		return o.accept(ctx, c, c.Create.VM, persistence.Commit{Holds: []persistence.QuotaChange{{VM: c.VM,
			Subjects: hcp.SubjectsOf(c.Create.VM.Org, c.Create.VM.Project, c.Create.VM.Owner), Amounts: hcp.HoldsOf(c.Create.VM.Flavor)}}}, hcp.JobCreate)
	case hcp.VerbUpdate:
		return o.update(ctx, c)
	case hcp.VerbExplain:
		body, err := json.Marshal(hcp.Explanation{VM: c.VM, State: hcp.StateCreating, Summary: "at work", Cluster: &hcp.Reachability{Reason: "secret-endpoint"},
			InFlight: &hcp.InFlightCall{Op: "create", Answer: "secret-answer"}, LastCall: &hcp.InFlightCall{Op: "find", Answer: "secret-answer"}})
		return hcp.Answer{Status: 200, Body: body}, err
	case hcp.VerbClusterOrphans:
		body, err := json.Marshal(hcp.OrphanList{Items: []hcp.Orphan{{Name: "stray", Power: hcp.PowerRunning, Ref: hcp.ProviderRef{ID: "7"}}}})
		return hcp.Answer{Status: 200, Body: body}, err
	case hcp.VerbClusterPut, hcp.VerbClusterMaintenance, hcp.VerbClusterDelete, hcp.VerbClusterProbe, hcp.VerbClusterCredentials:
		return o.cluster(ctx, c)
	}
	st, err := o.w.store.LoadVM(ctx, c.VM)
	if err != nil {
		return hcp.Answer{}, err
	}
	kind := map[hcp.Verb]hcp.JobKind{hcp.VerbStart: hcp.JobStart, hcp.VerbStop: hcp.JobStop, hcp.VerbReboot: hcp.JobReboot, hcp.VerbDelete: hcp.JobDelete,
		hcp.VerbRefresh: hcp.JobRefresh, hcp.VerbRetry: hcp.JobCreate, hcp.VerbCancel: hcp.JobRefresh}[c.Verb]
	if c.Verb == hcp.VerbDelete {
		st.VM.Lifecycle = hcp.LifecycleDeleting
	}
	return o.accept(ctx, c, st.VM, persistence.Commit{Epoch: st.Epoch, Seq: st.Seq}, kind)
}

// accept commits the VM, a job, the events, the key and the row of kind call.
func (o *owner) accept(ctx context.Context, c hcp.Command, vm hcp.VM, commit persistence.Commit, kind hcp.JobKind) (hcp.Answer, error) {
	now := o.w.clock.Now()
	job := hcp.Job{ID: hcp.JobID(o.w.ids.New(hcp.KindJob)), Kind: kind, State: hcp.JobQueued, VM: vm.ID, VMName: vm.Name, Region: vm.Region, Zone: vm.Zone,
		Cluster: vm.Cluster, Org: vm.Org, Project: vm.Project, Owner: vm.Owner, Phase: hcp.PhaseForward, CreatedAt: now, Deadline: now, TraceID: c.Call.TraceID,
		Requests: []hcp.Request{{Actor: c.Call.Actor, Via: "api", RequestID: c.Call.RequestID, At: now}}, Steps: []hcp.Step{{Name: "create", State: hcp.StepPending}}}
	vm.Generation++
	vm.LastJob = &hcp.LastJob{ID: job.ID, Kind: job.Kind, State: job.State}
	body, err := hcp.AcceptedBody(hcp.Known{VM: vm}, job)
	if err != nil {
		return hcp.Answer{}, err
	}
	commit.Actor = persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm.ID)}
	commit.VM, commit.Jobs = &vm, []hcp.Job{job}
	commit.Events = []hcp.Event{{ID: hcp.EventID(o.w.ids.New(hcp.KindEvent)), Type: hcp.EventJobQueued, Subject: hcp.LRNOfVM(vm.Region, vm.Project, vm.ID),
		Actor: c.Call.Actor, Time: now, TraceID: c.Call.TraceID, Org: vm.Org, Project: vm.Project, Owner: vm.Owner, VM: vm.ID, Job: job.ID,
		Data: hcp.EventData{Name: vm.Name, JobKind: kind, JobState: job.State}}}
	return o.commit(ctx, c, commit, hcp.Answer{Status: 202, Body: body, VM: vm.ID, Job: job.ID}, vm.Org, vm.Project)
}

func (o *owner) commit(ctx context.Context, c hcp.Command, commit persistence.Commit, a hcp.Answer, org hcp.OrgID, project hcp.ProjectID) (hcp.Answer, error) {
	now := o.w.clock.Now()
	commit.Audit = []hcp.AuditRecord{{ID: hcp.AuditID(o.w.ids.New(hcp.KindAudit)), Kind: hcp.AuditCall, Time: now, Actor: c.Call.Actor, Scope: c.Call.Scope,
		Action: c.Call.Action, Org: org, Project: project, Result: "accepted", Status: a.Status, RequestID: c.Call.RequestID, TraceID: c.Call.TraceID,
		Job: a.Job, Source: c.Call.Source, Method: c.Call.Method, Path: c.Call.Path}}
	if c.Key != nil {
		commit.Key = &persistence.IdempotencyRecord{IdempotencyKey: *c.Key, Status: a.Status, Body: a.Body, VM: a.VM, Job: a.Job, CreatedAt: now, ExpiresAt: now.AddDate(0, 0, 1)}
	}
	err := o.w.store.Commit(ctx, commit)
	if r, refused := persistence.RefusalOf(err); refused {
		if r.Kind == persistence.RefusedKey {
			if r.Record.Fingerprint != c.Key.Fingerprint {
				return hcp.Answer{Fault: hcp.Errorf(hcp.CodeIdempotencyKeyReused, "idempotency_key_reused", "used").Wire()}, nil
			}
			return hcp.Answer{Status: r.Record.Status, Body: r.Record.Body, VM: r.Record.VM, Job: r.Record.Job, Replayed: true}, nil
		}
		return hcp.Answer{Fault: r.Err.Wire()}, nil
	}
	return a, err
}

func (o *owner) update(ctx context.Context, c hcp.Command) (hcp.Answer, error) {
	st, err := o.w.store.LoadVM(ctx, c.VM)
	if err != nil {
		return hcp.Answer{}, err
	}
	vm := st.VM
	if c.Update.IfGeneration != vm.Generation {
		return hcp.Answer{Fault: hcp.Errorf(hcp.CodePreconditionFailed, "etag_mismatch", "changed").Wire()}, nil
	}
	if c.Update.Name != nil {
		vm.Name = *c.Update.Name
	}
	if c.Update.Labels != nil {
		vm.Labels = *c.Update.Labels
	}
	vm.Generation++
	body, err := json.Marshal(hcp.Known{VM: vm}.View())
	if err != nil {
		return hcp.Answer{}, err
	}
	return o.commit(ctx, c, persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm.ID)}, Epoch: st.Epoch, Seq: st.Seq, VM: &vm},
		hcp.Answer{Status: 200, Body: body, VM: vm.ID}, vm.Org, vm.Project)
}

func (o *owner) cluster(ctx context.Context, c hcp.Command) (hcp.Answer, error) {
	commit := persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(c.Cluster)}}
	var cl hcp.Cluster
	if st, err := o.w.store.LoadCluster(ctx, string(c.Cluster)); err == nil {
		cl, commit.Epoch, commit.Seq = st.Cluster, st.Epoch, st.Seq
	}
	switch c.Verb {
	case hcp.VerbClusterPut:
		cl = c.Put.Cluster
	case hcp.VerbClusterMaintenance:
		cl.Maintenance = c.Enable
	case hcp.VerbClusterDelete:
		cl.Deleted = true
	}
	if c.Put != nil && c.Put.Credentials != nil {
		commit.Secrets = []persistence.SecretChange{{Name: hcp.CredentialContext(cl.ID), Sealed: c.Put.Credentials}}
	}
	commit.Cluster = &cl
	body, err := json.Marshal(cl.View(nil, nil, nil))
	if err != nil {
		return hcp.Answer{}, err
	}
	return o.commit(ctx, c, commit, hcp.Answer{Status: 200, Body: body}, "", "")
}

// wakes lets a test say when there is something new.
type wakes struct {
	mu     sync.Mutex
	jobs   map[hcp.JobID][]chan struct{}
	events []chan struct{}
}

func (w *wakes) WaitJob(id hcp.JobID) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs == nil {
		w.jobs = map[hcp.JobID][]chan struct{}{}
	}
	ch := make(chan struct{}, 1)
	w.jobs[id] = append(w.jobs[id], ch)
	return ch, func() {}
}

func (w *wakes) WaitEvents() (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{}, 1)
	w.events = append(w.events, ch)
	return ch, func() {}
}

func (w *wakes) wakeJob(id hcp.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.jobs[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (w *wakes) wakeEvents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.events {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// images takes uploads.
type images struct {
	mu      sync.Mutex
	content []byte
	size    int64
	fail    error
}

func (i *images) ImportImage(_ context.Context, _ hcp.ClusterID, name, sha string, size int64, content io.Reader) (string, error) {
	data, err := io.ReadAll(content)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.content, i.size = data, size
	if i.fail != nil {
		return "", i.fail
	}
	return name + "-" + sha[:8], err
}
