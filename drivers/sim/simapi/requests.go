package simapi

// Target is the part that all requests on one machine share.
type Target struct {
	ID string `json:"id"`
	// ExpectMarker, when set, makes the call a refusal (409 foreign) unless the machine
	// carries it. The check and the effect are one: nobody comes between.
	ExpectMarker string `json:"expect_marker,omitempty"`
}

// CloneRequest makes a machine. It is not idempotent: a second clone with the same
// name is a second machine. Marker and machine come into being together.
type CloneRequest struct {
	ID        string   `json:"id,omitempty"` // empty: the cluster picks one
	Name      string   `json:"name"`
	Marker    string   `json:"marker,omitempty"`
	Host      string   `json:"host,omitempty"` // empty: the host with most free memory
	Image     string   `json:"image"`
	Firmware  string   `json:"firmware,omitempty"`
	VCPUs     int      `json:"vcpus"`
	MemoryMiB int      `json:"memory_mib"`
	DiskGiB   int      `json:"disk_gib"`
	Hostname  string   `json:"hostname,omitempty"`
	Networks  []string `json:"networks,omitempty"`
	SSHKeys   []string `json:"ssh_keys,omitempty"`
	UserData  []byte   `json:"user_data,omitempty"` // base64
}

// SizeRequest is the body of configure (any of the three; the machine may run only
// if nothing changes) and of resize (the same, but the disk may only grow).
type SizeRequest struct {
	Target
	VCPUs     int `json:"vcpus,omitempty"`
	MemoryMiB int `json:"memory_mib,omitempty"`
	DiskGiB   int `json:"disk_gib,omitempty"`
}

// SnapshotRequest is the body of snapshot, revert and delete_snapshot.
type SnapshotRequest struct {
	Target
	Snapshot string `json:"snapshot"`
}

// VolumeRequest is the body of attach and detach.
type VolumeRequest struct {
	Target
	Volume string `json:"volume"`
}

// CreateVolumeRequest makes a volume; DeleteVolumeRequest removes one that is not attached.
type CreateVolumeRequest struct {
	Volume string `json:"volume"` // its id, chosen by the caller
	GiB    int    `json:"gib"`
}

type DeleteVolumeRequest struct {
	Volume string `json:"volume"`
}

// ConsoleRequest is the body of open_console (Console is the id the caller chose) and close_console.
type ConsoleRequest struct {
	Target
	Console string `json:"console"`
}

// ImportImageRequest registers an image. The sim keeps its digest, not its bytes;
// the same name with the same digest again is no error.
type ImportImageRequest struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// FindRequest asks for every machine with that marker on all hosts.
type FindRequest struct {
	Marker string `json:"marker"`
}

// ListRequest pages through all machines in the order of their ids as text.
type ListRequest struct {
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // 1..1000, 1000 when absent
}

type TaskRequest struct {
	ID string `json:"id"`
}

type LoginRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Answers of the API.
type (
	TaskAnswer struct {
		Task Task `json:"task"`
	}
	LoginAnswer struct {
		Token string `json:"token"` // goes into the header TokenHeader of all other calls
	}
	// MachinesAnswer answers list and find. Unreached names hosts that did not answer.
	MachinesAnswer struct {
		Machines  []Machine `json:"machines"`
		Next      string    `json:"next,omitempty"` // the After of the next page; empty: that was all
		Unreached []string  `json:"unreached,omitempty"`
	}
	ClusterAnswer struct {
		Version string  `json:"version"`
		Now     int64   `json:"now_ms"` // the cluster's clock, Unix milliseconds
		Hosts   []Host  `json:"hosts"`
		Images  []Image `json:"images"`
	}
)

// TokenHeader carries the session's token.
const TokenHeader = "Sim-Token"
