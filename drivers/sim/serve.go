package sim

import (
	"context"

	"github.com/lotuscloud/hcp/drivers/sim/simctl"
	"github.com/lotuscloud/hcp/drivers/sim/simd"
)

// The hypervisor behind this driver, for those who run one: `hcpd sim`, `hcpd --dev`, tests.
type (
	ServeConfig  = simd.ServeConfig
	ServerConfig = simd.Config
	Server       = simd.Server
	Client       = simctl.Client
)

// Serve runs a simulated hypervisor with a listener of its own until ctx ends.
func Serve(ctx context.Context, cfg ServeConfig) error { return simd.Serve(ctx, cfg) }

// NewServer makes a simulated hypervisor to be put behind a listener of the caller's.
func NewServer(cfg ServerConfig) (*Server, error) { return simd.NewServer(cfg) }

// NewClient drives the fault controls of the simulated hypervisor at url.
func NewClient(url string) *Client { return simctl.NewClient(url) }
