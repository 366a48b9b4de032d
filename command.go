package hcp

import (
	"encoding/json"
	"time"
)

// Verb is what a command asks of an actor.
type Verb string

const (
	VerbCreate  Verb = "vm.create"
	VerbStart   Verb = "vm.start"
	VerbStop    Verb = "vm.stop"
	VerbReboot  Verb = "vm.reboot"
	VerbDelete  Verb = "vm.delete"
	VerbUpdate  Verb = "vm.update"  // name, labels, description, protection: no job
	VerbRefresh Verb = "vm.refresh" // reads the provider now
	VerbRetry   Verb = "job.retry"  // tries a failed create again on the same VM
	VerbCancel  Verb = "job.cancel"
	VerbExplain Verb = "vm.explain" // a question, changes nothing

	VerbClusterPut         Verb = "cluster.put" // register or change
	VerbClusterMaintenance Verb = "cluster.maintenance"
	VerbClusterDelete      Verb = "cluster.delete"
	VerbClusterProbe       Verb = "cluster.probe"
	VerbClusterOrphans     Verb = "cluster.orphans"
	VerbClusterCredentials Verb = "cluster.credentials"
)

// Command is one request to one actor; it is accepted or refused as a whole. It
// travels as JSON between nodes.
type Command struct {
	ID      CommandID `json:"id"`
	Verb    Verb      `json:"verb"`
	Cluster ClusterID `json:"cluster"` // whose owner node must handle it
	VM      VMID      `json:"vm,omitempty"`
	Job     JobID     `json:"job,omitempty"`
	Call    Call      `json:"call"`
	// Key is the caller's idempotency key, nil when none came.
	Key *IdempotencyKey `json:"key,omitempty"`
	// Deadline is when the caller stops waiting for the answer.
	Deadline time.Time `json:"deadline"`

	Create *CreateVM   `json:"create,omitempty"`
	Stop   *StopVM     `json:"stop,omitempty"`
	Update *UpdateVM   `json:"update,omitempty"`
	Put    *PutCluster `json:"put,omitempty"`
	Enable bool        `json:"enable,omitempty"` // cluster.maintenance: on or off
}

// CreateVM is a resolved create: image pinned, sizes copied, cluster chosen.
type CreateVM struct {
	VM    VM    `json:"vm"`    // id, names, pins, placement; lifecycle creating
	Claim Sizes `json:"claim"` // capacity claimed on the cluster
	Start bool  `json:"start"`
}

type StopVM struct {
	Mode    StopMode      `json:"mode"`
	Timeout time.Duration `json:"timeout"`
}

// UpdateVM changes what a nil pointer does not leave alone.
type UpdateVM struct {
	IfGeneration       int64              `json:"if_generation"`
	Name               *string            `json:"name,omitempty"`
	Labels             *map[string]string `json:"labels,omitempty"`
	Description        *string            `json:"description,omitempty"`
	DeletionProtection *bool              `json:"deletion_protection,omitempty"`
}

// PutCluster registers a cluster, or changes the one with the same id.
type PutCluster struct {
	Cluster     Cluster `json:"cluster"`
	Credentials Sealed  `json:"credentials,omitempty"` // sealed with CredentialContext
}

// IdempotencyKey is the identity of an idempotency record, and the fingerprint
// of the request that came with it.
type IdempotencyKey struct {
	Principal   string    `json:"principal"`
	Project     ProjectID `json:"project"`
	Method      string    `json:"method"`
	Path        string    `json:"path"` // resolved: ids, not names
	Key         string    `json:"key"`
	Fingerprint string    `json:"fingerprint"` // over the canonical body
}

// Answer is what an actor says to a command. Exactly one of Fault and the rest is set.
type Answer struct {
	Fault    *WireError      `json:"fault,omitempty"`
	Status   int             `json:"status,omitempty"` // 200 or 202
	Body     json.RawMessage `json:"body,omitempty"`
	VM       VMID            `json:"vm,omitempty"`
	Job      JobID           `json:"job,omitempty"`
	Replayed bool            `json:"replayed,omitempty"`
}

// WireError carries an Error between nodes, the cause as text for logs.
type WireError struct {
	Code       Code           `json:"code"`
	Reason     string         `json:"reason,omitempty"`
	Message    string         `json:"message"`
	Hint       string         `json:"hint,omitempty"`
	RetryAfter time.Duration  `json:"retry_after,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
	Fields     []FieldError   `json:"fields,omitempty"`
	Cause      string         `json:"cause,omitempty"`
	Job        JobID          `json:"job,omitempty"`
}

// Wire and FromWire are inverse, but for the cause's type.
func (e *Error) Wire() *WireError {
	w := &WireError{Code: e.Code, Reason: e.Reason, Message: e.Message, Hint: e.Hint, RetryAfter: e.RetryAfter, Details: e.Details, Fields: e.Fields}
	if e.Err != nil {
		w.Cause = e.Err.Error()
	}
	return w
}

func (w *WireError) Error() *Error {
	e := &Error{Code: w.Code, Reason: w.Reason, Message: w.Message, Hint: w.Hint, RetryAfter: w.RetryAfter, Details: w.Details, Fields: w.Fields}
	if w.Cause != "" {
		e.Err = foreignError(w.Cause)
	}
	return e
}

type foreignError string

func (e foreignError) Error() string { return string(e) }

// Explanation answers why a VM or job is where it is. The Provider fields are
// for operators only and empty in a tenant's sight.
type Explanation struct {
	VM       VMID          `json:"vm"`
	State    State         `json:"state"`
	Summary  string        `json:"summary"` // one sentence a person can act on
	Job      *JobView      `json:"job,omitempty"`
	Queue    []JobView     `json:"queue"` // behind the job that has the turn
	Step     string        `json:"step,omitempty"`
	InFlight *InFlightCall `json:"in_flight,omitempty"`
	// LastCall is the last provider call that ended, with its answer.
	LastCall      *InFlightCall `json:"last_call,omitempty"`
	NextAttemptAt *time.Time    `json:"next_attempt_at,omitempty"`
	Cluster       *Reachability `json:"cluster,omitempty"` // operators only
	MayDo         []string      `json:"may_do"`            // what a person may do now
}

// InFlightCall is one provider call.
type InFlightCall struct {
	Op      string     `json:"op"`
	Since   time.Time  `json:"since"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
	Code    Code       `json:"code,omitempty"`
	Answer  string     `json:"answer,omitempty"` // the provider's words; operators only
}
