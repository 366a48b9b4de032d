package simapi

import "fmt"

// Power of a machine.
const (
	Running = "running"
	Stopped = "stopped"
)

// Machine is one virtual machine as the API shows it.
type Machine struct {
	ID        string     `json:"id"` // digits; unique among what lives now
	Name      string     `json:"name"`
	Marker    string     `json:"marker,omitempty"` // the VM id of HCP; empty: not made by HCP
	Host      string     `json:"host"`
	Power     string     `json:"power"`
	VCPUs     int        `json:"vcpus"`
	MemoryMiB int        `json:"memory_mib"`
	DiskGiB   int        `json:"disk_gib"` // the boot disk
	Image     string     `json:"image,omitempty"`
	Firmware  string     `json:"firmware,omitempty"`
	Hostname  string     `json:"hostname,omitempty"`
	SSHKeys   int        `json:"ssh_keys,omitempty"`         // how many came with the seed
	UserData  string     `json:"user_data_sha256,omitempty"` // digest of the bytes of the seed
	Boots     int        `json:"boots,omitempty"`
	Volumes   []string   `json:"volumes,omitempty"` // attached ones, apart from the boot disk
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	Lock      *Lock      `json:"lock,omitempty"` // a task is at work on it
	Addresses []string   `json:"addresses,omitempty"`
}

// Lock names the task that works on a machine.
type Lock struct {
	Task string `json:"task"`
	Op   Op     `json:"op"`
}

// Snapshot holds what a revert brings back.
type Snapshot struct {
	Name      string `json:"name"`
	VCPUs     int    `json:"vcpus"`
	MemoryMiB int    `json:"memory_mib"`
	DiskGiB   int    `json:"disk_gib"`
}

// Volume is a disk apart from the boot disk.
type Volume struct {
	ID      string `json:"id"`
	GiB     int    `json:"gib"`
	Machine string `json:"machine,omitempty"` // where it is attached
}

// Image is something a machine can be cloned from.
type Image struct {
	Ref    string `json:"ref"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// Host is one host of the cluster; Used counts memory and disk of all its machines.
type Host struct {
	Name      string `json:"name"`
	Down      bool   `json:"down,omitempty"`
	VCPUs     int64  `json:"vcpus"`
	MemoryMiB int64  `json:"memory_mib"`
	DiskGiB   int64  `json:"disk_gib"`
	Used      Sizes  `json:"used"`
}

// Sizes is an amount of compute.
type Sizes struct {
	VCPUs     int64 `json:"vcpus"`
	MemoryMiB int64 `json:"memory_mib"`
	DiskGiB   int64 `json:"disk_gib"`
}

// States of a Task.
const (
	TaskRunning = "running"
	TaskDone    = "done"
	TaskFailed  = "failed"
)

// Task is one piece of work of the hypervisor.
type Task struct {
	ID      string `json:"id"`
	Op      Op     `json:"op"`
	Machine string `json:"machine,omitempty"`
	State   string `json:"state"`
	Error   *Error `json:"error,omitempty"` // when failed
}

// Codes of Error.
const (
	CodeBadRequest     = "bad_request"
	CodeUnauthorized   = "unauthorized"
	CodeForbidden      = "forbidden"
	CodeNotFound       = "not_found" // no such machine; said by a healthy cluster only
	CodeNoTask         = "no_such_task"
	CodeNoImage        = "no_such_image"
	CodeNoVolume       = "no_such_volume"
	CodeNoSnapshot     = "no_such_snapshot"
	CodeNoConsole      = "no_such_console"
	CodeNoPath         = "no_such_path"
	CodeTaken          = "taken"   // the provider id is in use
	CodeForeign        = "foreign" // the machine does not carry the expected marker
	CodeLocked         = "locked"
	CodeNotStopped     = "not_stopped"
	CodeNotRunning     = "not_running"
	CodeAlreadyRunning = "already_running"
	CodeAlreadyStopped = "already_stopped"
	CodeExists         = "exists"
	CodeInUse          = "in_use"
	CodeNoCapacity     = "no_capacity"
	CodeUnavailable    = "unavailable"
	CodeHostDown       = "host_down"
	CodeInternal       = "internal"
)

// Error is the body of every answer that is not 2xx.
type Error struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("sim: %d %s: %s", e.Status, e.Code, e.Message) }

var statusOf = map[string]int{
	CodeBadRequest: 400, CodeUnauthorized: 401, CodeForbidden: 403, CodeNotFound: 404, CodeNoTask: 404, CodeNoImage: 404,
	CodeNoVolume: 404, CodeNoSnapshot: 404, CodeNoConsole: 404, CodeNoPath: 404, CodeTaken: 409, CodeForeign: 409,
	CodeLocked: 409, CodeNotStopped: 409, CodeNotRunning: 409, CodeAlreadyRunning: 409, CodeAlreadyStopped: 409,
	CodeExists: 409, CodeInUse: 409, CodeNoCapacity: 507, CodeUnavailable: 503, CodeHostDown: 503, CodeInternal: 500,
}

// Errorf makes an Error of one of the codes above.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Status: statusOf[code], Code: code, Message: fmt.Sprintf(format, args...)}
}

// StatusOf is the HTTP status of a code; ok is false for a code that is none.
func StatusOf(code string) (status int, ok bool) { status, ok = statusOf[code]; return status, ok }

// CodeOfStatus is the code that a bare HTTP status stands for in `fail`.
func CodeOfStatus(status int) string {
	switch status {
	case 400:
		return CodeBadRequest
	case 401:
		return CodeUnauthorized
	case 403:
		return CodeForbidden
	case 404:
		return CodeNotFound
	case 409, 423, 429:
		return CodeLocked
	case 502, 503, 504:
		return CodeUnavailable
	case 507:
		return CodeNoCapacity
	}
	return CodeInternal
}
