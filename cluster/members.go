package cluster

import (
	"context"
	"slices"

	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/persistence"
)

// Membership tells who is a node now.
type Membership interface {
	// Self is this node.
	Self() Node
	// Nodes are the stable names of all live nodes, this one included.
	Nodes() []string
}

// Node is one process of the control plane. The name is stable over restarts,
// the incarnation rises with each.
type Node struct {
	Name        string
	Incarnation int64
}

// Solo is the membership of a node whose store nobody else can open: the store's
// own lock is what keeps a second one out, so that there is nothing to renew.
type Solo struct {
	self  Node
	store persistence.Members
}

// JoinSolo takes the node's row with a new incarnation, which fences every
// provider call of the one before.
func JoinSolo(ctx context.Context, store persistence.Members, clk clock.Clock, name, version string) (*Solo, error) {
	incarnation, err := store.Join(ctx, persistence.Member{Node: name, Version: version, JoinedAt: clk.Now(), RenewedAt: clk.Now()})
	if err != nil {
		return nil, err
	}
	return &Solo{self: Node{name, incarnation}, store: store}, nil
}

func (s *Solo) Self() Node      { return s.self }
func (s *Solo) Nodes() []string { return []string{s.self.Name} }

// Leave marks the node gone.
func (s *Solo) Leave(ctx context.Context) error {
	return s.store.Leave(ctx, s.self.Name, s.self.Incarnation)
}

// owns reports whether a node is this one and live.
func owns(m Membership, node string) bool {
	return node == m.Self().Name && slices.Contains(m.Nodes(), node)
}
