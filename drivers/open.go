package drivers

import (
	"context"
	"log/slog"
	"time"

	"github.com/lotuscloud/hcp"
)

// Config is what a driver needs to reach one cluster.
type Config struct {
	Cluster     hcp.ClusterID
	Endpoint    string // as registered; several hosts comma-separated
	Options     map[string]string
	Credentials []byte // opened JSON; nil when the cluster needs none
	// CallTimeout bounds each provider call; 30 s when zero.
	CallTimeout time.Duration
	Now         func() time.Time
	Log         *slog.Logger
}

// Opener makes a driver. It checks the configuration (INVALID_REQUEST with
// fields) and does not need the provider to answer: an unreachable provider
// shows at Probe.
type Opener func(ctx context.Context, cfg Config) (Driver, error)

// Openers by driver name; built by hand in cmd.
type Openers map[string]Opener
