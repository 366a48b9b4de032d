package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// quotaSubject reads {scope}/{id}: an org or project by name, id or LRN, or a
// user as project/subject.
func (s *Server) quotaSubject(c *call) (hcp.QuotaSubject, error) {
	scope, value := hcp.QuotaScope(c.params["scope"]), c.params["id"]
	switch scope {
	case hcp.QuotaOrg:
		org, err := findIn(c, s.orgs, value, "org", "{id}")
		return hcp.QuotaSubject{Scope: scope, ID: string(org.ID)}, err
	case hcp.QuotaProject:
		p, err := findIn(c, s.projects, value, "project", "{id}")
		return hcp.QuotaSubject{Scope: scope, ID: string(p.ID)}, err
	case hcp.QuotaUser:
		project, user, found := strings.Cut(value, "/")
		if !found || user == "" {
			return hcp.QuotaSubject{}, badPath("id", "a user is written project/subject, percent-encoded")
		}
		p, err := findIn(c, s.projects, project, "project", "{id}")
		return hcp.QuotaSubject{Scope: scope, ID: string(p.ID) + "/" + user}, err
	}
	return hcp.QuotaSubject{}, badPath("scope", "it is none of org, project, user")
}

func (s *Server) readQuota(c *call, subject hcp.QuotaSubject) (v1.QuotaSubject, error) {
	uses, err := s.Store.Quota(c.ctx, []hcp.QuotaSubject{subject})
	if err != nil {
		return v1.QuotaSubject{}, err
	}
	for _, u := range uses {
		if u.Subject == subject {
			return quotaView(u), nil
		}
	}
	return v1.QuotaSubject{}, hcp.NotFound("quota")
}

func (s *Server) opsGetQuota(c *call) (answer, error) {
	subject, err := s.quotaSubject(c)
	if err != nil {
		return answer{}, err
	}
	view, err := s.readQuota(c, subject)
	if err != nil {
		return answer{}, err
	}
	return ok(view)
}

func (s *Server) setQuota(c *call) (answer, error) {
	var in v1.SetQuota
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	subject, err := s.quotaSubject(c)
	if err != nil {
		return answer{}, err
	}
	if len(in.Limits) == 0 {
		return answer{}, badField("/limits", "required", "at least one limit is required")
	}
	view, err := s.readQuota(c, subject)
	if err != nil {
		return answer{}, err
	}
	var limits []persistence.LimitChange
	for r, l := range in.Limits {
		if !slices.Contains(hcp.QuotaResources(), r) {
			return answer{}, badField("/limits", "unknown_field", "a quota counts vms, vcpus and memory_mib")
		}
		limits = append(limits, persistence.LimitChange{Subject: subject, Resource: r, Limit: l})
		for i := range view.Lines {
			if view.Lines[i].Resource == r {
				view.Lines[i].Limit = l
			}
		}
	}
	lrn := c.path
	if subject.Scope != hcp.QuotaUser {
		lrn = hcp.LRNOf(string(subject.Scope), subject.ID)
	}
	return s.commit(c, change{limits: limits, subject: lrn, status: http.StatusOK, body: view})
}

// --- role bindings ---

func (s *Server) listRoles(*call) (answer, error) {
	return all(auth.Roles(), func(r auth.Role) v1.Role { return v1.Role{Name: r.Name, Scope: r.Scope, Actions: r.Actions()} })
}

func (s *Server) listBindings(c *call) (answer, error) {
	records, err := s.Store.ListRecords(c.ctx, persistence.RecordBinding, c.query.Get("subject"))
	if err != nil {
		return answer{}, err
	}
	bindings := make([]hcp.RoleBinding, 0, len(records))
	for _, r := range records {
		var b hcp.RoleBinding
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return answer{}, err
		}
		bindings = append(bindings, b)
	}
	return all(bindings, func(b hcp.RoleBinding) hcp.RoleBinding { return b })
}

func (s *Server) createBinding(c *call) (answer, error) {
	var in v1.CreateBinding
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	role, known := auth.RoleNamed(in.Role)
	if !known {
		return answer{}, badField("/role", "unknown_role", "there is no such role; see the list of roles")
	}
	b := hcp.RoleBinding{ID: id[string](s, hcp.KindBinding), Subject: in.Subject, Role: role.Name, Scope: role.Scope}
	switch {
	case role.Scope == hcp.ScopeOps && (in.Project != "" || in.Org != ""):
		return answer{}, badField("/project", "not_allowed", "a role of the ops scope holds everywhere")
	case role.Scope == hcp.ScopeTenant && (in.Project == "") == (in.Org == ""):
		return answer{}, badField("/project", "required", "a project role needs exactly one of project and org")
	case in.Project != "":
		p, err := findIn(c, s.projects, in.Project, "project", "/project")
		if err != nil {
			return answer{}, err
		}
		b.Project = p.ID
	case in.Org != "":
		o, err := findIn(c, s.orgs, in.Org, "org", "/org")
		if err != nil {
			return answer{}, err
		}
		b.Org = o.ID
	}
	if role.Scope == hcp.ScopeOps {
		for _, action := range role.Actions() {
			if !c.grants.Allow(auth.Action(action)) {
				return answer{}, hcp.Errorf(hcp.CodeForbidden, "escalation", "nobody can give a role that may do more than the giver's own roles").
					WithHint("ask somebody who has the role")
			}
		}
	}
	rec, err := auth.BindingRecord(b)
	if err != nil {
		return answer{}, err
	}
	defer s.bindings.Forget(b.Subject)
	return s.commit(c, change{records: []persistence.RecordChange{{Record: rec}}, event: hcp.EventResourceCreated,
		subject: "role-binding/" + b.ID, status: http.StatusCreated, body: b})
}

func (s *Server) deleteBinding(c *call) (answer, error) {
	rec, err := s.Store.GetRecord(c.ctx, persistence.RecordBinding, c.params["binding"])
	if hcp.IsCode(err, hcp.CodeNotFound) {
		return answer{}, hcp.NotFound("role binding")
	}
	if err != nil {
		return answer{}, err
	}
	defer s.bindings.Forget(rec.Parent)
	return s.commit(c, change{records: []persistence.RecordChange{{Record: rec, Delete: true}}, event: hcp.EventResourceDeleted,
		subject: "role-binding/" + rec.ID, status: http.StatusNoContent})
}
