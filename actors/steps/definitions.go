package steps

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/saga"
)

// Definitions declares every kind of job.
func Definitions() map[hcp.JobKind]saga.Definition {
	all := []saga.Definition{
		{Kind: hcp.JobCreate, Steps: []saga.Step{
			{Name: "prepare", Do: prepare, Reads: true, Cancellable: true},
			{Name: "create", Do: create, Undo: remove, Makes: true, Cancellable: true},
			{Name: "configure", Do: configure, Follows: true, Cancellable: true},
			{Name: "start", Do: startIfAsked, Undo: forceOff, Cancellable: true},
			{Name: "verify", Do: verifyMade, Reads: true, Cancellable: true},
		}},
		{Kind: hcp.JobStart, Steps: []saga.Step{
			{Name: "start", Do: start, Cancellable: true},
			{Name: "verify", Do: verifyRunning, Reads: true},
		}},
		{Kind: hcp.JobStop, Steps: []saga.Step{
			{Name: "stop", Do: stop, Cancellable: true},
		}},
		{Kind: hcp.JobReboot, Steps: []saga.Step{
			{Name: "stop", Do: stop, Cancellable: true},
			{Name: "start", Do: start},
			{Name: "verify", Do: verifyRunning, Reads: true},
		}},
		{Kind: hcp.JobDelete, Steps: []saga.Step{
			{Name: "stop", Do: forceOff},
			{Name: "delete", Do: deleteMachine, Follows: true},
			{Name: "verify", Do: verifyGone, Reads: true},
		}},
		{Kind: hcp.JobRefresh, Steps: []saga.Step{
			{Name: "read", Do: read, Reads: true, Cancellable: true},
		}},
		{Kind: hcp.JobCleanup, Steps: []saga.Step{
			{Name: "remove", Do: remove},
		}},
	}
	byKind := make(map[hcp.JobKind]saga.Definition, len(all))
	for _, d := range all {
		byKind[d.Kind] = d
	}
	return byKind
}

// verifyRounds bounds how often a verification looks again before it says that
// the provider's "done" was not true: about ten seconds.
const verifyRounds = 12

// pause is how long to wait before looking again: quick at first, then each two seconds.
func pause(round int) time.Duration {
	return min(50*time.Millisecond<<min(round, 10), 2*time.Second)
}

// DefaultStopTimeout is how long a graceful stop may take when the caller names no time.
const DefaultStopTimeout = 60 * time.Second
