package hcp

import "time"

// Cluster is one provider cluster: a Proxmox cluster, a vCenter, a set of
// libvirt hosts, a Hyper-V host or cluster, or a simulated hypervisor. It is
// governed by its provider actor, the only writer of this record.
type Cluster struct {
	ID          ClusterID         `json:"id"`
	Name        string            `json:"name"`
	Driver      string            `json:"driver"`   // sim, libvirt, proxmox, vsphere, hyperv
	Endpoint    string            `json:"endpoint"` // no credentials in it; several hosts comma-separated
	Options     map[string]string `json:"options,omitempty"`
	Maintenance bool              `json:"maintenance,omitempty"`
	Deleted     bool              `json:"deleted,omitempty"`
	Info        *ClusterInfo      `json:"info,omitempty"` // the last successful probe
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

// ClusterInfo is what a probe found out.
type ClusterInfo struct {
	Version      string        `json:"version"`
	Hosts        []Host        `json:"hosts"`
	Capabilities Capabilities  `json:"capabilities"`
	Capacity     Sizes         `json:"capacity"`
	ClockSkew    time.Duration `json:"clock_skew"`
	// SettleTime is how long an unknown create may take to show; looks repeat so long.
	SettleTime time.Duration `json:"settle_time"`
	ProbedAt   time.Time     `json:"probed_at"`
}

// Host is one hypervisor host of a cluster. Operators only.
type Host struct {
	Name      string `json:"name"`
	Reachable bool   `json:"reachable"`
	Capacity  Sizes  `json:"capacity"`
	Free      Sizes  `json:"free"`
	Message   string `json:"message,omitempty"`
}

// Sizes is an amount of compute.
type Sizes struct {
	VCPUs     int64 `json:"vcpus"`
	MemoryMiB int64 `json:"memory_mib"`
	DiskGiB   int64 `json:"disk_gib"`
}

// Plus and Minus are componentwise.
func (s Sizes) Plus(o Sizes) Sizes {
	return Sizes{s.VCPUs + o.VCPUs, s.MemoryMiB + o.MemoryMiB, s.DiskGiB + o.DiskGiB}
}

func (s Sizes) Minus(o Sizes) Sizes {
	return Sizes{s.VCPUs - o.VCPUs, s.MemoryMiB - o.MemoryMiB, s.DiskGiB - o.DiskGiB}
}

// Fits reports whether s is at most o in every component.
func (s Sizes) Fits(o Sizes) bool {
	return s.VCPUs <= o.VCPUs && s.MemoryMiB <= o.MemoryMiB && s.DiskGiB <= o.DiskGiB
}

// Sizes of a flavor.
func (f FlavorPin) Sizes() Sizes { return Sizes{int64(f.VCPUs), int64(f.MemoryMiB), int64(f.DiskGiB)} }

// Reachability is the health of a cluster as its provider actor sees it.
type Reachability struct {
	Reachable  bool      `json:"reachable"`
	Reason     string    `json:"reason,omitempty"` // unreachable, auth_failed, forbidden, breaker_open
	LastGoodAt time.Time `json:"last_good_at,omitzero"`
	ChangedAt  time.Time `json:"changed_at"`
	Unreached  []string  `json:"unreached,omitempty"` // hosts that did not answer; operators only
}

// Zone is what a tenant may name: it hides clusters and hosts.
type Zone struct {
	ID        ZoneID        `json:"id"`
	Name      string        `json:"name"`
	Region    string        `json:"region"`
	Members   []ZoneCluster `json:"members"`
	CreatedAt time.Time     `json:"created_at"`
}

// ZoneCluster maps a zone to a cluster, or to a pool of it. Operators only.
type ZoneCluster struct {
	Cluster     ClusterID `json:"cluster"`
	Pool        string    `json:"pool,omitempty"`
	Weight      int       `json:"weight,omitempty"` // 0 reads as 1
	CPURatio    float64   `json:"cpu_ratio,omitempty"`
	MemoryRatio float64   `json:"memory_ratio,omitempty"`
}

// ImageState is where an image stands in its life.
type ImageState string

const (
	ImageActive     ImageState = "active"
	ImageDeprecated ImageState = "deprecated"
	ImageRetired    ImageState = "retired"
)

// Image is one logical image: one artefact on each provider cluster that has it.
type Image struct {
	ID        ImageID              `json:"id"`
	Name      string               `json:"name"`
	Version   string               `json:"version"`
	SHA256    string               `json:"sha256"`
	Firmware  Firmware             `json:"firmware"`
	State     ImageState           `json:"state"`
	MinDisk   int                  `json:"min_disk_gib,omitempty"`
	MinMemory int                  `json:"min_memory_mib,omitempty"`
	Artefacts map[ClusterID]string `json:"artefacts,omitempty"` // cluster -> reference there. Operators only
	CreatedAt time.Time            `json:"created_at"`
}

// Flavor is a size tenants choose from.
type Flavor struct {
	ID        FlavorID  `json:"id"`
	Name      string    `json:"name"`
	VCPUs     int       `json:"vcpus"`
	MemoryMiB int       `json:"memory_mib"`
	DiskGiB   int       `json:"disk_gib"`
	Retired   bool      `json:"retired,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// Pin copies the sizes into a VM.
func (f Flavor) Pin() FlavorPin { return FlavorPin{f.ID, f.Name, f.VCPUs, f.MemoryMiB, f.DiskGiB} }
