package hcp

import "time"

// Lifecycle is where a VM stands between its creation and its end.
type Lifecycle string

const (
	LifecycleCreating Lifecycle = "creating"
	LifecycleActive   Lifecycle = "active"
	LifecycleDeleting Lifecycle = "deleting"
	LifecycleDeleted  Lifecycle = "deleted"
	LifecycleError    Lifecycle = "error"
)

// Power is what the hypervisor last said about the machine, or that it cannot be known.
type Power string

const (
	PowerRunning   Power = "running"
	PowerStopped   Power = "stopped"
	PowerPaused    Power = "paused"
	PowerSuspended Power = "suspended"
	PowerUnknown   Power = "unknown"
)

// State is the one word tenants see, derived from lifecycle, power and the live job.
type State string

const (
	StateCreating   State = "creating"
	StateStarting   State = "starting"
	StateRunning    State = "running"
	StateStopping   State = "stopping"
	StateStopped    State = "stopped"
	StateRestarting State = "restarting"
	StateDeleting   State = "deleting"
	StateDeleted    State = "deleted"
	StateError      State = "error"
	StateUnknown    State = "unknown"
	StatePaused     State = "paused"
	StateSuspended  State = "suspended"
)

// States lists every State, for documentation, filters and schemas.
func States() []State {
	return []State{StateCreating, StateStarting, StateRunning, StateStopping, StateStopped, StateRestarting,
		StateDeleting, StateDeleted, StateError, StateUnknown, StatePaused, StateSuspended}
}

// VM is one virtual machine as its actor stores it. Only its actor writes it.
type VM struct {
	ID      VMID      `json:"id"`
	Name    string    `json:"name"`
	Org     OrgID     `json:"org"`
	Project ProjectID `json:"project"`
	Owner   string    `json:"owner"` // subject of the token that created it
	Region  string    `json:"region"`
	Zone    ZoneID    `json:"zone"`
	// ZoneName is copied so that a row can be shown without a join.
	ZoneName string    `json:"zone_name"`
	Cluster  ClusterID `json:"cluster"`
	Pool     string    `json:"pool,omitempty"`

	Lifecycle Lifecycle `json:"lifecycle"`
	Power     Power     `json:"power"`
	PowerAt   time.Time `json:"power_at,omitzero"`  // when the provider last said so
	Activity  JobKind   `json:"activity,omitempty"` // kind of the live job; written only with it

	Desired            Desired           `json:"desired"`
	Image              ImagePin          `json:"image"`
	Flavor             FlavorPin         `json:"flavor"`
	Hostname           string            `json:"hostname"`
	SSHKeys            []string          `json:"ssh_keys,omitempty"`
	UserData           Sealed            `json:"user_data,omitempty"` // sealed with associated data UserDataContext(ID)
	Networks           []string          `json:"networks,omitempty"`
	Labels             map[string]string `json:"labels,omitempty"`
	Description        string            `json:"description,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`

	ProviderName string       `json:"provider_name"` // generated ASCII name on the hypervisor
	Ref          *ProviderRef `json:"ref,omitempty"` // nil until prepared, nil again once verified absent
	// CreateIntent is true from the commit that journals a create until the provider
	// object is known to exist or known to be absent. While it is true an object with
	// our marker may appear late; on a failed or deleted VM it is residue.
	CreateIntent bool `json:"create_intent,omitempty"`

	// Holding is true while the VM holds quota and capacity.
	Holding bool `json:"holding"`

	Generation int64       `json:"generation"` // counts changes a tenant can see; the ETag
	CreatedAt  time.Time   `json:"created_at"`
	UpdatedAt  time.Time   `json:"updated_at"`
	DeletedAt  time.Time   `json:"deleted_at,omitzero"`
	LastJob    *LastJob    `json:"last_job,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Desired is what the tenant asked for.
type Desired struct {
	Power Power `json:"power"` // running or stopped
}

// ImagePin is the image as it was when the VM was accepted; later changes of the
// catalogue do not touch it.
type ImagePin struct {
	ID      ImageID `json:"id"`
	Name    string  `json:"name"`
	Version string  `json:"version"`
	SHA256  string  `json:"sha256"`
	// Artefact is the image's reference on the VM's cluster. Operators only.
	Artefact string   `json:"artefact,omitempty"`
	Firmware Firmware `json:"firmware,omitempty"`
}

// Firmware is how a machine boots.
type Firmware string

const (
	FirmwareBIOS Firmware = "bios"
	FirmwareUEFI Firmware = "uefi"
)

// FlavorPin is the flavor's sizes, copied at create.
type FlavorPin struct {
	ID        FlavorID `json:"id"`
	Name      string   `json:"name"`
	VCPUs     int      `json:"vcpus"`
	MemoryMiB int      `json:"memory_mib"`
	DiskGiB   int      `json:"disk_gib"`
}

// ProviderRef is the provider's identity of the VM. Operators only.
type ProviderRef struct {
	ID   string `json:"id"`             // vmid, moref, uuid; unique in the cluster
	Host string `json:"host,omitempty"` // where it lives, if the provider has hosts
}

// LastJob tells from the VM alone what happened last and why.
type LastJob struct {
	ID         JobID     `json:"id"`
	Kind       JobKind   `json:"kind"`
	State      JobState  `json:"state"`
	Error      *Fault    `json:"error,omitempty"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// Condition is a standing remark on a VM: why it is in error, what is left over.
type Condition struct {
	Type    string    `json:"type"`   // e.g. "create_failed", "residue", "missing", "duplicate"
	Reason  string    `json:"reason"` // listed snake_case word
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Sealed is ciphertext. It marshals to base64 and cannot print.
type Sealed []byte

func (s Sealed) String() string   { return "[sealed]" }
func (s Sealed) GoString() string { return "[sealed]" }

// UserDataContext binds sealed user data to its VM.
func UserDataContext(id VMID) string { return "vm/" + string(id) + "/user-data" }

// CredentialContext binds sealed provider credentials to their cluster.
func CredentialContext(id ClusterID) string { return "cluster/" + string(id) + "/credentials" }

// SetCondition replaces the condition of the same type, keeping its Since when the reason is unchanged.
func (v *VM) SetCondition(c Condition) {
	for i, old := range v.Conditions {
		if old.Type == c.Type {
			if old.Reason == c.Reason {
				c.Since = old.Since
			}
			v.Conditions[i] = c
			return
		}
	}
	v.Conditions = append(v.Conditions, c)
}

// ClearCondition removes the condition of that type.
func (v *VM) ClearCondition(typ string) {
	for i, c := range v.Conditions {
		if c.Type == typ {
			v.Conditions = append(v.Conditions[:i:i], v.Conditions[i+1:]...)
			return
		}
	}
}

// Clone copies the VM so that the copy can be changed freely.
func (v VM) Clone() VM {
	c := v
	c.SSHKeys = append([]string(nil), v.SSHKeys...)
	c.Networks = append([]string(nil), v.Networks...)
	c.Conditions = append([]Condition(nil), v.Conditions...)
	if v.Labels != nil {
		c.Labels = make(map[string]string, len(v.Labels))
		for k, val := range v.Labels {
			c.Labels[k] = val
		}
	}
	if v.Ref != nil {
		ref := *v.Ref
		c.Ref = &ref
	}
	if v.LastJob != nil {
		last := *v.LastJob
		c.LastJob = &last
	}
	return c
}

// HoldsName reports whether the VM still occupies its name: a name is free from
// the commit that accepts the delete.
func (v VM) HoldsName() bool {
	return v.Lifecycle != LifecycleDeleting && v.Lifecycle != LifecycleDeleted && v.Activity != JobDelete
}
