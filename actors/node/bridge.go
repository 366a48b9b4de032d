package node

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/vm"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/transport"
)

// Submit brings work of a VM to its cluster's workers.
func (n *Node) Submit(id hcp.ClusterID, w provider.Work) {
	if err := n.clusters.Tell(string(id), w); err != nil {
		go w.Refused(hcp.Errorf(hcp.CodeProviderUnavailable, "not_governed", "the cluster is not governed here just now").WithCause(err))
	}
}

// Settle is the cluster's settle time as its last probe said.
func (n *Node) Settle(id hcp.ClusterID) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.settle[id]
}

func (n *Node) settled(id hcp.ClusterID, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settle[id] = d
}

// Notice brings what a sweep saw to the VM's actor.
func (n *Node) Notice(id hcp.VMID, seen *drivers.Observation, missing, residue bool, at time.Time) {
	if err := n.vms.Tell(string(id), vm.Notice{Seen: seen, Missing: missing, Residue: residue, At: at}); err != nil {
		n.deps.Log.Debug("a notice was not taken; the next sweep repeats it", "vm", id, "err", err)
	}
}

// ClusterUp tells active VM actors that their provider answers again.
func (n *Node) ClusterUp(id hcp.ClusterID) {
	for _, active := range n.vms.Active() {
		n.vms.TellActive(active, vm.ClusterUp{Cluster: id})
	}
}

// committed is told of every commit of a VM.
func (n *Node) committed(done []hcp.Job, events bool) {
	if len(done) > 0 {
		ids := make([]hcp.JobID, 0, len(done))
		for _, j := range done {
			ids = append(ids, j.ID)
			var code hcp.Code
			if j.Error != nil {
				code = j.Error.Code
			}
			n.deps.Metrics.JobEnded(j.Kind, j.State, code, j.FinishedAt.Sub(j.CreatedAt))
		}
		n.deps.Wakes.Send(transport.Wake{Jobs: ids})
	}
	if events {
		n.publisher.wake()
	}
}

func (n *Node) called(id hcp.ClusterID, op string, took time.Duration, err error) {
	n.deps.Metrics.ProviderCalled(id, op, hcp.CodeOf(err), took)
}
