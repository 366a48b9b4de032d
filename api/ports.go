package api

import (
	"context"
	"io"
	"time"

	"github.com/lotuscloud/hcp"
)

// Commander brings a command to the owner of its cluster and returns what the
// owner said. An error means that the owner did not answer; a refusal is
// Answer.Fault.
type Commander interface {
	Do(ctx context.Context, c hcp.Command) (hcp.Answer, error)
}

// Wakes are hints that there may be something new. A hint may come late, twice or
// not at all: whoever waits also re-reads. woken is level-triggered.
type Wakes interface {
	WaitJob(id hcp.JobID) (woken <-chan struct{}, stop func())
	WaitEvents() (woken <-chan struct{}, stop func())
}

// Images brings an image file to a cluster.
type Images interface {
	// ImportImage is idempotent by (name, sha256). It reads content to its end or fails.
	ImportImage(ctx context.Context, cluster hcp.ClusterID, name, sha256 string, size int64, content io.Reader) (artefact string, err error)
}

// Observation is one finished request, for metrics.
type Observation struct {
	Route    string // route id; "" when none matched
	Method   string
	Status   int
	Code     hcp.Code // empty when the answer is no error
	Duration time.Duration
}
