package provider

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// Work is one piece of provider work of a VM. Exactly one of Do and Refused is
// called, once, from a worker.
type Work struct {
	VM      hcp.VMID
	Project hcp.ProjectID
	Kind    hcp.JobKind
	// Mutates is false for work that only reads.
	Mutates bool
	// Do returns the provider error that ended the work, for the circuit breaker.
	Do      func(ctx context.Context, s Session) error
	Refused func(err *hcp.Error) // the provider takes no work now; nothing was called
}

// Session is what a worker may use while it works.
type Session struct {
	Driver       drivers.Driver
	Info         hcp.ClusterInfo
	ClusterEpoch int64
	CallTimeout  time.Duration
	// Report hands an observation to the inventory, so that it shows at once.
	Report func(drivers.Observation)
}

// Workers takes work for the cluster that a VM is placed on.
type Workers interface {
	Submit(cluster hcp.ClusterID, w Work)
	// Settle is the cluster's settle time; zero while it is not known.
	Settle(cluster hcp.ClusterID) time.Duration
}
