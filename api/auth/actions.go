package auth

import "slices"

// Action is what a route does, the unit of permission and the word in the audit log.
type Action string

// Actions of the tenant's scope.
const (
	VMCreate  Action = "vm.create"
	VMList    Action = "vm.list"
	VMGet     Action = "vm.get"
	VMUpdate  Action = "vm.update"
	VMDelete  Action = "vm.delete"
	VMStart   Action = "vm.start"
	VMStop    Action = "vm.stop"
	VMReboot  Action = "vm.reboot"
	VMRefresh Action = "vm.refresh"
	VMExplain Action = "vm.explain"
	VMHistory Action = "vm.history"

	JobList   Action = "job.list"
	JobGet    Action = "job.get"
	JobCancel Action = "job.cancel"
	JobRetry  Action = "job.retry"

	ImageRead  Action = "image.read"
	FlavorRead Action = "flavor.read"
	ZoneRead   Action = "zone.read"
	QuotaRead  Action = "quota.read"
	AuditRead  Action = "audit.read"
	EventRead  Action = "event.read"
)

// Actions of the operators' scope.
const (
	ClusterRead        Action = "ops.cluster.read"
	ClusterRegister    Action = "ops.cluster.register"
	ClusterUpdate      Action = "ops.cluster.update"
	ClusterDelete      Action = "ops.cluster.delete"
	ClusterProbe       Action = "ops.cluster.probe"
	ClusterMaintenance Action = "ops.cluster.maintenance"
	ClusterCredentials Action = "ops.cluster.credentials"
	ClusterOrphans     Action = "ops.cluster.orphans"

	OpsZoneRead   Action = "ops.zone.read"
	ZoneWrite     Action = "ops.zone.write"
	OpsImageRead  Action = "ops.image.read"
	ImageWrite    Action = "ops.image.write"
	OpsFlavorRead Action = "ops.flavor.read"
	FlavorWrite   Action = "ops.flavor.write"
	OrgRead       Action = "ops.org.read"
	OrgWrite      Action = "ops.org.write"
	ProjectRead   Action = "ops.project.read"
	ProjectWrite  Action = "ops.project.write"
	OpsQuotaRead  Action = "ops.quota.read"
	QuotaWrite    Action = "ops.quota.write"
	BindingRead   Action = "ops.role_binding.read"
	BindingWrite  Action = "ops.role_binding.write"
	RoleRead      Action = "ops.role.read"
	OpsVMRead     Action = "ops.vm.read"
	OpsJobRead    Action = "ops.job.read"
	OpsAuditRead  Action = "ops.audit.read"
	OpsEventRead  Action = "ops.event.read"
	SystemRead    Action = "ops.system.read"
)

// WhoAmI is for everybody with a valid token; Public needs none.
const (
	WhoAmI Action = "whoami"
	Public Action = ""
)

func tenantReads() []Action {
	return []Action{VMList, VMGet, VMExplain, VMHistory, JobList, JobGet, ImageRead, FlavorRead, ZoneRead, QuotaRead, EventRead}
}

func opsReads() []Action {
	return []Action{ClusterRead, OpsZoneRead, OpsImageRead, OpsFlavorRead, OrgRead, ProjectRead, OpsQuotaRead, RoleRead,
		OpsVMRead, OpsJobRead, OpsEventRead, SystemRead}
}

// TenantActions and OpsActions list every action of their scope.
func TenantActions() []Action {
	return slices.Concat(tenantReads(), []Action{VMCreate, VMUpdate, VMDelete, VMStart, VMStop, VMReboot, VMRefresh,
		JobCancel, JobRetry, AuditRead})
}

func OpsActions() []Action {
	return slices.Concat(opsReads(), []Action{ClusterRegister, ClusterUpdate, ClusterDelete, ClusterProbe, ClusterMaintenance,
		ClusterCredentials, ClusterOrphans, ZoneWrite, ImageWrite, FlavorWrite, OrgWrite, ProjectWrite, QuotaWrite,
		BindingRead, BindingWrite, OpsAuditRead})
}
