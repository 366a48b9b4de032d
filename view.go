package hcp

import (
	"encoding/json"
	"time"
)

// The views are what a tenant sees: no provider id, host name or endpoint. They
// live in the domain because the bytes of an accepted command are made and
// stored by the VM's actor, in the commit that accepts it.

// VMView is the tenant's shape of a VM.
type VMView struct {
	ID                 VMID              `json:"id" doc:"Identity of the VM"`
	LRN                string            `json:"lrn"`
	Name               string            `json:"name"`
	Project            ProjectID         `json:"project"`
	Zone               string            `json:"zone" doc:"Name of the zone"`
	State              State             `json:"state" enum:"creating,starting,running,stopping,stopped,restarting,deleting,deleted,error,unknown,paused,suspended"`
	Lifecycle          Lifecycle         `json:"lifecycle" enum:"creating,active,deleting,deleted,error"`
	Power              Power             `json:"power" enum:"running,stopped,paused,suspended,unknown"`
	LastSeen           *LastSeen         `json:"last_seen,omitempty" doc:"The last power the hypervisor reported, and when"`
	Activity           string            `json:"activity,omitempty" doc:"Kind of the job that has the turn"`
	Desired            DesiredView       `json:"desired"`
	Observed           *ObservedView     `json:"observed,omitempty"`
	Addresses          []Address         `json:"addresses"`
	Hostname           string            `json:"hostname"`
	Image              ImagePinView      `json:"image"`
	Flavor             FlavorView        `json:"flavor"`
	Labels             map[string]string `json:"labels"`
	Owner              string            `json:"owner"`
	Description        string            `json:"description"`
	DeletionProtection bool              `json:"deletion_protection"`
	Generation         int64             `json:"generation"`
	CreatedAt          time.Time         `json:"created_at"`
	UpdatedAt          time.Time         `json:"updated_at"`
	LastJob            *LastJob          `json:"last_job,omitempty"`
	Conditions         []Condition       `json:"conditions"`
}

type LastSeen struct {
	Power Power     `json:"power"`
	At    time.Time `json:"at"`
}

type DesiredView struct {
	Power Power `json:"power" enum:"running,stopped"`
}

// ObservedView is what the hypervisor shows, as far as a tenant may see it.
type ObservedView struct {
	Power      Power     `json:"power"`
	VCPUs      int       `json:"vcpus,omitempty"`
	MemoryMiB  int       `json:"memory_mib,omitempty"`
	ObservedAt time.Time `json:"observed_at"`
}

// Address is one address of the guest and where it is known from.
type Address struct {
	IP     string `json:"ip"`
	Source string `json:"source" enum:"lease,agent,arp,provider"`
}

type ImagePinView struct {
	ID      ImageID `json:"id"`
	Name    string  `json:"name"`
	Version string  `json:"version"`
	SHA256  string  `json:"sha256"`
}

type FlavorView struct {
	ID        FlavorID `json:"id"`
	Name      string   `json:"name"`
	VCPUs     int      `json:"vcpus"`
	MemoryMiB int      `json:"memory_mib"`
	DiskGiB   int      `json:"disk_gib"`
}

// JobView is the tenant's shape of a job.
type JobView struct {
	ID            JobID         `json:"id"`
	LRN           string        `json:"lrn"`
	Kind          JobKind       `json:"kind"`
	State         JobState      `json:"state" enum:"queued,running,waiting,cancelling,succeeded,failed,cancelled,needs_attention"`
	Target        JobTarget     `json:"target"`
	Phase         Phase         `json:"phase" enum:"forward,undo"`
	Steps         []StepView    `json:"steps"`
	Progress      int           `json:"progress" minimum:"0" maximum:"100"`
	Error         *Fault        `json:"error,omitempty"`
	Residue       []ResidueView `json:"residue"`
	Cancelling    string        `json:"cancelling,omitempty" doc:"Why the job was asked to stop: asked or deleted"`
	RequestedBy   string        `json:"requested_by"`
	NextAttemptAt *time.Time    `json:"next_attempt_at,omitempty"`
	CreatedAt     time.Time     `json:"created_at"`
	StartedAt     *time.Time    `json:"started_at,omitempty"`
	FinishedAt    *time.Time    `json:"finished_at,omitempty"`
	Deadline      time.Time     `json:"deadline"`
	TraceID       string        `json:"trace_id"`
}

type JobTarget struct {
	ID   VMID   `json:"id"`
	LRN  string `json:"lrn"`
	Name string `json:"name"`
}

type StepView struct {
	Name        string     `json:"name"`
	State       StepState  `json:"state" enum:"pending,running,waiting,succeeded,failed,skipped,undoing,undone,undo_failed"`
	Attempts    int        `json:"attempts"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
	Deadline    *time.Time `json:"deadline,omitempty"`
	Cancellable bool       `json:"cancellable"`
	Note        string     `json:"note,omitempty"`
	Error       *Fault     `json:"error,omitempty"`
}

type ResidueView struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// AcceptedView is the body of every 202.
type AcceptedView struct {
	ResourceID VMID    `json:"resource_id"`
	JobID      JobID   `json:"job_id"`
	Resource   VMView  `json:"resource"`
	Job        JobView `json:"job"`
}

// Observed is the row that the provider actor keeps of a VM, apart from the VM's own.
type Observed struct {
	VM        VMID      `json:"vm"`
	Cluster   ClusterID `json:"cluster"`
	Power     Power     `json:"power"`
	Host      string    `json:"host,omitempty"` // operators only
	VCPUs     int       `json:"vcpus,omitempty"`
	MemoryMiB int       `json:"memory_mib,omitempty"`
	DiskGiB   int       `json:"disk_gib,omitempty"`
	Disks     int       `json:"disks,omitempty"`
	Addresses []Address `json:"addresses,omitempty"`
	Missing   bool      `json:"missing,omitempty"` // a healthy provider said "not found"
	At        time.Time `json:"at"`
}

// Known is a VM with what its provider shows of it: the input of a view.
type Known struct {
	VM           VM
	Observed     *Observed
	Reachability *Reachability // of the VM's cluster; nil: never probed
}

// Reachable reports whether the provider's word about this VM is current.
func (k Known) Reachable() bool { return k.Reachability == nil || k.Reachability.Reachable }

// power is the VM's power as HCP may claim it now: unknown while the provider
// does not answer, with the last word apart.
func (k Known) power() (Power, *LastSeen) {
	last := LastSeen{Power: k.VM.Power, At: k.VM.PowerAt}
	if k.Observed != nil && k.Observed.At.After(k.VM.PowerAt) && !k.Observed.Missing {
		last = LastSeen{Power: k.Observed.Power, At: k.Observed.At}
	}
	if k.VM.Ref == nil && last.At.IsZero() || k.VM.Lifecycle == LifecycleDeleted {
		return k.VM.Power, nil
	}
	if !k.Reachable() {
		return PowerUnknown, &last
	}
	return last.Power, &last
}

// View is the tenant's sight of a VM.
func (k Known) View() VMView {
	v := k.VM
	power, seen := k.power()
	view := VMView{
		ID: v.ID, LRN: LRNOfVM(v.Region, v.Project, v.ID), Name: v.Name, Project: v.Project, Zone: v.ZoneName,
		State: DeriveState(v.Lifecycle, power, v.Activity), Lifecycle: v.Lifecycle, Power: power, LastSeen: seen,
		Activity: string(v.Activity), Desired: DesiredView{v.Desired.Power}, Addresses: []Address{}, Hostname: v.Hostname,
		Image:  ImagePinView{v.Image.ID, v.Image.Name, v.Image.Version, v.Image.SHA256},
		Flavor: FlavorView(v.Flavor), Labels: v.Labels, Owner: v.Owner, Description: v.Description,
		DeletionProtection: v.DeletionProtection, Generation: v.Generation, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
		LastJob: v.LastJob, Conditions: v.Conditions,
	}
	if view.Labels == nil {
		view.Labels = map[string]string{}
	}
	if view.Conditions == nil {
		view.Conditions = []Condition{}
	}
	if o := k.Observed; o != nil && v.Lifecycle != LifecycleDeleted {
		view.Observed = &ObservedView{Power: o.Power, VCPUs: o.VCPUs, MemoryMiB: o.MemoryMiB, ObservedAt: o.At}
		if o.Addresses != nil && power == PowerRunning {
			view.Addresses = o.Addresses
		}
	}
	return view
}

// View is the tenant's sight of a job.
func (j Job) View() JobView {
	v := JobView{
		ID: j.ID, LRN: LRNOfJob(j.Region, j.Project, j.ID), Kind: j.Kind, State: j.State, Phase: j.Phase,
		Target: JobTarget{j.VM, LRNOfVM(j.Region, j.Project, j.VM), j.VMName}, Steps: make([]StepView, 0, len(j.Steps)),
		Progress: j.Progress(), Error: j.Error, Residue: make([]ResidueView, 0, len(j.Residue)),
		NextAttemptAt: timePtr(j.NextAttemptAt), CreatedAt: j.CreatedAt, StartedAt: timePtr(j.StartedAt),
		FinishedAt: timePtr(j.FinishedAt), Deadline: j.Deadline, TraceID: j.TraceID,
	}
	if j.Cancel != nil {
		v.Cancelling = j.Cancel.Reason
	}
	if len(j.Requests) > 0 {
		v.RequestedBy = j.Requests[0].Actor
	}
	for _, s := range j.Steps {
		v.Steps = append(v.Steps, StepView{s.Name, s.State, s.Attempts, timePtr(s.StartedAt), timePtr(s.FinishedAt),
			timePtr(s.Deadline), s.Cancellable, s.Note, s.Error})
	}
	for _, r := range j.Residue {
		v.Residue = append(v.Residue, ResidueView{r.Kind, r.Name})
	}
	return v
}

// AcceptedBody renders the 202 of a command; a replay returns these bytes.
func AcceptedBody(vm Known, job Job) ([]byte, error) {
	return json.Marshal(AcceptedView{ResourceID: vm.VM.ID, JobID: job.ID, Resource: vm.View(), Job: job.View()})
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
