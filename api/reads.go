package api

import (
	"cmp"
	"slices"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

func imageView(i hcp.Image, zones []row[hcp.Zone]) v1.Image {
	v := v1.Image{ID: i.ID, LRN: hcp.LRNOf("image", string(i.ID)), Name: i.Name, Version: i.Version, SHA256: i.SHA256, Firmware: i.Firmware,
		State: i.State, MinDiskGiB: i.MinDisk, MinMemoryMiB: i.MinMemory, Zones: []string{}, CreatedAt: i.CreatedAt}
	for _, z := range zones {
		if slices.ContainsFunc(z.value.Members, func(m hcp.ZoneCluster) bool { return i.Artefacts[m.Cluster] != "" }) {
			v.Zones = append(v.Zones, z.value.Name)
		}
	}
	return v
}

func flavorView(f row[hcp.Flavor]) v1.Flavor {
	v := f.value
	return v1.Flavor{ID: v.ID, LRN: hcp.LRNOf("flavor", string(v.ID)), Name: v.Name, VCPUs: v.VCPUs, MemoryMiB: v.MemoryMiB,
		DiskGiB: v.DiskGiB, Retired: v.Retired, CreatedAt: v.CreatedAt}
}

// the resolves a path parameter in a catalogue table.
func the[T any](c *call, t *table[T], param, typ string) (row[T], error) {
	ref, err := c.paramRef(param, typ)
	if err != nil {
		return row[T]{}, err
	}
	r, err := t.find(c.ctx, ref)
	if err == nil {
		c.target = hcp.LRNOf(typ, r.id)
	}
	return r, err
}

func (s *Server) listImages(c *call) (answer, error) {
	images, err := s.images.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	zones, err := s.zones.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	return all(images, func(r row[hcp.Image]) v1.Image { return imageView(r.value, zones) })
}

func (s *Server) getImage(c *call) (answer, error) {
	r, err := the(c, s.images, "image", "image")
	if err != nil {
		return answer{}, err
	}
	zones, err := s.zones.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	return ok(imageView(r.value, zones))
}

func (s *Server) listFlavors(c *call) (answer, error) {
	rows, err := s.flavors.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b row[hcp.Flavor]) int {
		return cmp.Or(cmp.Compare(a.value.VCPUs, b.value.VCPUs), cmp.Compare(a.value.MemoryMiB, b.value.MemoryMiB))
	})
	return all(rows, flavorView)
}

func (s *Server) getFlavor(c *call) (answer, error) {
	r, err := the(c, s.flavors, "flavor", "flavor")
	if err != nil {
		return answer{}, err
	}
	return ok(flavorView(r))
}

func (s *Server) zoneView(p *picture, z hcp.Zone) v1.Zone {
	caps, available := p.zoneCapabilities(z)
	for k, state := range caps { // the reason may name what a tenant must not know
		caps[k] = hcp.CapabilityState{Supported: state.Supported}
	}
	return v1.Zone{ID: z.ID, LRN: hcp.LRNOf("zone", string(z.ID)), Name: z.Name, Region: z.Region, Available: available, Capabilities: caps}
}

func (s *Server) listZones(c *call) (answer, error) {
	rows, err := s.zones.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	p, err := s.infra.get(c.ctx, false)
	if err != nil {
		return answer{}, err
	}
	return all(rows, func(r row[hcp.Zone]) v1.Zone { return s.zoneView(p, r.value) })
}

func (s *Server) getZone(c *call) (answer, error) {
	r, err := the(c, s.zones, "zone", "zone")
	if err != nil {
		return answer{}, err
	}
	p, err := s.infra.get(c.ctx, false)
	if err != nil {
		return answer{}, err
	}
	return ok(s.zoneView(p, r.value))
}

func quotaView(u persistence.QuotaUse) v1.QuotaSubject {
	v := v1.QuotaSubject{Scope: u.Subject.Scope, ID: u.Subject.ID, Lines: u.Lines}
	if v.Lines == nil {
		v.Lines = []hcp.QuotaLine{}
	}
	return v
}

func (s *Server) quota(c *call) (answer, error) {
	uses, err := s.Store.Quota(c.ctx, hcp.SubjectsOf(c.project.Org, c.project.ID, c.identity.Subject))
	if err != nil {
		return answer{}, err
	}
	out := v1.Quota{Subjects: make([]v1.QuotaSubject, 0, len(uses))}
	for _, u := range uses {
		out.Subjects = append(out.Subjects, quotaView(u))
	}
	return ok(out)
}

func (s *Server) verifyQuota(c *call) (answer, error) {
	drifts, err := s.Store.VerifyQuota(c.ctx, c.project.ID)
	if err != nil {
		return answer{}, err
	}
	out := v1.QuotaVerify{Drift: len(drifts), Differences: make([]v1.QuotaDifference, 0, len(drifts))}
	for _, d := range drifts {
		out.Differences = append(out.Differences, v1.QuotaDifference{Scope: d.Subject.Scope, ID: d.Subject.ID, Resource: d.Resource,
			Counter: d.Counter, Derived: d.Derived})
	}
	return ok(out)
}

// listAudit serves both scopes: a tenant sees its project's rows only.
func (s *Server) listAudit(c *call) (answer, error) {
	filter := c.filter()
	page, err := c.page(filter)
	if err != nil {
		return answer{}, err
	}
	f := persistence.AuditFilter{Project: c.project.ID, Actor: c.query.Get("actor"), Action: c.query.Get("action"),
		Kind: hcp.AuditKind(c.query.Get("kind")), RequestID: hcp.RequestID(c.query.Get("request_id")), Page: page}
	if v := c.query.Get("project"); v != "" {
		p, err := findIn(c, s.projects, v, "project", "?project")
		if err != nil {
			return answer{}, err
		}
		f.Project = p.ID
	}
	rows, err := s.Store.ListAudit(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, rows, page.Limit, func(r hcp.AuditRecord) persistence.Position {
		return persistence.Position{CreatedAt: r.Time, ID: string(r.ID)}
	}, func(r hcp.AuditRecord) hcp.AuditRecord { return r })
}
