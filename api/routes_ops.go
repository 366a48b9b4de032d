package api

import (
	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// opsRoute is one row of the operators' scope. Mutations of the catalogue have
// their audit row in the commit that makes them.
func opsRoute(rid, method, path string, action auth.Action, cli, summary string, body, answer any, h func(*Server, *call) (answer, error)) Route {
	r := Route{ID: rid, Method: method, Path: opsPath + path, Action: action, Scope: hcp.ScopeOps, CLI: cli, Summary: summary,
		Body: body, Answer: answer, handle: h}
	if r.Mutates() {
		r.Audit = AuditOwn
	}
	if method == "POST" && answer != nil {
		r.Status = 201
	}
	return r
}

func opsInfraRoutes() []Route {
	cluster, one := "/clusters", "/clusters/{cluster}"
	view := hcp.ClusterView{}
	clusters := []Route{
		opsRoute("ops.clusters.list", "GET", cluster, auth.ClusterRead, "cluster list", "List clusters", nil, v1.Page[hcp.ClusterView]{}, (*Server).listClusters),
		opsRoute("ops.clusters.register", "POST", cluster, auth.ClusterRegister, "cluster register", "Register a cluster", v1.RegisterCluster{}, view, (*Server).registerCluster),
		opsRoute("ops.clusters.get", "GET", one, auth.ClusterRead, "cluster get", "Show a cluster", nil, view, (*Server).getCluster),
		opsRoute("ops.clusters.update", "PATCH", one, auth.ClusterUpdate, "cluster update", "Change name, endpoint or options", v1.UpdateCluster{}, view, (*Server).updateCluster),
		opsRoute("ops.clusters.delete", "DELETE", one, auth.ClusterDelete, "cluster delete", "Forget a cluster that holds no VM", nil, nil, (*Server).deleteCluster),
		opsRoute("ops.clusters.probe", "POST", one+"/probe", auth.ClusterProbe, "cluster probe", "Look at the cluster now", nil, view, (*Server).probeCluster),
		opsRoute("ops.clusters.maintenance", "POST", one+"/maintenance", auth.ClusterMaintenance, "cluster maintenance", "Switch maintenance", v1.SetMaintenance{}, view, (*Server).setMaintenance),
		opsRoute("ops.clusters.credentials", "POST", one+"/credentials", auth.ClusterCredentials, "cluster credentials", "Replace the credentials", v1.SetCredentials{}, view, (*Server).setCredentials),
		opsRoute("ops.clusters.orphans", "GET", one+"/orphans", auth.ClusterOrphans, "cluster orphans", "Machines that no VM accounts for", nil, hcp.OrphanList{}, (*Server).listOrphans),
	}
	for i := range clusters {
		r := &clusters[i]
		if r.Mutates() {
			r.Audit = AuditActor
			if r.ID != "ops.clusters.register" && r.Answer != nil {
				r.Status = 200
			}
		}
	}
	artefact := opsRoute("ops.images.artefact", "PUT", "/images/{image}/artefacts/{cluster}", auth.ImageWrite, "image upload",
		"Upload the image file to a cluster (application/octet-stream), or register an artefact it has (application/json)",
		v1.SetArtefact{}, v1.OpsImage{}, (*Server).putArtefact)
	artefact.Upload = true
	return append(clusters,
		opsRoute("ops.zones.list", "GET", "/zones", auth.OpsZoneRead, "zone list", "List zones with their clusters", nil, v1.Page[v1.OpsZone]{}, (*Server).opsListZones),
		opsRoute("ops.zones.create", "POST", "/zones", auth.ZoneWrite, "zone create", "Make a zone", v1.PutZone{}, v1.OpsZone{}, (*Server).createZone),
		opsRoute("ops.zones.get", "GET", "/zones/{zone}", auth.OpsZoneRead, "zone get", "Show a zone", nil, v1.OpsZone{}, (*Server).opsGetZone),
		opsRoute("ops.zones.put", "PUT", "/zones/{zone}", auth.ZoneWrite, "zone update", "Replace name, region and members", v1.PutZone{}, v1.OpsZone{}, (*Server).putZone),
		opsRoute("ops.zones.delete", "DELETE", "/zones/{zone}", auth.ZoneWrite, "zone delete", "Delete a zone that no VM is in", nil, nil, (*Server).deleteZone),
		opsRoute("ops.images.list", "GET", "/images", auth.OpsImageRead, "image list", "List images with their artefacts", nil, v1.Page[v1.OpsImage]{}, (*Server).opsListImages),
		opsRoute("ops.images.create", "POST", "/images", auth.ImageWrite, "image create", "Make a logical image", v1.CreateImage{}, v1.OpsImage{}, (*Server).createImage),
		opsRoute("ops.images.get", "GET", "/images/{image}", auth.OpsImageRead, "image get", "Show an image", nil, v1.OpsImage{}, (*Server).opsGetImage),
		opsRoute("ops.images.update", "PATCH", "/images/{image}", auth.ImageWrite, "image update", "Change state or minimum sizes", v1.UpdateImage{}, v1.OpsImage{}, (*Server).updateImage),
		opsRoute("ops.images.delete", "DELETE", "/images/{image}", auth.ImageWrite, "image delete", "Delete an image that no VM uses", nil, nil, (*Server).deleteImage),
		artefact,
		opsRoute("ops.flavors.list", "GET", "/flavors", auth.OpsFlavorRead, "flavor list", "List flavors", nil, v1.Page[v1.Flavor]{}, (*Server).opsListFlavors),
		opsRoute("ops.flavors.create", "POST", "/flavors", auth.FlavorWrite, "flavor create", "Make a flavor", v1.CreateFlavor{}, v1.Flavor{}, (*Server).createFlavor),
		opsRoute("ops.flavors.get", "GET", "/flavors/{flavor}", auth.OpsFlavorRead, "flavor get", "Show a flavor", nil, v1.Flavor{}, (*Server).getFlavor),
		opsRoute("ops.flavors.update", "PATCH", "/flavors/{flavor}", auth.FlavorWrite, "flavor update", "Retire a flavor, or take it back", v1.UpdateFlavor{}, v1.Flavor{}, (*Server).updateFlavor),
		opsRoute("ops.flavors.delete", "DELETE", "/flavors/{flavor}", auth.FlavorWrite, "flavor delete", "Delete a flavor; VMs keep their sizes", nil, nil, (*Server).deleteFlavor),
	)
}

func opsTenancyRoutes() []Route {
	projects := opsRoute("ops.projects.list", "GET", "/projects", auth.ProjectRead, "project list", "List projects", nil, v1.Page[v1.Project]{}, (*Server).listProjects)
	projects.Query = []Param{{Name: "org", Type: "string", Doc: "Name, id or LRN"}}
	bindings := opsRoute("ops.role_bindings.list", "GET", "/role-bindings", auth.BindingRead, "role-binding list", "List role bindings", nil, v1.Page[hcp.RoleBinding]{}, (*Server).listBindings)
	bindings.Query = []Param{{Name: "subject", Type: "string"}}
	return []Route{
		opsRoute("ops.orgs.list", "GET", "/orgs", auth.OrgRead, "org list", "List organisations", nil, v1.Page[v1.Org]{}, (*Server).listOrgs),
		opsRoute("ops.orgs.create", "POST", "/orgs", auth.OrgWrite, "org create", "Make an organisation", v1.CreateOrg{}, v1.Org{}, (*Server).createOrg),
		opsRoute("ops.orgs.get", "GET", "/orgs/{org}", auth.OrgRead, "org get", "Show an organisation", nil, v1.Org{}, (*Server).getOrg),
		opsRoute("ops.orgs.delete", "DELETE", "/orgs/{org}", auth.OrgWrite, "org delete", "Delete an organisation without projects", nil, nil, (*Server).deleteOrg),
		projects,
		opsRoute("ops.projects.create", "POST", "/projects", auth.ProjectWrite, "project create", "Make a project", v1.CreateProject{}, v1.Project{}, (*Server).createProject),
		opsRoute("ops.projects.get", "GET", "/projects/{id}", auth.ProjectRead, "project get", "Show a project", nil, v1.Project{}, (*Server).getProject),
		opsRoute("ops.projects.delete", "DELETE", "/projects/{id}", auth.ProjectWrite, "project delete", "Delete a project without VMs", nil, nil, (*Server).deleteProject),
		opsRoute("ops.quotas.get", "GET", "/quotas/{scope}/{id}", auth.OpsQuotaRead, "quota get", "Show one counter: org, project, or user as project/subject", nil, v1.QuotaSubject{}, (*Server).opsGetQuota),
		opsRoute("ops.quotas.set", "PUT", "/quotas/{scope}/{id}", auth.QuotaWrite, "quota set", "Set limits", v1.SetQuota{}, v1.QuotaSubject{}, (*Server).setQuota),
		bindings,
		opsRoute("ops.role_bindings.create", "POST", "/role-bindings", auth.BindingWrite, "role-binding create", "Give a subject a role", v1.CreateBinding{}, hcp.RoleBinding{}, (*Server).createBinding),
		opsRoute("ops.role_bindings.delete", "DELETE", "/role-bindings/{binding}", auth.BindingWrite, "role-binding delete", "Take a role away", nil, nil, (*Server).deleteBinding),
		opsRoute("ops.roles.list", "GET", "/roles", auth.RoleRead, "role list", "List the built-in roles", nil, v1.Page[v1.Role]{}, (*Server).listRoles),
	}
}

func opsReadRoutes() []Route {
	project := Param{Name: "project", Type: "string", Doc: "Name, id or LRN"}
	cluster := Param{Name: "cluster", Type: "string", Doc: "Name, id or LRN"}
	vms := opsRoute("ops.vms.list", "GET", "/vms", auth.OpsVMRead, "vm list", "List the VMs of all projects", nil, v1.Page[v1.OpsVM]{}, (*Server).opsListVMs)
	vms.Query = append(vmRoutes()[1].Query, project, Param{Name: "org", Type: "string", Doc: "Name, id or LRN"}, cluster)
	jobs := opsRoute("ops.jobs.list", "GET", "/jobs", auth.OpsJobRead, "job list", "List the jobs of all projects", nil, v1.Page[v1.OpsJob]{}, (*Server).opsListJobs)
	jobs.Query = append(jobRoutes()[0].Query, project, cluster)
	audit := opsRoute("ops.audit.list", "GET", "/audit", auth.OpsAuditRead, "audit list", "List audit rows of all projects", nil, v1.Page[hcp.AuditRecord]{}, (*Server).listAudit)
	audit.Query, audit.Audit = auditParams(project), AuditRead
	events := opsRoute("ops.events.stream", "GET", "/events", auth.OpsEventRead, "event watch", "Stream the events of all projects and operators", nil, nil, (*Server).streamEvents)
	events.Stream, events.Query = true, eventParams()
	return []Route{
		vms,
		opsRoute("ops.vms.get", "GET", "/vms/{vm}", auth.OpsVMRead, "vm get", "Show a VM by id or LRN", nil, v1.OpsVM{}, (*Server).opsGetVM),
		opsRoute("ops.vms.explain", "GET", "/vms/{vm}/explain", auth.OpsVMRead, "vm explain", "Why the VM is where it is, with the provider's words", nil, hcp.Explanation{}, (*Server).explainVM),
		jobs,
		opsRoute("ops.jobs.get", "GET", "/jobs/{job}", auth.OpsJobRead, "job get", "Show a job", nil, v1.OpsJob{}, (*Server).opsGetJob),
		audit, events,
		opsRoute("ops.system.status", "GET", "/system/status", auth.SystemRead, "system status", "The control plane at a glance", nil, v1.SystemStatus{}, (*Server).systemStatus),
	}
}
