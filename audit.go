package hcp

import "time"

// AuditKind tells a call from what came of it.
type AuditKind string

const (
	AuditCall         AuditKind = "call" // exactly one per request id of a mutation or a refused call
	AuditJobStarted   AuditKind = "job_started"
	AuditJobSucceeded AuditKind = "job_succeeded"
	AuditJobFailed    AuditKind = "job_failed" // failed, cancelled or needs_attention; Result tells
)

// AuditRecord is one row of the audit log. It never holds a body or a secret.
type AuditRecord struct {
	ID        AuditID   `json:"id"`
	Kind      AuditKind `json:"kind"`
	Time      time.Time `json:"time"`
	Actor     string    `json:"actor"`             // subject; "anonymous" before authentication; "hcp" for its own acts
	Claimed   string    `json:"claimed,omitempty"` // the subject an unproven token claimed
	Scope     Scope     `json:"scope,omitempty"`
	Action    string    `json:"action"`           // "vm.create"
	Target    string    `json:"target,omitempty"` // LRN, or the path of a refused call
	Org       OrgID     `json:"org,omitempty"`
	Project   ProjectID `json:"project,omitempty"`
	Result    string    `json:"result"`           // "accepted", "ok", "replayed", a Code, or a JobState
	Status    int       `json:"status,omitempty"` // HTTP status of a call
	RequestID RequestID `json:"request_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"`
	Job       JobID     `json:"job,omitempty"`
	Source    string    `json:"source,omitempty"` // client address
	Method    string    `json:"method,omitempty"`
	Path      string    `json:"path,omitempty"`
}
