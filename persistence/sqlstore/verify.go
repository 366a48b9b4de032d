package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// sums are what a set of rows adds up to, per counter.
type sums map[counterKey]int64

func (s sums) add(subject hcp.QuotaSubject, resource hcp.Resource, n int64) {
	if subject.ID != "" && n != 0 {
		s[counterKey{subject, resource}] += n
	}
}

// VerifyQuota compares three things that must say the same: the counters, the
// holds, and the VMs that must hold.
func (r Reads) VerifyQuota(ctx context.Context, project hcp.ProjectID) ([]persistence.QuotaDrift, error) {
	var counters, holds, vms sums
	err := r.DB.Snapshot(ctx, func(q Querier) (err error) {
		if counters, err = sumCounters(ctx, q); err != nil {
			return err
		}
		if holds, err = sumHolds(ctx, q, project); err != nil {
			return err
		}
		vms, err = sumVMs(ctx, q, project)
		return err
	})
	if err != nil {
		return nil, err
	}
	keep := func(s hcp.QuotaSubject) bool {
		switch {
		case project == "":
			return true
		case s.Scope == hcp.QuotaProject:
			return s.ID == string(project)
		case s.Scope == hcp.QuotaUser:
			return strings.HasPrefix(s.ID, string(project)+"/")
		}
		return false // an org's counter adds up over its projects
	}
	return driftOf(counters, vms, holds, keep), nil
}

// driftOf lists the counters that differ from what the VMs add up to, or else
// from what the holds do.
func driftOf(counters, vms, holds sums, keep func(hcp.QuotaSubject) bool) []persistence.QuotaDrift {
	keys := map[counterKey]bool{}
	for _, s := range []sums{counters, vms, holds} {
		for k := range s {
			keys[k] = true
		}
	}
	var out []persistence.QuotaDrift
	for k := range keys {
		if !keep(k.subject) {
			continue
		}
		d := persistence.QuotaDrift{Subject: k.subject, Resource: k.resource, Counter: counters[k], Derived: vms[k]}
		if d.Counter == d.Derived {
			d.Derived = holds[k]
		}
		if d.Counter != d.Derived {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b persistence.QuotaDrift) int {
		return cmp.Or(cmp.Compare(a.Subject.Scope, b.Subject.Scope), cmp.Compare(a.Subject.ID, b.Subject.ID), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

func sumCounters(ctx context.Context, q Querier) (sums, error) {
	out := sums{}
	rows, err := q.Query(ctx, `select scope, id, resource, used from quota_counters`)
	_, err = collect(rows, err, func(rows Rows) (struct{}, error) {
		var s hcp.QuotaSubject
		var resource string
		var used int64
		err := rows.Scan((*string)(&s.Scope), &s.ID, &resource, &used)
		out.add(s, hcp.Resource(resource), used)
		return struct{}{}, err
	})
	return out, err
}

func sumHolds(ctx context.Context, q Querier, project hcp.ProjectID) (sums, error) {
	out := sums{}
	var w where
	w.equal("project", string(project))
	rows, err := q.Query(ctx, `select org, project, holder, resource, cast(sum(amount) as bigint) from quota_holds`+w.String()+
		` group by org, project, holder, resource`, w.args...)
	_, err = collect(rows, err, func(rows Rows) (struct{}, error) {
		var ids [3]string
		var resource string
		var n int64
		err := rows.Scan(&ids[0], &ids[1], &ids[2], &resource, &n)
		for i, id := range ids {
			out.add(hcp.QuotaSubject{Scope: holdScopes[i], ID: id}, hcp.Resource(resource), n)
		}
		return struct{}{}, err
	})
	return out, err
}

// sumVMs adds up the sizes of the VMs that must hold.
func sumVMs(ctx context.Context, q Querier, project hcp.ProjectID) (sums, error) {
	out := sums{}
	var w where
	w.and("quota_class = ?", holdsSizes)
	w.equal("project", string(project))
	rows, err := q.Query(ctx, `select org, project, owner, count(*), cast(sum(vcpus) as bigint), cast(sum(memory_mib) as bigint) from vms`+w.String()+
		` group by org, project, owner`, w.args...)
	_, err = collect(rows, err, func(rows Rows) (struct{}, error) {
		var org, project, owner string
		var n, vcpus, memory int64
		err := rows.Scan(&org, &project, &owner, &n, &vcpus, &memory)
		for _, s := range hcp.SubjectsOf(hcp.OrgID(org), hcp.ProjectID(project), owner) {
			out.add(s, hcp.ResourceVMs, n)
			out.add(s, hcp.ResourceVCPUs, vcpus)
			out.add(s, hcp.ResourceMemoryMiB, memory)
		}
		return struct{}{}, err
	})
	return out, err
}

// scopeCluster is the scope of capacity drift.
const scopeCluster hcp.QuotaScope = "cluster"

// VerifyCapacity compares the claimed counters, the claims, and the VMs that must
// claim: a VM that holds claims what its claim says, or its sizes when it has none.
func (r Reads) VerifyCapacity(ctx context.Context) ([]persistence.QuotaDrift, error) {
	counters, claims, vms := sums{}, sums{}, sums{}
	err := r.DB.Snapshot(ctx, func(q Querier) error {
		rooms, err := rooms(ctx, q)
		if err != nil {
			return err
		}
		for id, room := range rooms {
			counters.addSizes(id, room.claimed)
		}
		if err := claims.scanSizes(q.Query(ctx, `select cluster, cast(sum(vcpus) as bigint), cast(sum(memory_mib) as bigint), cast(sum(disk_gib) as bigint)
			from capacity_claims group by cluster`)); err != nil {
			return err
		}
		return vms.scanSizes(q.Query(ctx, `select v.cluster, coalesce(c.vcpus, v.vcpus), coalesce(c.memory_mib, v.memory_mib), coalesce(c.disk_gib, v.disk_gib)
			from vms v left join capacity_claims c on c.cluster = v.cluster and c.vm = v.id
			where v.cluster <> '' and v.quota_class = $1`, holdsSizes))
	})
	if err != nil {
		return nil, err
	}
	return driftOf(counters, vms, claims, func(hcp.QuotaSubject) bool { return true }), nil
}

// resourceDiskGiB is the third dimension of capacity; quota does not count it.
const resourceDiskGiB hcp.Resource = "disk_gib"

func (s sums) addSizes(cluster hcp.ClusterID, n hcp.Sizes) {
	subject := hcp.QuotaSubject{Scope: scopeCluster, ID: string(cluster)}
	s.add(subject, hcp.ResourceVCPUs, n.VCPUs)
	s.add(subject, hcp.ResourceMemoryMiB, n.MemoryMiB)
	s.add(subject, resourceDiskGiB, n.DiskGiB)
}

func (s sums) scanSizes(rows Rows, err error) error {
	_, err = collect(rows, err, func(rows Rows) (struct{}, error) {
		var cluster string
		var n hcp.Sizes
		err := rows.Scan(&cluster, &n.VCPUs, &n.MemoryMiB, &n.DiskGiB)
		s.addSizes(hcp.ClusterID(cluster), n)
		return struct{}{}, err
	})
	return err
}
