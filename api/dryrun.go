package api

import (
	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// dryRun says what the create would do, and refuses what the owner would refuse
// as far as it can be seen without its turn: placement, quota and the name.
func (s *Server) dryRun(c *call, p *plan) (answer, error) {
	ranked, err := s.place(c.ctx, p)
	if err != nil {
		return answer{}, err
	}
	if k, err := s.Store.GetVM(c.ctx, c.project.ID, p.vm.Name); err == nil && k.VM.HoldsName() {
		return answer{}, hcp.Errorf(hcp.CodeConflict, "name_taken", "a VM of the project has this name")
	} else if err != nil && !hcp.IsCode(err, hcp.CodeNotFound) {
		return answer{}, err
	}
	uses, err := s.Store.Quota(c.ctx, hcp.SubjectsOf(p.vm.Org, p.vm.Project, p.vm.Owner))
	if err != nil {
		return answer{}, err
	}
	holds := hcp.HoldsOf(p.vm.Flavor)
	out := v1.DryRun{Hostname: p.vm.Hostname, Zone: ranked[0].Zone.Name, Region: ranked[0].Zone.Region,
		Image:  hcp.ImagePinView{ID: p.image.ID, Name: p.image.Name, Version: p.image.Version, SHA256: p.image.SHA256},
		Flavor: hcp.FlavorView(p.vm.Flavor), Quota: []v1.QuotaSubject{}, Capabilities: ranked[0].Capabilities}
	if out.Capabilities == nil {
		out.Capabilities = hcp.Capabilities{}
	}
	for _, u := range uses {
		q := v1.QuotaSubject{Scope: u.Subject.Scope, ID: u.Subject.ID, Lines: []hcp.QuotaLine{}}
		for _, l := range u.Lines {
			if !l.Limit.Allows(l.Used, holds[l.Resource]) {
				return answer{}, hcp.QuotaRefusal(u.Subject, l.Resource, l.Limit, l.Used, holds[l.Resource])
			}
			l.Used += holds[l.Resource]
			q.Lines = append(q.Lines, l)
		}
		out.Quota = append(out.Quota, q)
	}
	return ok(out)
}
