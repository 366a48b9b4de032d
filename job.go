package hcp

import (
	"strings"
	"time"
)

// JobKind names what a job does: "vm.create".
type JobKind string

const (
	JobCreate  JobKind = "vm.create"
	JobStart   JobKind = "vm.start"
	JobStop    JobKind = "vm.stop"
	JobReboot  JobKind = "vm.reboot"
	JobDelete  JobKind = "vm.delete"
	JobRefresh JobKind = "vm.refresh" // reads the provider, changes nothing there
	JobCleanup JobKind = "vm.cleanup" // removes residue of a failed or deleted VM
)

// JobKinds lists every kind.
func JobKinds() []JobKind {
	return []JobKind{JobCreate, JobStart, JobStop, JobReboot, JobDelete, JobRefresh, JobCleanup}
}

// Word is the verb alone: "create".
func (k JobKind) Word() string { _, w, _ := strings.Cut(string(k), "."); return w }

// JobState is queued, running, waiting or cancelling, or one of the final four.
type JobState string

const (
	JobQueued         JobState = "queued"
	JobRunning        JobState = "running"
	JobWaiting        JobState = "waiting" // for a next attempt, see NextAttemptAt
	JobCancelling     JobState = "cancelling"
	JobSucceeded      JobState = "succeeded"
	JobFailed         JobState = "failed"
	JobCancelled      JobState = "cancelled"
	JobNeedsAttention JobState = "needs_attention"
)

// Final reports whether the job has ended.
func (s JobState) Final() bool {
	switch s {
	case JobSucceeded, JobFailed, JobCancelled, JobNeedsAttention:
		return true
	}
	return false
}

// JobStates lists every state.
func JobStates() []JobState {
	return []JobState{JobQueued, JobRunning, JobWaiting, JobCancelling, JobSucceeded, JobFailed, JobCancelled, JobNeedsAttention}
}

// Phase says which way a job goes: doing its steps, or undoing them.
type Phase string

const (
	PhaseForward Phase = "forward"
	PhaseUndo    Phase = "undo"
)

// StepState is the state of one step.
type StepState string

const (
	StepPending    StepState = "pending"
	StepRunning    StepState = "running"
	StepWaiting    StepState = "waiting" // for a next attempt
	StepSucceeded  StepState = "succeeded"
	StepFailed     StepState = "failed"
	StepSkipped    StepState = "skipped"
	StepUndoing    StepState = "undoing"
	StepUndone     StepState = "undone"
	StepUndoFailed StepState = "undo_failed"
)

// Job is one asynchronous piece of work on one VM.
type Job struct {
	ID       JobID     `json:"id"`
	Kind     JobKind   `json:"kind"`
	State    JobState  `json:"state"`
	VM       VMID      `json:"vm"`
	VMName   string    `json:"vm_name"`
	Region   string    `json:"region"`
	Zone     ZoneID    `json:"zone"`
	Cluster  ClusterID `json:"cluster"`
	Org      OrgID     `json:"org"`
	Project  ProjectID `json:"project"`
	Owner    string    `json:"owner"` // of the VM
	Params   JobParams `json:"params,omitzero"`
	Requests []Request `json:"requests"` // who asked, through what; the first made the job

	Phase   Phase          `json:"phase"`
	Step    int            `json:"step"` // index of the current step
	Steps   []Step         `json:"steps"`
	Cancel  *CancelRequest `json:"cancel,omitempty"`
	Error   *Fault         `json:"error,omitempty"`
	Cause   string         `json:"cause,omitempty"` // operators only: the provider's words
	Residue []Residue      `json:"residue,omitempty"`
	Trail   []TrailEntry   `json:"trail,omitempty"` // reason trail, bounded
	// TakenRefs are provider ids that turned out to be in use by strangers; prepare avoids them.
	TakenRefs []string `json:"taken_refs,omitempty"`

	Queue         int64     `json:"queue"` // order among the VM's jobs
	CreatedAt     time.Time `json:"created_at"`
	StartedAt     time.Time `json:"started_at,omitzero"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
	Deadline      time.Time `json:"deadline"`
	UndoDeadline  time.Time `json:"undo_deadline,omitzero"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	TraceID       string    `json:"trace_id"`
}

// JobParams are the verb's options.
type JobParams struct {
	StopMode    StopMode      `json:"stop_mode,omitempty"`
	StopTimeout time.Duration `json:"stop_timeout,omitempty"` // nanoseconds; how long a graceful stop may take
	StartAfter  bool          `json:"start_after,omitempty"`  // create: power on when made
}

// StopMode is how a machine is stopped.
type StopMode string

const (
	StopGraceful StopMode = "graceful"
	StopForce    StopMode = "force"
)

// Step is one step of a job as it is stored.
type Step struct {
	Name        string    `json:"name"`
	State       StepState `json:"state"`
	Attempts    int       `json:"attempts"`
	UndoTries   int       `json:"undo_tries,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"`
	Deadline    time.Time `json:"deadline,omitzero"`
	Cancellable bool      `json:"cancellable"`
	Note        string    `json:"note,omitempty"` // e.g. already_absent
	Error       *Fault    `json:"error,omitempty"`
	Task        *TaskRef  `json:"task,omitempty"` // journalled provider task. Operators only
	// Unknown is true when the last attempt ended without a known outcome: the next
	// attempt must look before it acts, until LookUntil.
	Unknown   bool      `json:"unknown,omitempty"`
	LookUntil time.Time `json:"look_until,omitzero"`
}

// TaskRef is a provider task that can be polled after a restart of HCP.
type TaskRef struct {
	ID   string `json:"id"`
	Host string `json:"host,omitempty"`
	Op   string `json:"op"`
}

// Request is one call that asked for the job.
type Request struct {
	Actor     string    `json:"actor"`
	Via       string    `json:"via"` // "api" or "reconcile"
	RequestID RequestID `json:"request_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"`
	At        time.Time `json:"at"`
}

// CancelRequest asks a job to stop at the next point where it can.
type CancelRequest struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"` // "asked" or "deleted"
	At     time.Time `json:"at"`
}

// Residue is something the job could not undo.
type Residue struct {
	Kind string `json:"kind"`          // "vm", "disk"
	Name string `json:"name"`          // the provider-side name HCP generated: safe for tenants
	Ref  string `json:"ref,omitempty"` // operators only
}

// TrailEntry is one line of the reason trail.
type TrailEntry struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// MaxTrail bounds the reason trail; the oldest lines after the first go first.
const MaxTrail = 50

// AddTrail appends a line.
func (j *Job) AddTrail(at time.Time, text string) {
	j.Trail = append(j.Trail, TrailEntry{at, text})
	if len(j.Trail) > MaxTrail {
		j.Trail = append(j.Trail[:1:1], j.Trail[len(j.Trail)-MaxTrail+1:]...)
	}
}

// Current is the step the job is at, or nil.
func (j *Job) Current() *Step {
	if j.Step < 0 || j.Step >= len(j.Steps) {
		return nil
	}
	return &j.Steps[j.Step]
}

// Progress is the share of finished steps in percent; 100 only when final.
func (j Job) Progress() int {
	if j.State.Final() {
		return 100
	}
	if len(j.Steps) == 0 {
		return 0
	}
	done := 0
	for _, s := range j.Steps {
		if s.State == StepSucceeded || s.State == StepSkipped {
			done++
		}
	}
	return min(done*100/len(j.Steps), 99)
}

// Clone copies the job so that the copy can be changed freely.
func (j Job) Clone() Job {
	c := j
	c.Requests = append([]Request(nil), j.Requests...)
	c.Steps = append([]Step(nil), j.Steps...)
	c.Residue = append([]Residue(nil), j.Residue...)
	c.Trail = append([]TrailEntry(nil), j.Trail...)
	c.TakenRefs = append([]string(nil), j.TakenRefs...)
	if j.Cancel != nil {
		cancel := *j.Cancel
		c.Cancel = &cancel
	}
	return c
}
