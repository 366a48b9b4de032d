package v1

import (
	"time"

	"github.com/lotuscloud/hcp"
)

// Page is one page of a list, newest first. An empty NextPageToken ends the list.
type Page[T any] struct {
	Items         []T    `json:"items" nullable:"false"`
	NextPageToken string `json:"next_page_token" doc:"Pass it as page_token with the same filter; empty on the last page"`
}

// CreateVM asks for a machine. Image, Flavor and Zone take a name, an id or an LRN.
type CreateVM struct {
	Name               string            `json:"name" minLength:"1" doc:"Unique among the live VMs of the project"`
	Image              string            `json:"image" minLength:"1"`
	Flavor             string            `json:"flavor" minLength:"1"`
	Zone               string            `json:"zone,omitempty" doc:"Empty: HCP chooses"`
	SSHKeys            []string          `json:"ssh_keys,omitempty" maxItems:"32" nullable:"false" doc:"OpenSSH public keys, one a string"`
	UserData           string            `json:"user_data,omitempty" doc:"Text for cloud-init, at most 64 KiB; never shown again"`
	UserDataBase64     string            `json:"user_data_base64,omitempty" doc:"The same for arbitrary bytes; only one of both"`
	Labels             map[string]string `json:"labels,omitempty" doc:"At most 64"`
	Description        string            `json:"description,omitempty" maxLength:"1024"`
	DeletionProtection bool              `json:"deletion_protection,omitempty" doc:"Deletes are refused while it is true"`
	Networks           []string          `json:"networks,omitempty" maxItems:"8" nullable:"false"`
	Power              hcp.Power         `json:"power,omitempty" enum:"running,stopped" doc:"Wished power once it is made; running when empty"`
}

// UpdateVM changes the fields that are present. Labels replace the whole set.
type UpdateVM struct {
	Name               *string            `json:"name,omitempty"`
	Labels             *map[string]string `json:"labels,omitempty"`
	Description        *string            `json:"description,omitempty" maxLength:"1024"`
	DeletionProtection *bool              `json:"deletion_protection,omitempty"`
}

// StopVM says how to stop. An absent body is a graceful stop of 60 seconds.
type StopVM struct {
	Mode     hcp.StopMode `json:"mode,omitempty" enum:"graceful,force"`
	TimeoutS int          `json:"timeout_s,omitempty" minimum:"1" maximum:"3600" doc:"How long a graceful stop may take"`
}

// DryRun is what a create would do; nothing was written.
type DryRun struct {
	Hostname     string           `json:"hostname" doc:"Host name the guest would get"`
	Zone         string           `json:"zone"`
	Region       string           `json:"region"`
	Image        hcp.ImagePinView `json:"image"`
	Flavor       hcp.FlavorView   `json:"flavor"`
	Quota        []QuotaSubject   `json:"quota" nullable:"false" doc:"Counters as they would be afterwards"`
	Capabilities hcp.Capabilities `json:"capabilities"`
}

// Image is the tenant's sight of an image.
type Image struct {
	ID           hcp.ImageID    `json:"id"`
	LRN          string         `json:"lrn"`
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	SHA256       string         `json:"sha256"`
	Firmware     hcp.Firmware   `json:"firmware" enum:"bios,uefi"`
	State        hcp.ImageState `json:"state" enum:"active,deprecated,retired"`
	MinDiskGiB   int            `json:"min_disk_gib"`
	MinMemoryMiB int            `json:"min_memory_mib"`
	Zones        []string       `json:"zones" nullable:"false" doc:"Names of the zones that have it"`
	CreatedAt    time.Time      `json:"created_at"`
}

// Flavor is a size tenants choose from.
type Flavor struct {
	ID        hcp.FlavorID `json:"id"`
	LRN       string       `json:"lrn"`
	Name      string       `json:"name"`
	VCPUs     int          `json:"vcpus"`
	MemoryMiB int          `json:"memory_mib"`
	DiskGiB   int          `json:"disk_gib"`
	Retired   bool         `json:"retired" doc:"Takes no new VM"`
	CreatedAt time.Time    `json:"created_at"`
}

// Zone is what a tenant may name.
type Zone struct {
	ID           hcp.ZoneID       `json:"id"`
	LRN          string           `json:"lrn"`
	Name         string           `json:"name"`
	Region       string           `json:"region"`
	Available    bool             `json:"available" doc:"Takes new VMs now"`
	Capabilities hcp.Capabilities `json:"capabilities" doc:"What at least one cluster of the zone can do"`
}

// Quota is the use of a project: its org, itself, and the caller in it.
type Quota struct {
	Subjects []QuotaSubject `json:"subjects" nullable:"false"`
}

// QuotaSubject is one counter.
type QuotaSubject struct {
	Scope hcp.QuotaScope  `json:"scope" enum:"org,project,user"`
	ID    string          `json:"id"`
	Lines []hcp.QuotaLine `json:"lines" nullable:"false"`
}

// QuotaVerify compares the counters with what live VMs add up to.
type QuotaVerify struct {
	Drift       int               `json:"drift" doc:"Number of differences; 0 is right"`
	Differences []QuotaDifference `json:"differences" nullable:"false"`
}

type QuotaDifference struct {
	Scope    hcp.QuotaScope `json:"scope"`
	ID       string         `json:"id"`
	Resource hcp.Resource   `json:"resource"`
	Counter  int64          `json:"counter"`
	Derived  int64          `json:"derived"`
}

// Event is one event as a stream or a history shows it.
type Event struct {
	ID      hcp.EventID   `json:"id"`
	Type    hcp.EventType `json:"type"`
	Subject string        `json:"subject" doc:"LRN of what it is about"`
	Actor   string        `json:"actor" doc:"Who caused it"`
	Seq     int64         `json:"seq" doc:"Rises by one per event of its subject's actor"`
	Time    time.Time     `json:"time"`
	TraceID string        `json:"trace_id"`
	Org     hcp.OrgID     `json:"org"`
	Project hcp.ProjectID `json:"project"`
	Owner   string        `json:"owner"`
	VM      hcp.VMID      `json:"vm"`
	Job     hcp.JobID     `json:"job"`
	Data    hcp.EventData `json:"data"`
}

// EventView renders a stored event. EventData holds nothing a tenant may not see.
func EventView(e hcp.Event) Event {
	return Event{e.ID, e.Type, e.Subject, e.Actor, e.Seq, e.Time, e.TraceID, e.Org, e.Project, e.Owner, e.VM, e.Job, e.Data}
}

// WhoAmI tells a caller how HCP sees it.
type WhoAmI struct {
	Subject   string          `json:"subject"`
	Scope     hcp.Scope       `json:"scope" enum:"tenant,ops"`
	ExpiresAt time.Time       `json:"expires_at"`
	Roles     []string        `json:"roles" nullable:"false" doc:"Roles at ops scope"`
	Projects  []ProjectAccess `json:"projects" nullable:"false"`
}

// ProjectAccess is what the caller may do in one project.
type ProjectAccess struct {
	ID      hcp.ProjectID `json:"id"`
	Name    string        `json:"name"`
	Org     hcp.OrgID     `json:"org"`
	Roles   []string      `json:"roles" nullable:"false"`
	Actions []string      `json:"actions" nullable:"false"`
}

// Version is what serves the API.
type Version struct {
	Version string `json:"version"`
	API     string `json:"api"`
}
