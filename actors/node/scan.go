package node

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/vm"
	"github.com/lotuscloud/hcp/cluster"
)

// scanLimit bounds how many due jobs one scan wakes; the next scan takes more.
const scanLimit = 1000

// scan activates the owners of due jobs and lets idle actors go, at start and at
// every interval. Reads never activate anything; this does.
func (n *Node) scan() {
	defer close(n.scanDone)
	ticks, stop := n.deps.Clock.NewTicker(n.deps.Scan)
	defer stop()
	purge := 0
	for {
		n.govern()
		n.wakeDue()
		n.vms.Sweep()
		if purge++; purge%purgeEvery == 0 {
			n.purge()
		}
		select {
		case <-ticks:
		case <-n.stopScan:
			return
		}
	}
}

// govern calls back provider actors that have left: after trouble in the store,
// or a panic. Nobody else would before the cluster's next job.
func (n *Node) govern() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all, err := n.deps.Store.ListClusters(ctx)
	if err != nil {
		n.deps.Log.Warn("the clusters could not be read", "err", err)
		return
	}
	self, nodes := n.deps.Members.Self().Name, n.deps.Members.Nodes()
	for _, c := range all {
		if cluster.Owner(c.Cluster.ID, nodes) != self {
			continue
		}
		if err := n.clusters.Tell(string(c.Cluster.ID), provider.Activate{}); err != nil {
			n.deps.Log.Warn("a cluster is not governed", "cluster", c.Cluster.ID, "err", err)
		}
	}
}

// purgeEvery is how many scans pass between two purges of expired idempotency records.
const purgeEvery = 60

func (n *Node) wakeDue() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	due, err := n.deps.Store.DueJobs(ctx, n.deps.Clock.Now(), scanLimit)
	if err != nil {
		n.deps.Log.Warn("due jobs could not be read", "err", err)
		return
	}
	self, nodes := n.deps.Members.Self().Name, n.deps.Members.Nodes()
	for _, d := range due {
		if cluster.Owner(d.Cluster, nodes) != self {
			continue
		}
		if err := n.vms.Tell(string(d.VM), vm.Wake{}); err != nil {
			n.deps.Log.Warn("a due job could not be woken", "vm", d.VM, "job", d.Job, "err", err)
		}
	}
}

func (n *Node) purge() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := n.deps.Store.PurgeKeys(ctx, n.deps.Clock.Now()); err != nil {
		n.deps.Log.Warn("expired idempotency records could not be purged", "err", err)
	}
}
