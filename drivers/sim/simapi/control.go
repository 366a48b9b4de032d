package simapi

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Forever as a count keeps a fault until it is cleared.
const Forever = -1

// OpFault is the body of controls that name one operation ("*": all of them).
type OpFault struct {
	Op Op `json:"op"`
	// N is how many calls are hit: 0 reads as 1, Forever until cleared.
	N int `json:"n,omitempty"`
}

// DelayFault: an operation that changes the world answers at once with a running
// task that takes MS; one that reads answers after MS. MS 0 ends it.
type DelayFault struct {
	Op Op  `json:"op"`
	MS int `json:"ms"`
}

// FailFault makes calls fail without effect. Code is an HTTP status or one of the
// codes of Error; "ok" ends the fault. With InTask the call is answered with a
// running task which then fails.
type FailFault struct {
	OpFault
	Code   FailCode `json:"code"`
	InTask bool     `json:"in_task,omitempty"`
}

// HangFault: the call is never answered (with Answer: answered with a task that never
// ends) until release; its effect then comes late. N 0 hits every call until release.
type HangFault struct {
	Op     Op   `json:"op"`
	N      int  `json:"n,omitempty"`
	Answer bool `json:"answer,omitempty"`
}

// LoseFault: the call is answered with a running task that nobody knows afterwards.
// When "after" (the default) its effect happens, when "before" it never does.
type LoseFault struct {
	OpFault
	When string `json:"when,omitempty"`
}

// DownRequest: with "refuse" (the default) every API call is answered 503 before
// it does anything, with "cut" its connection is cut. Controls go on.
type DownRequest struct {
	Mode string `json:"mode,omitempty"`
}

// OOBRequest is somebody acting behind our back. VM is the VM id of HCP or a
// provider id.
//
//	create   {name?, marker?, image?, vcpus?, memory_mib?, disk_gib?, power?, id?, n?}
//	delete start stop unmark {vm}      set_cpu {vm, vcpus}      add_disk {vm, gib}
//	migrate {vm, host}                 recycle {vm}: delete it, create a stranger under its provider id
type OOBRequest struct {
	Verb      string `json:"verb"`
	VM        string `json:"vm,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Marker    string `json:"marker,omitempty"`
	Image     string `json:"image,omitempty"`
	VCPUs     int    `json:"vcpus,omitempty"`
	MemoryMiB int    `json:"memory_mib,omitempty"`
	DiskGiB   int    `json:"disk_gib,omitempty"`
	Power     string `json:"power,omitempty"`
	Host      string `json:"host,omitempty"`
	GiB       int    `json:"gib,omitempty"`
	N         int    `json:"n,omitempty"`
}

// OOBAnswer names the machines that were touched or made.
type OOBAnswer struct {
	IDs []string `json:"ids"`
}

// OmitRequest leaves a machine out of the next N lists (Forever: of all), as a
// stale inventory does; get and find still show it.
type OmitRequest struct {
	VM string `json:"vm"`
	N  int    `json:"n"`
}

// HostRequest cuts a host off (its machines run on, nobody can tell), changes its
// capacity, or adds a host that is not there.
type HostRequest struct {
	Name      string `json:"name"`
	Down      *bool  `json:"down,omitempty"`
	VCPUs     int64  `json:"vcpus,omitempty"`
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	DiskGiB   int64  `json:"disk_gib,omitempty"`
}

// BootRequest sets how long a machine takes from power on to its address.
type BootRequest struct {
	MS int `json:"ms"`
}

// PasswordRequest sets the password that login demands; empty: any is good.
type PasswordRequest struct {
	Password string `json:"password"`
}

// OpRequest names an operation, or none for all.
type OpRequest struct {
	Op Op `json:"op,omitempty"`
}

// Answers of controls.
type (
	OK          struct{}
	ListedEntry struct {
		Machine
		Ours bool `json:"ours"` // carries a marker
	}
	ListAnswer struct {
		Machines []ListedEntry `json:"machines"`
		Volumes  []Volume      `json:"volumes"`
	}
	// Count of one operation: calls that came (to reads as well), and effects on the world.
	Count struct {
		Calls   int64 `json:"calls"`
		Effects int64 `json:"effects"`
	}
	CountAnswer struct {
		Ops          map[Op]Count `json:"ops"`
		OpenConsoles int          `json:"open_consoles"`
	}
	SessionsAnswer struct {
		Sessions int   `json:"sessions"` // open now
		Logins   int64 `json:"logins"`   // tried since the start
	}
	ReleaseAnswer struct {
		Released int `json:"released"`
	}
	StatusAnswer struct {
		Down    string         `json:"down,omitempty"`
		BootMS  int            `json:"boot_ms"`
		Faults  map[Op]OpState `json:"faults"`
		Running []Task         `json:"running"` // tasks, hung calls included
		Hosts   []Host         `json:"hosts"`
	}
)

// OpState is every fault that is set on one operation.
type OpState struct {
	DelayMS    int        `json:"delay_ms,omitempty"`
	Fail       *FailFault `json:"fail,omitempty"`
	DropBefore int        `json:"drop_before,omitempty"`
	DropAfter  int        `json:"drop_after,omitempty"`
	Noop       int        `json:"noop,omitempty"`
	Hang       *HangFault `json:"hang,omitempty"`
	Lose       *LoseFault `json:"lose,omitempty"`
}

// FailCode is a code of Error; in JSON also the number of an HTTP status.
type FailCode string

// UnmarshalJSON takes 500 and "locked" alike.
func (c *FailCode) UnmarshalJSON(b []byte) error {
	if n, err := strconv.Atoi(string(b)); err == nil {
		if n < 400 || n > 599 {
			return fmt.Errorf("code %d is no HTTP error status", n)
		}
		*c = FailCode(CodeOfStatus(n))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("code must be an HTTP status or a name")
	}
	if _, ok := StatusOf(s); !ok && s != "ok" {
		return fmt.Errorf("code %q is unknown", s)
	}
	*c = FailCode(s)
	return nil
}
