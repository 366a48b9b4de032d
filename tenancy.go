package hcp

import "time"

// Org is a customer; it owns projects and a quota.
type Org struct {
	ID        OrgID     `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Project is where VMs live; every VM, job and event belongs to exactly one.
type Project struct {
	ID        ProjectID `json:"id"`
	Org       OrgID     `json:"org"`
	Name      string    `json:"name"` // unique in the control plane, so that a path names one project
	CreatedAt time.Time `json:"created_at"`
}

// Scope of a token or an action.
type Scope string

const (
	ScopeTenant Scope = "tenant"
	ScopeOps    Scope = "ops"
)

// Principal is an authenticated caller. Only authentication makes one.
type Principal struct {
	Subject  string      `json:"subject"`
	Scope    Scope       `json:"scope"`
	Projects []ProjectID `json:"projects,omitempty"` // what a tenant token may reach
	Roles    []string    `json:"roles,omitempty"`
}

// RoleBinding gives a subject a role at a project, an organisation or ops scope.
type RoleBinding struct {
	ID      string    `json:"id"`
	Subject string    `json:"subject"`
	Role    string    `json:"role"`
	Scope   Scope     `json:"scope"`
	Project ProjectID `json:"project,omitempty"`
	Org     OrgID     `json:"org,omitempty"`
}

// Call says who called, how, and for which request; it becomes the audit row
// and the job's request line.
type Call struct {
	RequestID RequestID `json:"request_id"`
	TraceID   string    `json:"trace_id"`
	Actor     string    `json:"actor"`
	Scope     Scope     `json:"scope"`
	Source    string    `json:"source"` // client address
	Action    string    `json:"action"` // "vm.create"
	Method    string    `json:"method"`
	Path      string    `json:"path"`
}
