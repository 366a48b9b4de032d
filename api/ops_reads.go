package api

import (
	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

func opsVMView(k hcp.Known) v1.OpsVM {
	v := v1.OpsVM{VMView: k.View(), Org: k.VM.Org, Cluster: k.VM.Cluster, Pool: k.VM.Pool, ProviderName: k.VM.ProviderName, ProviderRef: k.VM.Ref}
	if k.VM.Ref != nil {
		v.Host = k.VM.Ref.Host
	}
	if k.Observed != nil && k.Observed.Host != "" {
		v.Host = k.Observed.Host
	}
	if !k.VM.DeletedAt.IsZero() {
		at := k.VM.DeletedAt
		v.DeletedAt = &at
	}
	return v
}

func (s *Server) opsListVMs(c *call) (answer, error) {
	f, filter, err := s.vmFilter(c)
	if err != nil {
		return answer{}, err
	}
	if v := c.query.Get("project"); v != "" {
		p, err := findIn(c, s.projects, v, "project", "?project")
		if err != nil {
			return answer{}, err
		}
		f.Project = p.ID
	}
	if v := c.query.Get("org"); v != "" {
		o, err := findIn(c, s.orgs, v, "org", "?org")
		if err != nil {
			return answer{}, err
		}
		f.Org = o.ID
	}
	if v := c.query.Get("cluster"); v != "" {
		cl, err := c.clusterNamed(v)
		if err != nil {
			return answer{}, err
		}
		f.Cluster = cl.ID
	}
	rows, err := s.Store.ListVMs(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, rows, f.Page.Limit, vmPosition, opsVMView)
}

func (s *Server) opsGetVM(c *call) (answer, error) {
	k, err := c.anyVM()
	if err != nil {
		return answer{}, err
	}
	return ok(opsVMView(k))
}

func opsJobView(j hcp.Job) v1.OpsJob {
	v := v1.OpsJob{JobView: j.View(), Org: j.Org, Project: j.Project, Cluster: j.Cluster, Cause: j.Cause, Trail: j.Trail}
	if v.Trail == nil {
		v.Trail = []hcp.TrailEntry{}
	}
	return v
}

func (s *Server) opsListJobs(c *call) (answer, error) {
	filter := c.filter()
	page, err := c.page(filter)
	if err != nil {
		return answer{}, err
	}
	f := persistence.JobFilter{Kind: hcp.JobKind(c.query.Get("kind")), State: hcp.JobState(c.query.Get("state")), Page: page}
	if v := c.query.Get("project"); v != "" {
		p, err := findIn(c, s.projects, v, "project", "?project")
		if err != nil {
			return answer{}, err
		}
		f.Project = p.ID
	}
	if v := c.query.Get("cluster"); v != "" {
		cl, err := c.clusterNamed(v)
		if err != nil {
			return answer{}, err
		}
		f.Cluster = cl.ID
	}
	if v := c.query.Get("vm"); v != "" {
		ref, err := c.ref(v, "vm")
		if err != nil {
			return answer{}, err
		}
		k, err := c.findVM(ref)
		if err != nil {
			return answer{}, err
		}
		f.VM = k.VM.ID
	}
	rows, err := s.Store.ListJobs(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, rows, page.Limit, jobPosition, opsJobView)
}

func (s *Server) opsGetJob(c *call) (answer, error) {
	j, err := c.theJob()
	if err != nil {
		return answer{}, err
	}
	return ok(opsJobView(j))
}

func (s *Server) systemStatus(c *call) (answer, error) {
	out := v1.SystemStatus{Version: s.Version, Nodes: []v1.Node{}}
	var err error
	if out.Generation, err = s.Store.Generation(c.ctx); err != nil {
		return answer{}, err
	}
	if out.Jobs, err = s.Store.CountJobs(c.ctx); err != nil {
		return answer{}, err
	}
	if out.Clusters, err = s.Store.Reachability(c.ctx); err != nil {
		return answer{}, err
	}
	members, err := s.Store.ListMembers(c.ctx)
	if err != nil {
		return answer{}, err
	}
	for _, m := range members {
		out.Nodes = append(out.Nodes, v1.Node{Node: m.Node, Incarnation: m.Incarnation, Version: m.Version, JoinedAt: m.JoinedAt,
			RenewedAt: m.RenewedAt, Gone: m.Gone})
	}
	if out.Jobs == nil {
		out.Jobs = map[hcp.JobKind]map[hcp.JobState]int{}
	}
	if out.Clusters == nil {
		out.Clusters = map[hcp.ClusterID]hcp.Reachability{}
	}
	return ok(out)
}
