package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// draftOf loads what the ledger needs to judge the commit, and judges it. A nil
// draft means that the commit touches no books.
func (g *Group) draftOf(ctx context.Context, p *Prepared) (*draft, *persistence.Refusal, error) {
	if len(p.Holds)+len(p.Claims)+len(p.Limits)+len(p.Capacity) == 0 {
		return nil, nil, nil
	}
	d := &draft{
		counters: map[counterKey]counter{}, rooms: map[hcp.ClusterID]room{},
		holds: map[hcp.VMID]hold{}, claims: map[claimKey]claim{},
	}
	if err := g.loadBooks(ctx, p, d); err != nil {
		return nil, nil, err
	}
	d.oldHolds, d.oldClaim = maps.Clone(d.holds), maps.Clone(d.claims)
	for _, c := range p.Limits {
		d.setLimit(g.ledger, c)
	}
	for _, c := range p.Capacity {
		d.setRoom(g.ledger, c)
	}
	if e := d.admitHolds(g.ledger, p.Holds); e != nil {
		return nil, &persistence.Refusal{Kind: persistence.RefusedQuota, Err: e}, nil
	}
	if e := d.admitClaims(g.ledger, p.Claims); e != nil {
		return nil, &persistence.Refusal{Kind: persistence.RefusedCapacity, Err: e}, nil
	}
	return d, nil, nil
}

// loadBooks reads holds, claims, and whatever counters and rooms the group has not seen.
func (g *Group) loadBooks(ctx context.Context, p *Prepared, d *draft) error {
	for _, q := range p.Holds {
		if _, seen := d.holds[q.VM]; seen {
			continue
		}
		h, err := loadHold(ctx, g.q, q.VM)
		if err != nil {
			return err
		}
		d.holds[q.VM] = h
		for i, id := range h.subjects {
			if err := g.loadCounters(ctx, hcp.QuotaSubject{Scope: holdScopes[i], ID: id}); err != nil {
				return err
			}
		}
	}
	for _, q := range p.Holds {
		for _, s := range q.Subjects {
			if err := g.loadCounters(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, l := range p.Limits {
		if err := g.loadCounters(ctx, l.Subject); err != nil {
			return err
		}
	}
	for _, c := range p.Claims {
		if err := g.loadRoom(ctx, c.Cluster); err != nil {
			return err
		}
		if err := g.loadClaim(ctx, claimKey{c.Cluster, c.VM}, d); err != nil {
			return err
		}
	}
	for _, c := range p.Capacity {
		if err := g.loadRoom(ctx, c.Cluster); err != nil {
			return err
		}
	}
	return nil
}

func loadHold(ctx context.Context, q Querier, vm hcp.VMID) (hold, error) {
	rows, err := q.Query(ctx, `select resource, amount, org, project, holder from quota_holds where vm = $1`, vm)
	if err != nil {
		return hold{}, err
	}
	defer rows.Close()
	var h hold
	for rows.Next() {
		var resource string
		var n int64
		if err := rows.Scan(&resource, &n, &h.subjects[0], &h.subjects[1], &h.subjects[2]); err != nil {
			return hold{}, err
		}
		if h.amounts == nil {
			h.amounts = map[hcp.Resource]int64{}
		}
		h.amounts[hcp.Resource(resource)] = n
	}
	return h, rows.Err()
}

func (g *Group) loadCounters(ctx context.Context, s hcp.QuotaSubject) error {
	if s.ID == "" || g.seen[s] {
		return nil
	}
	rows, err := g.q.Query(ctx, `select resource, cap, used from quota_counters where scope = $1 and id = $2`, s.Scope, s.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var resource string
		var limit sql.Null[int64]
		var c counter
		if err := rows.Scan(&resource, &limit, &c.used); err != nil {
			return err
		}
		c.limit = limitOf(limit)
		g.ledger.counters[counterKey{s, hcp.Resource(resource)}] = c
	}
	if err := rows.Err(); err != nil {
		return err
	}
	g.seen[s] = true
	return nil
}

func limitOf(n sql.Null[int64]) hcp.Limit {
	if !n.Valid {
		return hcp.NoLimit()
	}
	return hcp.LimitOf(n.V)
}

func (g *Group) loadRoom(ctx context.Context, cluster hcp.ClusterID) error {
	if _, seen := g.ledger.rooms[cluster]; seen {
		return nil
	}
	var r room
	err := g.q.QueryRow(ctx, `select limited, limit_vcpus, limit_memory_mib, limit_disk_gib, claimed_vcpus, claimed_memory_mib, claimed_disk_gib
		from capacity where cluster = $1`, cluster).
		Scan(&r.limited, &r.limit.VCPUs, &r.limit.MemoryMiB, &r.limit.DiskGiB, &r.claimed.VCPUs, &r.claimed.MemoryMiB, &r.claimed.DiskGiB)
	if err != nil && err != ErrNoRows {
		return err
	}
	g.ledger.rooms[cluster] = r
	return nil
}

func (g *Group) loadClaim(ctx context.Context, k claimKey, d *draft) error {
	if _, seen := d.claims[k]; seen {
		return nil
	}
	var c claim
	err := g.q.QueryRow(ctx, `select host, vcpus, memory_mib, disk_gib from capacity_claims where cluster = $1 and vm = $2`, k.cluster, k.vm).
		Scan(&c.host, &c.sizes.VCPUs, &c.sizes.MemoryMiB, &c.sizes.DiskGiB)
	if err != nil && err != ErrNoRows {
		return err
	}
	d.claims[k] = c
	return nil
}

// writeDraft writes the rows of one member's holds and claims; the counters are
// written once for the group, by Flush.
func (g *Group) writeDraft(ctx context.Context, d *draft) error {
	for _, vm := range slices.Sorted(maps.Keys(d.holds)) {
		if err := g.writeHold(ctx, vm, d.oldHolds[vm], d.holds[vm]); err != nil {
			return err
		}
	}
	for k, c := range d.claims {
		if c == d.oldClaim[k] {
			continue
		}
		var err error
		if c == (claim{}) {
			_, err = g.q.Exec(ctx, `delete from capacity_claims where cluster = $1 and vm = $2`, k.cluster, k.vm)
		} else {
			_, err = g.q.Exec(ctx, `insert into capacity_claims (cluster, vm, host, vcpus, memory_mib, disk_gib) values ($1, $2, $3, $4, $5, $6)
				on conflict (cluster, vm) do update set host = excluded.host, vcpus = excluded.vcpus, memory_mib = excluded.memory_mib, disk_gib = excluded.disk_gib`,
				k.cluster, k.vm, c.host, c.sizes.VCPUs, c.sizes.MemoryMiB, c.sizes.DiskGiB)
		}
		if err != nil {
			return err
		}
	}
	g.ledger.accept(d)
	return nil
}

func (g *Group) writeHold(ctx context.Context, vm hcp.VMID, old, h hold) error {
	if h.equal(old) {
		return nil
	}
	if len(old.amounts) > 0 {
		if _, err := g.q.Exec(ctx, `delete from quota_holds where vm = $1`, vm); err != nil {
			return err
		}
	}
	var args []any
	for _, r := range hcp.QuotaResources() {
		if n := h.amounts[r]; n != 0 {
			args = append(args, vm, r, n, h.subjects[0], h.subjects[1], h.subjects[2])
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := g.q.Exec(ctx, insertRows("quota_holds", "vm, resource, amount, org, project, holder", 6, len(args)/6), args...)
	return err
}

// Flush writes the counters that the group's members moved. It comes last in the
// group's transaction.
func (g *Group) Flush(ctx context.Context) error {
	for k := range g.ledger.dirty {
		c := g.ledger.counters[k]
		var limit any
		if !c.limit.Unlimited {
			limit = c.limit.Max
		}
		if _, err := g.q.Exec(ctx, `insert into quota_counters (scope, id, resource, cap, used) values ($1, $2, $3, $4, $5)
			on conflict (scope, id, resource) do update set cap = excluded.cap, used = excluded.used`,
			k.subject.Scope, k.subject.ID, k.resource, limit, c.used); err != nil {
			return err
		}
	}
	clear(g.ledger.dirty)
	for k := range g.ledger.dirtyRm {
		r := g.ledger.rooms[k]
		if _, err := g.q.Exec(ctx, `insert into capacity (cluster, limited, limit_vcpus, limit_memory_mib, limit_disk_gib, claimed_vcpus, claimed_memory_mib, claimed_disk_gib)
			values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (cluster) do update set limited = excluded.limited, limit_vcpus = excluded.limit_vcpus,
			limit_memory_mib = excluded.limit_memory_mib, limit_disk_gib = excluded.limit_disk_gib, claimed_vcpus = excluded.claimed_vcpus,
			claimed_memory_mib = excluded.claimed_memory_mib, claimed_disk_gib = excluded.claimed_disk_gib`,
			k, flag(r.limited), r.limit.VCPUs, r.limit.MemoryMiB, r.limit.DiskGiB, r.claimed.VCPUs, r.claimed.MemoryMiB, r.claimed.DiskGiB); err != nil {
			return err
		}
	}
	clear(g.ledger.dirtyRm)
	return nil
}
