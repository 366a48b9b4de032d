package api

import (
	"slices"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (s *Server) version(*call) (answer, error) {
	return ok(v1.Version{Version: s.Version, API: "v1"})
}

func (s *Server) document(*call) (answer, error) {
	return answer{status: 200, raw: s.openapi}, nil
}

// whoami lists the projects that the caller has a role in, and what it may do there.
func (s *Server) whoami(c *call) (answer, error) {
	out := v1.WhoAmI{Subject: c.identity.Subject, Scope: c.identity.Scope, ExpiresAt: c.identity.ExpiresAt,
		Roles: []string{}, Projects: []v1.ProjectAccess{}}
	if c.identity.Scope == hcp.ScopeOps {
		out.Roles = c.grants.Ops().Names()
		return ok(out)
	}
	projects, err := s.projects.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	for _, p := range projects {
		if in := c.grants.In(p.value); len(in) > 0 {
			out.Projects = append(out.Projects, v1.ProjectAccess{ID: p.value.ID, Name: p.value.Name, Org: p.value.Org,
				Roles: in.Names(), Actions: slices.Clip(in.Actions())})
		}
	}
	return ok(out)
}
