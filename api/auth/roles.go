package auth

import (
	"slices"

	"github.com/lotuscloud/hcp"
)

// The built-in roles. There are no others.
const (
	ProjectOwner    = "project-owner"
	ProjectOperator = "project-operator"
	ProjectViewer   = "project-viewer"
	CloudOperator   = "cloud-operator"
	InfraAdmin      = "infra-admin"
	SecurityAuditor = "security-auditor"
	BreakGlass      = "break-glass"
)

// Role is a set of actions that can be bound to a subject: at a project or an
// org when its scope is tenant, for the whole control plane when it is ops.
type Role struct {
	Name    string
	Scope   hcp.Scope
	actions map[Action]bool
}

// Allows reports whether the role has the action. What no role has, nobody may.
func (r Role) Allows(a Action) bool { return r.actions[a] }

// Actions of the role, sorted.
func (r Role) Actions() []string {
	out := make([]string, 0, len(r.actions))
	for a := range r.actions {
		out = append(out, string(a))
	}
	slices.Sort(out)
	return out
}

func role(name string, scope hcp.Scope, actions ...[]Action) Role {
	r := Role{name, scope, map[Action]bool{}}
	for _, a := range slices.Concat(actions...) {
		r.actions[a] = true
	}
	return r
}

// roles is the matrix; testdata/roles.golden shows it role by action.
var roles = []Role{
	role(ProjectOwner, hcp.ScopeTenant, TenantActions()),
	role(ProjectOperator, hcp.ScopeTenant, tenantReads(), []Action{VMStart, VMStop, VMReboot, VMRefresh, JobCancel, JobRetry}),
	role(ProjectViewer, hcp.ScopeTenant, tenantReads()),
	// The daily work: tenants, quotas, catalogue, and what keeps a cluster going.
	role(CloudOperator, hcp.ScopeOps, opsReads(), []Action{ClusterProbe, ClusterMaintenance, ClusterOrphans, ImageWrite, FlavorWrite,
		OrgWrite, ProjectWrite, QuotaWrite, BindingRead, BindingWrite, OpsAuditRead}),
	// Who may touch credentials and the shape of the infrastructure, and no tenant.
	role(InfraAdmin, hcp.ScopeOps, opsReads(), []Action{ClusterRegister, ClusterUpdate, ClusterDelete, ClusterProbe, ClusterMaintenance,
		ClusterCredentials, ClusterOrphans, ZoneWrite, ImageWrite, FlavorWrite}),
	role(SecurityAuditor, hcp.ScopeOps, []Action{OrgRead, ProjectRead, BindingRead, RoleRead, OpsAuditRead, OpsEventRead, SystemRead}),
	role(BreakGlass, hcp.ScopeOps, OpsActions()),
}

// Roles lists the built-in roles in documentation order.
func Roles() []Role { return slices.Clone(roles) }

// RoleNamed finds a role.
func RoleNamed(name string) (Role, bool) {
	i := slices.IndexFunc(roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return roles[i], true
}
