package hcp

import "time"

// EventType names what happened; the list is part of the API.
type EventType string

const (
	EventResourceCreated EventType = "resource.created"
	EventResourceUpdated EventType = "resource.updated"
	EventResourceDeleted EventType = "resource.deleted"
	EventVMStarted       EventType = "vm.started"
	EventVMStopped       EventType = "vm.stopped"
	EventVMFailed        EventType = "vm.failed"
	EventVMUnknown       EventType = "vm.unknown"
	EventJobQueued       EventType = "job.queued"
	EventJobStarted      EventType = "job.started"
	EventJobProgress     EventType = "job.progress"
	EventJobSucceeded    EventType = "job.succeeded"
	EventJobFailed       EventType = "job.failed"
	EventJobCancelled    EventType = "job.cancelled"
	EventJobAttention    EventType = "job.needs_attention"
	EventClusterUp       EventType = "cluster.reachable"
	EventClusterDown     EventType = "cluster.unreachable"
	EventClusterChanged  EventType = "cluster.changed"
	EventQuotaExceeded   EventType = "quota.exceeded"
	EventSecurityAlert   EventType = "security.alert"
)

// Event is one entry of an actor's journal and of the outbox.
type Event struct {
	ID      EventID   `json:"id"`
	Type    EventType `json:"type"`
	Subject string    `json:"subject"`       // LRN
	Actor   string    `json:"actor"`         // who caused it
	Seq     int64     `json:"seq"`           // of the actor; set by the store
	Pos     int64     `json:"pos,omitempty"` // gap-free position; set by the publisher
	Time    time.Time `json:"time"`
	TraceID string    `json:"trace_id,omitempty"`
	Org     OrgID     `json:"org,omitempty"`     // empty: operators only
	Project ProjectID `json:"project,omitempty"` // empty: operators only
	Owner   string    `json:"owner,omitempty"`
	VM      VMID      `json:"vm,omitempty"`
	Job     JobID     `json:"job,omitempty"`
	Data    EventData `json:"data,omitzero"`
}

// EventData carries enough of the VM that metering derives from events alone.
// It holds nothing a tenant may not see.
type EventData struct {
	Name     string   `json:"name,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	Sizes    *Sizes   `json:"sizes,omitempty"`
	OldState State    `json:"old_state,omitempty"`
	NewState State    `json:"new_state,omitempty"`
	OldPower Power    `json:"old_power,omitempty"`
	NewPower Power    `json:"new_power,omitempty"`
	JobKind  JobKind  `json:"job_kind,omitempty"`
	JobState JobState `json:"job_state,omitempty"`
	Step     string   `json:"step,omitempty"`
	Progress int      `json:"progress,omitempty"`
	Code     Code     `json:"code,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}
