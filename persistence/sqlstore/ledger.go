package sqlstore

import (
	"maps"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// counterKey names one quota counter.
type counterKey struct {
	subject  hcp.QuotaSubject
	resource hcp.Resource
}

type counter struct {
	limit hcp.Limit
	used  int64
}

// hold is what one VM counts as, and against whom.
type hold struct {
	subjects [3]string // ids by scope, in the order of holdScopes; "" is none
	amounts  map[hcp.Resource]int64
}

var holdScopes = [3]hcp.QuotaScope{hcp.QuotaOrg, hcp.QuotaProject, hcp.QuotaUser}

func (h hold) equal(o hold) bool { return h.subjects == o.subjects && maps.Equal(h.amounts, o.amounts) }

// holdOf is the hold that a change asks for; a release is empty.
func holdOf(q persistence.QuotaChange) hold {
	h := hold{amounts: map[hcp.Resource]int64{}}
	for r, n := range q.Amounts {
		if n != 0 {
			h.amounts[r] = n
		}
	}
	if len(h.amounts) == 0 {
		return hold{}
	}
	for i, scope := range holdScopes {
		for _, s := range q.Subjects {
			if s.Scope == scope {
				h.subjects[i] = s.ID
			}
		}
	}
	return h
}

// room is a cluster's capacity: what may be claimed and what is.
type room struct {
	limited bool
	limit   hcp.Sizes
	claimed hcp.Sizes
}

type claimKey struct {
	cluster hcp.ClusterID
	vm      hcp.VMID
}

type claim struct {
	host  string
	sizes hcp.Sizes
}

// ledger is what the members of a group have found and made of the counters: read
// once, decided in Go, written once. Its owner is the only writer of those rows.
type ledger struct {
	counters map[counterKey]counter
	rooms    map[hcp.ClusterID]room
	dirty    map[counterKey]bool
	dirtyRm  map[hcp.ClusterID]bool
}

func newLedger() *ledger {
	return &ledger{
		counters: map[counterKey]counter{}, rooms: map[hcp.ClusterID]room{},
		dirty: map[counterKey]bool{}, dirtyRm: map[hcp.ClusterID]bool{},
	}
}

// draft is what one member would change. Nothing of it counts until accept.
type draft struct {
	counters map[counterKey]counter
	rooms    map[hcp.ClusterID]room
	holds    map[hcp.VMID]hold // new contents
	oldHolds map[hcp.VMID]hold
	claims   map[claimKey]claim
	oldClaim map[claimKey]claim
}

// admitHolds decides the quota changes of one member against the counters, which
// must hold every counter concerned. All of a member's changes are judged
// together: what one releases another may use.
func (d *draft) admitHolds(l *ledger, changes []persistence.QuotaChange) *hcp.Error {
	delta := map[counterKey]int64{}
	var order []counterKey
	add := func(h hold, sign int64) {
		for i, id := range h.subjects {
			if id == "" {
				continue
			}
			for _, r := range hcp.QuotaResources() {
				if n := h.amounts[r]; n != 0 {
					k := counterKey{hcp.QuotaSubject{Scope: holdScopes[i], ID: id}, r}
					if _, seen := delta[k]; !seen {
						order = append(order, k)
					}
					delta[k] += sign * n
				}
			}
		}
	}
	for _, q := range changes {
		now, next := d.holds[q.VM], holdOf(q)
		if now.equal(next) {
			continue
		}
		add(now, -1)
		add(next, 1)
		d.holds[q.VM] = next
	}
	for _, k := range order {
		c, more := d.counter(l, k), delta[k]
		if more > 0 && !c.limit.Allows(c.used, more) {
			return hcp.QuotaRefusal(k.subject, k.resource, c.limit, c.used, more)
		}
		if more != 0 {
			c.used += more
			d.counters[k] = c
		}
	}
	return nil
}

func (d *draft) counter(l *ledger, k counterKey) counter {
	if c, ok := d.counters[k]; ok {
		return c
	}
	if c, ok := l.counters[k]; ok {
		return c
	}
	return counter{limit: hcp.NoLimit()}
}

// setLimit changes a counter's limit; what is used already stays, even above it.
func (d *draft) setLimit(l *ledger, change persistence.LimitChange) {
	k := counterKey{change.Subject, change.Resource}
	c := d.counter(l, k)
	c.limit = change.Limit
	d.counters[k] = c
}

// admitClaims decides the capacity changes of one member. Only growth is judged,
// component by component, so that a cluster whose limit shrank can still be emptied.
func (d *draft) admitClaims(l *ledger, changes []persistence.CapacityChange) *hcp.Error {
	delta := map[hcp.ClusterID]hcp.Sizes{}
	var order []hcp.ClusterID
	for _, c := range changes {
		k := claimKey{c.Cluster, c.VM}
		next := claim{c.Host, c.Sizes}
		if next.sizes == (hcp.Sizes{}) {
			next = claim{}
		}
		if _, seen := delta[c.Cluster]; !seen {
			order = append(order, c.Cluster)
		}
		delta[c.Cluster] = delta[c.Cluster].Minus(d.claims[k].sizes).Plus(next.sizes)
		d.claims[k] = next
	}
	for _, cluster := range order {
		more, r := delta[cluster], d.room(l, cluster)
		if more == (hcp.Sizes{}) {
			continue
		}
		after := r.claimed.Plus(more)
		if grows(more) && (!r.limited || !fitsGrowth(after, more, r.limit)) {
			return hcp.Errorf(hcp.CodeNoCapacity, "no_room", "the place chosen for this VM has no room left")
		}
		r.claimed = after
		d.rooms[cluster] = r
	}
	return nil
}

func (d *draft) room(l *ledger, cluster hcp.ClusterID) room {
	if r, ok := d.rooms[cluster]; ok {
		return r
	}
	return l.rooms[cluster]
}

func (d *draft) setRoom(l *ledger, change persistence.CapacityLimit) {
	r := d.room(l, change.Cluster)
	r.limited, r.limit = true, change.Limit
	d.rooms[change.Cluster] = r
}

func grows(s hcp.Sizes) bool { return s.VCPUs > 0 || s.MemoryMiB > 0 || s.DiskGiB > 0 }

func fitsGrowth(after, more, limit hcp.Sizes) bool {
	return (more.VCPUs <= 0 || after.VCPUs <= limit.VCPUs) &&
		(more.MemoryMiB <= 0 || after.MemoryMiB <= limit.MemoryMiB) &&
		(more.DiskGiB <= 0 || after.DiskGiB <= limit.DiskGiB)
}

// accept makes a draft count for the members that follow.
func (l *ledger) accept(d *draft) {
	for k, c := range d.counters {
		l.counters[k] = c
		l.dirty[k] = true
	}
	for k, r := range d.rooms {
		l.rooms[k] = r
		l.dirtyRm[k] = true
	}
}
