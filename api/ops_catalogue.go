package api

import (
	"net/http"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// theFresh resolves a path parameter on a fresh read, for whoever changes the row.
func theFresh[T any](c *call, t *table[T], param, typ string) (row[T], error) {
	ref, err := c.paramRef(param, typ)
	if err != nil {
		return row[T]{}, err
	}
	r, err := t.fresh(c.ctx, ref)
	if err == nil {
		c.target = hcp.LRNOf(typ, r.id)
	}
	return r, err
}

// --- zones ---

func opsZoneView(z hcp.Zone) v1.OpsZone {
	v := v1.OpsZone{ID: z.ID, LRN: hcp.LRNOf("zone", string(z.ID)), Name: z.Name, Region: z.Region, Members: z.Members, CreatedAt: z.CreatedAt}
	if v.Members == nil {
		v.Members = []hcp.ZoneCluster{}
	}
	return v
}

func (s *Server) opsListZones(c *call) (answer, error) {
	rows, err := s.zones.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	return all(rows, func(r row[hcp.Zone]) v1.OpsZone { return opsZoneView(r.value) })
}

func (s *Server) opsGetZone(c *call) (answer, error) {
	r, err := the(c, s.zones, "zone", "zone")
	if err != nil {
		return answer{}, err
	}
	return ok(opsZoneView(r.value))
}

func (s *Server) createZone(c *call) (answer, error) {
	z := hcp.Zone{ID: id[hcp.ZoneID](s, hcp.KindZone), CreatedAt: c.now()}
	return s.writeZone(c, z, 0, hcp.EventResourceCreated, http.StatusCreated)
}

func (s *Server) putZone(c *call) (answer, error) {
	r, err := theFresh(c, s.zones, "zone", "zone")
	if err != nil {
		return answer{}, err
	}
	return s.writeZone(c, r.value, r.version, hcp.EventResourceUpdated, http.StatusOK)
}

func (s *Server) writeZone(c *call, z hcp.Zone, version int64, event hcp.EventType, status int) (answer, error) {
	var in v1.PutZone
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	var err error
	if z.Name, err = cleanName(in.Name); err != nil {
		return answer{}, err
	}
	z.Region, z.Members = in.Region, make([]hcp.ZoneCluster, 0, len(in.Members))
	target := c.target
	for _, m := range in.Members {
		cl, err := c.clusterNamed(m.Cluster)
		if err != nil {
			return answer{}, err
		}
		z.Members = append(z.Members, hcp.ZoneCluster{Cluster: cl.ID, Pool: m.Pool, Weight: m.Weight, CPURatio: m.CPURatio, MemoryRatio: m.MemoryRatio})
	}
	c.target = target
	rec, err := record(persistence.RecordZone, string(z.ID), z.Name, "", version, z)
	if err != nil {
		return answer{}, err
	}
	defer s.zones.forget()
	return s.commit(c, change{records: []persistence.RecordChange{rec}, event: event, subject: hcp.LRNOf("zone", string(z.ID)),
		status: status, body: opsZoneView(z)})
}

func (s *Server) deleteZone(c *call) (answer, error) {
	r, err := theFresh(c, s.zones, "zone", "zone")
	if err != nil {
		return answer{}, err
	}
	vms, err := s.Store.ListVMs(c.ctx, persistence.VMFilter{Zone: r.value.ID, Page: persistence.Page{Limit: 1}})
	if err != nil {
		return answer{}, err
	}
	if len(vms) > 0 {
		return answer{}, inUse("zone", "a VM")
	}
	defer s.zones.forget()
	return s.drop(c, persistence.RecordZone, r.id, r.name, r.version, "zone")
}

func (s *Server) drop(c *call, kind persistence.RecordKind, rid, name string, version int64, typ string) (answer, error) {
	return s.commit(c, change{records: []persistence.RecordChange{dropRecord(kind, rid, name, version)}, event: hcp.EventResourceDeleted,
		subject: hcp.LRNOf(typ, rid), status: http.StatusNoContent})
}

// --- flavors ---

func (s *Server) opsListFlavors(c *call) (answer, error) { return s.listFlavors(c) }

func (s *Server) createFlavor(c *call) (answer, error) {
	var in v1.CreateFlavor
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name, err := cleanName(in.Name)
	if err != nil {
		return answer{}, err
	}
	f := hcp.Flavor{ID: id[hcp.FlavorID](s, hcp.KindFlavor), Name: name, VCPUs: in.VCPUs, MemoryMiB: in.MemoryMiB, DiskGiB: in.DiskGiB, CreatedAt: c.now()}
	return s.writeFlavor(c, f, 0, hcp.EventResourceCreated, http.StatusCreated)
}

func (s *Server) updateFlavor(c *call) (answer, error) {
	var in v1.UpdateFlavor
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	r, err := theFresh(c, s.flavors, "flavor", "flavor")
	if err != nil {
		return answer{}, err
	}
	if in.Retired != nil {
		r.value.Retired = *in.Retired
	}
	return s.writeFlavor(c, r.value, r.version, hcp.EventResourceUpdated, http.StatusOK)
}

func (s *Server) writeFlavor(c *call, f hcp.Flavor, version int64, event hcp.EventType, status int) (answer, error) {
	rec, err := record(persistence.RecordFlavor, string(f.ID), f.Name, "", version, f)
	if err != nil {
		return answer{}, err
	}
	defer s.flavors.forget()
	return s.commit(c, change{records: []persistence.RecordChange{rec}, event: event, subject: hcp.LRNOf("flavor", string(f.ID)),
		status: status, body: flavorView(row[hcp.Flavor]{value: f})})
}

// deleteFlavor takes nothing from VMs: they have its sizes copied.
func (s *Server) deleteFlavor(c *call) (answer, error) {
	r, err := theFresh(c, s.flavors, "flavor", "flavor")
	if err != nil {
		return answer{}, err
	}
	defer s.flavors.forget()
	return s.drop(c, persistence.RecordFlavor, r.id, r.name, r.version, "flavor")
}
