package v1

import (
	"encoding/json"
	"time"

	"github.com/lotuscloud/hcp"
)

// RegisterCluster makes a provider cluster known.
type RegisterCluster struct {
	Name        string            `json:"name" minLength:"1"`
	Driver      string            `json:"driver" minLength:"1" doc:"sim, libvirt, proxmox, vsphere or hyperv"`
	Endpoint    string            `json:"endpoint" minLength:"1" doc:"No credentials in it; several hosts comma-separated"`
	Credentials json.RawMessage   `json:"credentials,omitempty" doc:"An object the driver knows; sealed at rest and never shown"`
	Options     map[string]string `json:"options,omitempty"`
}

// UpdateCluster changes the fields that are present.
type UpdateCluster struct {
	Name     *string            `json:"name,omitempty"`
	Endpoint *string            `json:"endpoint,omitempty"`
	Options  *map[string]string `json:"options,omitempty"`
}

// SetMaintenance switches maintenance: no new VM, running jobs finish.
type SetMaintenance struct {
	Enabled bool `json:"enabled"`
}

// SetCredentials replaces the credentials of a cluster.
type SetCredentials struct {
	Credentials json.RawMessage `json:"credentials" doc:"An object the driver knows; sealed at rest and never shown"`
}

// PutZone makes or replaces a zone. Members name clusters by name, id or LRN.
type PutZone struct {
	Name    string       `json:"name" minLength:"1"`
	Region  string       `json:"region" minLength:"1" maxLength:"64" pattern:"^[a-z0-9-]+$"`
	Members []ZoneMember `json:"members,omitempty" nullable:"false"`
}

type ZoneMember struct {
	Cluster     string  `json:"cluster" minLength:"1"`
	Pool        string  `json:"pool,omitempty"`
	Weight      int     `json:"weight,omitempty" minimum:"0" maximum:"1000"`
	CPURatio    float64 `json:"cpu_ratio,omitempty" minimum:"0" maximum:"64"`
	MemoryRatio float64 `json:"memory_ratio,omitempty" minimum:"0" maximum:"64"`
}

// OpsZone is an operator's sight of a zone.
type OpsZone struct {
	ID        hcp.ZoneID        `json:"id"`
	LRN       string            `json:"lrn"`
	Name      string            `json:"name"`
	Region    string            `json:"region"`
	Members   []hcp.ZoneCluster `json:"members" nullable:"false"`
	CreatedAt time.Time         `json:"created_at"`
}

// CreateImage makes a logical image; artefacts are added per cluster.
type CreateImage struct {
	Name         string       `json:"name" minLength:"1"`
	Version      string       `json:"version" minLength:"1" maxLength:"64"`
	SHA256       string       `json:"sha256" pattern:"^[0-9a-f]{64}$" doc:"Of the image file"`
	Firmware     hcp.Firmware `json:"firmware" enum:"bios,uefi"`
	MinDiskGiB   int          `json:"min_disk_gib,omitempty" minimum:"0" maximum:"65536"`
	MinMemoryMiB int          `json:"min_memory_mib,omitempty" minimum:"0" maximum:"16777216"`
}

// UpdateImage changes the fields that are present.
type UpdateImage struct {
	State        *hcp.ImageState `json:"state,omitempty" enum:"active,deprecated,retired"`
	MinDiskGiB   *int            `json:"min_disk_gib,omitempty" minimum:"0" maximum:"65536"`
	MinMemoryMiB *int            `json:"min_memory_mib,omitempty" minimum:"0" maximum:"16777216"`
}

// SetArtefact registers what a cluster already has.
type SetArtefact struct {
	Artefact string `json:"artefact" minLength:"1" maxLength:"1024"`
}

// OpsImage is an operator's sight of an image.
type OpsImage struct {
	Image
	Artefacts map[hcp.ClusterID]string `json:"artefacts" doc:"Cluster id to reference there"`
}

// CreateFlavor makes a size. Sizes never change; retire a flavor and make another.
type CreateFlavor struct {
	Name      string `json:"name" minLength:"1"`
	VCPUs     int    `json:"vcpus" minimum:"1" maximum:"1024"`
	MemoryMiB int    `json:"memory_mib" minimum:"16" maximum:"16777216"`
	DiskGiB   int    `json:"disk_gib" minimum:"1" maximum:"65536"`
}

// UpdateFlavor changes the fields that are present.
type UpdateFlavor struct {
	Retired *bool `json:"retired,omitempty"`
}

type CreateOrg struct {
	Name string `json:"name" minLength:"1"`
}

type Org struct {
	ID        hcp.OrgID `json:"id"`
	LRN       string    `json:"lrn"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// CreateProject makes a project; Org takes a name, an id or an LRN.
type CreateProject struct {
	Name string `json:"name" minLength:"1"`
	Org  string `json:"org" minLength:"1"`
}

type Project struct {
	ID        hcp.ProjectID `json:"id"`
	LRN       string        `json:"lrn"`
	Org       hcp.OrgID     `json:"org"`
	Name      string        `json:"name"`
	CreatedAt time.Time     `json:"created_at"`
}

// SetQuota sets the limits that are present: a whole number or "unlimited".
type SetQuota struct {
	Limits map[hcp.Resource]hcp.Limit `json:"limits"`
}

// CreateBinding gives a subject a role. Project roles need exactly one of
// Project and Org, ops roles need none.
type CreateBinding struct {
	Subject string `json:"subject" minLength:"1" maxLength:"255"`
	Role    string `json:"role" minLength:"1"`
	Project string `json:"project,omitempty" doc:"Name, id or LRN"`
	Org     string `json:"org,omitempty" doc:"Name, id or LRN"`
}

// Role is a named set of actions.
type Role struct {
	Name    string    `json:"name"`
	Scope   hcp.Scope `json:"scope"`
	Actions []string  `json:"actions" nullable:"false"`
}

// OpsVM is an operator's sight of a VM.
type OpsVM struct {
	hcp.VMView
	Org          hcp.OrgID        `json:"org"`
	Cluster      hcp.ClusterID    `json:"cluster"`
	Pool         string           `json:"pool,omitempty"`
	ProviderName string           `json:"provider_name"`
	ProviderRef  *hcp.ProviderRef `json:"provider_ref,omitempty"`
	Host         string           `json:"host,omitempty"`
	DeletedAt    *time.Time       `json:"deleted_at,omitempty"`
}

// OpsJob is an operator's sight of a job.
type OpsJob struct {
	hcp.JobView
	Org     hcp.OrgID        `json:"org"`
	Project hcp.ProjectID    `json:"project"`
	Cluster hcp.ClusterID    `json:"cluster"`
	Cause   string           `json:"cause,omitempty" doc:"The provider's words"`
	Trail   []hcp.TrailEntry `json:"trail" nullable:"false"`
}

// SystemStatus is the control plane at a glance.
type SystemStatus struct {
	Version    string                               `json:"version"`
	Generation string                               `json:"generation" doc:"Identity of the store's history"`
	Nodes      []Node                               `json:"nodes" nullable:"false"`
	Jobs       map[hcp.JobKind]map[hcp.JobState]int `json:"jobs" doc:"Jobs that are not final, by kind and state"`
	Clusters   map[hcp.ClusterID]hcp.Reachability   `json:"clusters"`
}

type Node struct {
	Node        string    `json:"node"`
	Incarnation int64     `json:"incarnation"`
	Version     string    `json:"version"`
	JoinedAt    time.Time `json:"joined_at"`
	RenewedAt   time.Time `json:"renewed_at"`
	Gone        bool      `json:"gone"`
}

// Problem is the body of every answer that is an error (RFC 9457).
type Problem struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail"`
	Instance  string           `json:"instance"`
	Code      hcp.Code         `json:"code"`
	Reason    string           `json:"reason"`
	Hint      string           `json:"hint"`
	Retryable bool             `json:"retryable"`
	TraceID   string           `json:"trace_id"`
	RequestID hcp.RequestID    `json:"request_id"`
	JobID     hcp.JobID        `json:"job_id,omitempty"`
	Details   map[string]any   `json:"details,omitempty"`
	Errors    []hcp.FieldError `json:"errors,omitempty" nullable:"false"`
}
