package cluster

import (
	"hash/fnv"

	"github.com/lotuscloud/hcp"
)

// Owner is the node that owns a provider cluster and every VM placed on it: by
// rendezvous hash over the stable node names, so that a node that comes or goes
// moves only its own share. Empty without nodes.
func Owner(id hcp.ClusterID, nodes []string) string {
	var best string
	var bestScore uint64
	for _, n := range nodes {
		h := fnv.New64a()
		_, _ = h.Write([]byte(n))
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(id))
		score := finalise(h.Sum64())
		if best == "" || score > bestScore || score == bestScore && n < best {
			best, bestScore = n, score
		}
	}
	return best
}

// finalise spreads the bits: FNV alone favours similar names.
func finalise(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
