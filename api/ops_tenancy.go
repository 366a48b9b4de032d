package api

import (
	"net/http"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

func orgView(o hcp.Org) v1.Org {
	return v1.Org{ID: o.ID, LRN: hcp.LRNOf("org", string(o.ID)), Name: o.Name, CreatedAt: o.CreatedAt}
}

func projectView(p hcp.Project) v1.Project {
	return v1.Project{ID: p.ID, LRN: hcp.LRNOf("project", string(p.ID)), Org: p.Org, Name: p.Name, CreatedAt: p.CreatedAt}
}

func (s *Server) listOrgs(c *call) (answer, error) {
	rows, err := s.orgs.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	return all(rows, func(r row[hcp.Org]) v1.Org { return orgView(r.value) })
}

func (s *Server) getOrg(c *call) (answer, error) {
	r, err := the(c, s.orgs, "org", "org")
	if err != nil {
		return answer{}, err
	}
	return ok(orgView(r.value))
}

func (s *Server) createOrg(c *call) (answer, error) {
	var in v1.CreateOrg
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name, err := cleanName(in.Name)
	if err != nil {
		return answer{}, err
	}
	o := hcp.Org{ID: id[hcp.OrgID](s, hcp.KindOrg), Name: name, CreatedAt: c.now()}
	rec, err := record(persistence.RecordOrg, string(o.ID), o.Name, "", 0, o)
	if err != nil {
		return answer{}, err
	}
	defer s.orgs.forget()
	return s.commit(c, change{records: []persistence.RecordChange{rec}, event: hcp.EventResourceCreated,
		subject: hcp.LRNOf("org", string(o.ID)), status: http.StatusCreated, body: orgView(o)})
}

func (s *Server) deleteOrg(c *call) (answer, error) {
	r, err := theFresh(c, s.orgs, "org", "org")
	if err != nil {
		return answer{}, err
	}
	projects, err := s.Store.ListRecords(c.ctx, persistence.RecordProject, r.id)
	if err != nil {
		return answer{}, err
	}
	if len(projects) > 0 {
		return answer{}, inUse("org", "a project")
	}
	defer s.orgs.forget()
	return s.drop(c, persistence.RecordOrg, r.id, r.name, r.version, "org")
}

func (s *Server) listProjects(c *call) (answer, error) {
	rows, err := s.projects.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	if v := c.query.Get("org"); v != "" {
		org, err := findIn(c, s.orgs, v, "org", "?org")
		if err != nil {
			return answer{}, err
		}
		var of []row[hcp.Project]
		for _, r := range rows {
			if r.value.Org == org.ID {
				of = append(of, r)
			}
		}
		rows = of
	}
	return all(rows, func(r row[hcp.Project]) v1.Project { return projectView(r.value) })
}

func (s *Server) getProject(c *call) (answer, error) {
	r, err := the(c, s.projects, "id", "project")
	if err != nil {
		return answer{}, err
	}
	return ok(projectView(r.value))
}

// createProject also takes the org's record along unchanged, so that an org that
// is deleted at the same moment refuses it.
func (s *Server) createProject(c *call) (answer, error) {
	var in v1.CreateProject
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name, err := cleanName(in.Name)
	if err != nil {
		return answer{}, err
	}
	org, err := findIn(c, s.orgs, in.Org, "org", "/org")
	if err != nil {
		return answer{}, err
	}
	fresh, err := s.orgs.fresh(c.ctx, string(org.ID))
	if err != nil {
		return answer{}, err
	}
	p := hcp.Project{ID: id[hcp.ProjectID](s, hcp.KindProject), Org: org.ID, Name: name, CreatedAt: c.now()}
	rec, err := record(persistence.RecordProject, string(p.ID), p.Name, string(p.Org), 0, p)
	if err != nil {
		return answer{}, err
	}
	orgRec, err := record(persistence.RecordOrg, fresh.id, fresh.name, fresh.parent, fresh.version, fresh.value)
	if err != nil {
		return answer{}, err
	}
	defer s.projects.forget()
	return s.commit(c, change{records: []persistence.RecordChange{orgRec, rec}, event: hcp.EventResourceCreated,
		subject: hcp.LRNOf("project", string(p.ID)), status: http.StatusCreated, body: projectView(p)})
}

func (s *Server) deleteProject(c *call) (answer, error) {
	r, err := theFresh(c, s.projects, "id", "project")
	if err != nil {
		return answer{}, err
	}
	vms, err := s.Store.ListVMs(c.ctx, persistence.VMFilter{Project: r.value.ID, Page: persistence.Page{Limit: 1}})
	if err != nil {
		return answer{}, err
	}
	if len(vms) > 0 {
		return answer{}, inUse("project", "a VM")
	}
	defer s.projects.forget()
	return s.drop(c, persistence.RecordProject, r.id, r.name, r.version, "project")
}
