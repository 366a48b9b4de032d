package drivertest

import (
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// All in Env.Require makes every rule required.
const All = "*"

// Call names a method of a driver that changes a machine.
type Call string

const (
	CallCreate Call = "create"
	CallStart  Call = "start"
	CallStop   Call = "stop"
	CallDelete Call = "delete"
)

// Env is what a driver gives to the suite.
type Env struct {
	// Open opens the driver on the peer's cluster. It is called several times on the
	// same cluster, and the drivers live side by side. The suite closes what it opens.
	Open func(t testing.TB) drivers.Driver
	// Image is the artefact to create from, or "" when the peer has none of that
	// firmware. One for BIOS must exist.
	Image func(hcp.Firmware) string

	// Sizes of the machines; 1 vCPU, 128 MiB, 1 GiB when zero.
	Sizes    hcp.Sizes
	Networks []string
	Pool     string
	SSHKeys  []string
	UserData []byte

	// Wait bounds a provider task, Boot the time until a started machine has an
	// address or obeys a graceful stop; 10 s each when zero. Poll is the pause between
	// two looks; 20 ms when zero.
	Wait, Boot, Poll time.Duration
	// Creates is how many machines ConcurrentCreatesAllSucceed makes; 8 when zero.
	Creates int

	// Require names rules (or All) that must not be skipped.
	Require []string
	// Differs names rules that this driver is known to break, with reason and issue; they are skipped even if required.
	Differs map[string]string

	Hooks Hooks
}

// Hooks are what only the peer can do. Each may be nil; the rules that need it
// are then skipped.
type Hooks struct {
	// CutBefore cuts the connection of the next such call before it has an effect,
	// CutAfter after its effect (or after its task has begun) and before its answer. The
	// suite makes that call next, and only forced stops.
	CutBefore, CutAfter func(t testing.TB, call Call)
	// Stranger puts a machine without any marker, powered off, under ref, where nothing
	// is now. The hook removes it when t ends.
	Stranger func(t testing.TB, ref hcp.ProviderRef)
	// Exists reports, past the driver, whether there is a machine under ref.
	Exists func(t testing.TB, ref hcp.ProviderRef) bool
	// Count reports, past the driver, how many machines carry the marker.
	Count func(t testing.TB, vm hcp.VMID) int
	// Down makes the provider unreachable, Up reachable again.
	Down, Up func(t testing.TB)
	// HostDown cuts off one host of the cluster, the one of ref, and returns its name as
	// Inventory reports it; HostUp brings it back.
	HostDown func(t testing.TB, ref hcp.ProviderRef) string
	HostUp   func(t testing.TB, host string)
	// Sessions counts the sessions that are open at the provider.
	Sessions func(t testing.TB) int
	// Slow makes the next reads take longer than a test waits, until Fast.
	Slow, Fast func(t testing.TB)
	// Secrets are words that no tenant may read: host names, addresses, URLs.
	Secrets []string
}

func (e *Env) defaults() {
	if e.Sizes == (hcp.Sizes{}) {
		e.Sizes = hcp.Sizes{VCPUs: 1, MemoryMiB: 128, DiskGiB: 1}
	}
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&e.Wait, 10*time.Second)
	set(&e.Boot, 10*time.Second)
	set(&e.Poll, 20*time.Millisecond)
	if e.Creates == 0 {
		e.Creates = 8
	}
}
