package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/steps"
	"github.com/lotuscloud/hcp/actors/vm"
	"github.com/lotuscloud/hcp/cluster"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/transport"
)

// Deps are what a node is made of.
type Deps struct {
	Store   persistence.Store
	Sealer  persistence.Sealer
	Bus     transport.Bus
	Wakes   *transport.Wakes
	Members cluster.Membership
	Openers drivers.Openers
	Clock   clock.Clock
	IDs     ident.Source
	Jitter  func(time.Duration) time.Duration
	Log     *slog.Logger
	Metrics Metrics
	Jobs    vm.Policy
	Cluster provider.Policy
	// Idle is how long an actor without work stays in memory.
	Idle time.Duration
	// Scan is how often due jobs and idle actors are looked for.
	Scan time.Duration
}

// Metrics is told what happens; every method must be quick.
type Metrics interface {
	JobEnded(kind hcp.JobKind, state hcp.JobState, code hcp.Code, took time.Duration)
	ProviderCalled(cluster hcp.ClusterID, op string, code hcp.Code, took time.Duration)
}

// Node runs the actors.
type Node struct {
	deps      Deps
	system    *actors.System
	vms       *actors.Registry
	clusters  *actors.Registry
	publisher *publisher

	mu     sync.Mutex
	settle map[hcp.ClusterID]time.Duration

	stopServing func()
	stopScan    chan struct{}
	scanDone    chan struct{}
}

// Start brings a node to life: it answers commands when Start returns.
func Start(ctx context.Context, deps Deps) (*Node, error) {
	n := &Node{deps: deps, system: actors.NewSystem(deps.Log), settle: map[hcp.ClusterID]time.Duration{},
		stopScan: make(chan struct{}), scanDone: make(chan struct{})}
	n.publisher = newPublisher(deps.Store, deps.Wakes, deps.Clock, deps.Log)
	limits := actors.Limits{Idle: deps.Idle, MaxBackoff: time.Minute, Quarantine: 5}

	self := deps.Members.Self()
	vmDeps := &vm.Deps{
		Core:  &vm.Core{Policy: deps.Jobs, Kinds: steps.Definitions(), NewID: deps.IDs.New, Jitter: deps.Jitter, Settle: n.Settle},
		Store: deps.Store, Workers: n, Sealer: deps.Sealer, Clock: deps.Clock, Log: deps.Log,
		Node: self.Name, Incarnation: self.Incarnation, Committed: n.committed, Called: n.called,
	}
	n.vms = actors.NewRegistry(n.system, deps.Clock, limits, func(_ string, self *actors.Self) actors.Behaviour { return vm.New(vmDeps, self) })
	clusterDeps := &provider.Deps{
		Store: deps.Store, Openers: deps.Openers, Sealer: deps.Sealer, VMs: n, Clock: deps.Clock, NewID: deps.IDs.New,
		Log: deps.Log, Policy: deps.Cluster, Published: n.publisher.wake, Settled: n.settled,
	}
	n.clusters = actors.NewRegistry(n.system, deps.Clock, limits, func(_ string, self *actors.Self) actors.Behaviour { return provider.New(clusterDeps, self) })

	all, err := deps.Store.ListClusters(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := n.clusters.Tell(string(c.Cluster.ID), provider.Activate{}); err != nil {
			return nil, err
		}
	}
	n.stopServing, err = cluster.Serve(deps.Bus, deps.Members, n.handle)
	if err != nil {
		return nil, err
	}
	n.publisher.start()
	go n.scan()
	return n, nil
}

// Stop ends intake, lets the queues finish, and ends. Jobs go on where they are
// taken up next: nothing fails because a node stops.
func (n *Node) Stop(ctx context.Context) error {
	n.stopServing()
	close(n.stopScan)
	<-n.scanDone
	err := errors.Join(n.vms.Close(ctx), n.clusters.Close(ctx))
	n.publisher.stop()
	n.system.Shutdown()
	return err
}

// handle brings a command to its actor.
func (n *Node) handle(c hcp.Command, reply func(hcp.Answer)) {
	var err error
	if strings.HasPrefix(string(c.Verb), "cluster.") {
		err = n.clusters.Tell(string(c.Cluster), provider.Ask{Command: c, Reply: reply})
	} else {
		err = n.vms.Tell(string(c.VM), vm.Ask{Command: c, Reply: reply})
	}
	if err != nil {
		reply(hcp.Answer{Fault: refusedBy(err).Wire()})
	}
}

func refusedBy(err error) *hcp.Error {
	if errors.Is(err, actors.ErrQuarantined) {
		return hcp.Errorf(hcp.CodeUnavailable, "quarantined", "the resource is quarantined after repeated internal errors").
			WithRetryAfter(10 * time.Second).WithCause(err)
	}
	return hcp.Errorf(hcp.CodeUnavailable, hcp.ReasonMoved, "this node is stopping").WithRetryAfter(time.Second).WithCause(err)
}

// Counts of the registries, for metrics.
func (n *Node) Counts() (vms, clusters actors.Counts) { return n.vms.Counts(), n.clusters.Counts() }

// ImportImage streams an image file to a cluster that this node owns.
func (n *Node) ImportImage(ctx context.Context, id hcp.ClusterID, use func(drivers.ImageImporter) error) error {
	result := make(chan error, 1)
	err := n.clusters.Tell(string(id), provider.Use{Do: func(s provider.Session, refused *hcp.Error) {
		if refused != nil {
			result <- refused
			return
		}
		importer, ok := s.Driver.(drivers.ImageImporter)
		if !ok || !s.Info.Capabilities.Has(hcp.CapImageImport) {
			result <- hcp.Errorf(hcp.CodeFeatureNotSupported, "image_import", "the cluster cannot take an image file").
				WithHint("bring the image there with the hypervisor's own tools and register its name")
			return
		}
		result <- use(importer)
	}})
	if err != nil {
		return refusedBy(err)
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return hcp.Errorf(hcp.CodeUnavailable, "deadline_passed", "the upload was given up").WithCause(ctx.Err())
	}
}
