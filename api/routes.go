package api

import (
	"slices"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// Route is one row of the table. Everything about a call that is not its work
// stands here: the router, authorisation, audit, the OpenAPI document and the
// tests all read it.
type Route struct {
	ID      string // "vms.create"; the operationId
	Method  string
	Path    string      // "/v1/projects/{project}/vms"
	Action  auth.Action // what the caller must be allowed to; also the audit row's action
	Scope   hcp.Scope   // empty: any valid token (or none, with auth.Public)
	Async   bool        // answers 202 with a job
	Audit   Audit
	CLI     string // the hcpctl command that covers it
	Summary string

	KeyRequired  bool // Idempotency-Key is not optional
	Query        []Param
	Body         any // sample of the body's type; nil: none
	BodyOptional bool
	Answer       any // sample of the answer's type; nil: no content
	Status       int // of success
	Upload       bool
	Waits        bool
	Stream       bool // answers text/event-stream
	Conditional  bool // takes If-Match or If-None-Match, answers ETag

	handle func(*Server, *call) (answer, error)
	params []string // names in Path
}

// Mutates reports whether the call may change something.
func (r Route) Mutates() bool { return r.Method != "GET" }

// SlashIn reports whether that path parameter may contain a percent-encoded slash.
func (r Route) SlashIn(param string) bool {
	return strings.HasPrefix(r.ID, "ops.quotas.") && param == "id"
}

// Routes is the whole table, in the order of the documentation.
func Routes() []Route {
	routes := slices.Concat(rootRoutes(), vmRoutes(), jobRoutes(), tenantReadRoutes(), opsInfraRoutes(), opsTenancyRoutes(), opsReadRoutes())
	for i := range routes {
		r := &routes[i]
		for part := range strings.SplitSeq(r.Path, "/") {
			if strings.HasPrefix(part, "{") {
				r.params = append(r.params, strings.Trim(part, "{}"))
			}
		}
		if r.Status == 0 {
			switch {
			case r.Async:
				r.Status = 202
			case r.Answer == nil && !r.Stream:
				r.Status = 204
			default:
				r.Status = 200
			}
		}
	}
	return routes
}

// fiberPath writes {x} as Fiber's :x.
func fiberPath(path string) string { return strings.NewReplacer("{", ":", "}", "").Replace(path) }

const (
	tenantPath = "/v1/projects/{project}"
	vmPath     = tenantPath + "/vms/{vm}"
	jobPath    = tenantPath + "/jobs/{job}"
	opsPath    = "/v1/ops"
)

func pageParams(more ...Param) []Param {
	return append(more, Param{Name: "page_size", Type: "integer", Doc: "1 to 1000; 50 when absent"},
		Param{Name: "page_token", Type: "string", Doc: "next_page_token of the page before, with the same filter"})
}

func rootRoutes() []Route {
	return []Route{
		{ID: "version", Method: "GET", Path: "/v1/version", Action: auth.Public, CLI: "version", Summary: "What serves the API",
			Answer: v1.Version{}, handle: (*Server).version},
		{ID: "openapi", Method: "GET", Path: "/openapi.json", Action: auth.Public, CLI: "version", Summary: "This document",
			Answer: map[string]any{}, handle: (*Server).document},
		{ID: "whoami", Method: "GET", Path: "/v1/whoami", Action: auth.WhoAmI, CLI: "whoami", Summary: "How HCP sees the caller",
			Answer: v1.WhoAmI{}, handle: (*Server).whoami},
	}
}

func vmRoutes() []Route {
	tenant := hcp.ScopeTenant
	filters := []Param{{Name: "name", Type: "string", Doc: "Exact name"}, {Name: "state", Type: "string", Enum: words(hcp.States())},
		{Name: "lifecycle", Type: "string", Enum: words(hcp.Lifecycles())}, {Name: "zone", Type: "string", Doc: "Name, id or LRN"},
		{Name: "label", Type: "string", Multi: true, Doc: "key=value; all must match"},
		{Name: "deleted", Type: "boolean", Doc: "Also VMs whose deletion is done"}}
	accepted := hcp.AcceptedView{}
	return []Route{
		{ID: "vms.create", Method: "POST", Path: tenantPath + "/vms", Action: auth.VMCreate, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm create",
			Summary: "Create a VM", KeyRequired: true, Body: v1.CreateVM{}, Answer: accepted,
			Query:  []Param{{Name: "dry_run", Type: "boolean", Doc: "Answer 200 with what would happen, write nothing"}},
			handle: (*Server).createVM},
		{ID: "vms.list", Method: "GET", Path: tenantPath + "/vms", Action: auth.VMList, Scope: tenant, CLI: "vm list",
			Summary: "List VMs, newest first", Query: pageParams(filters...), Answer: v1.Page[hcp.VMView]{}, handle: (*Server).listVMs},
		{ID: "vms.get", Method: "GET", Path: vmPath, Action: auth.VMGet, Scope: tenant, CLI: "vm get", Conditional: true,
			Summary: "Show a VM", Answer: hcp.VMView{}, handle: (*Server).getVM},
		{ID: "vms.update", Method: "PATCH", Path: vmPath, Action: auth.VMUpdate, Scope: tenant, Audit: AuditActor, CLI: "vm update", Conditional: true,
			Summary: "Change name, labels, description or protection", Body: v1.UpdateVM{}, Answer: hcp.VMView{}, handle: (*Server).updateVM},
		{ID: "vms.delete", Method: "DELETE", Path: vmPath, Action: auth.VMDelete, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm delete",
			Summary: "Delete a VM and its disks", Answer: accepted, handle: verb(hcp.VerbDelete)},
		{ID: "vms.start", Method: "POST", Path: vmPath + "/start", Action: auth.VMStart, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm start",
			Summary: "Power on", Answer: accepted, handle: verb(hcp.VerbStart)},
		{ID: "vms.stop", Method: "POST", Path: vmPath + "/stop", Action: auth.VMStop, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm stop",
			Summary: "Stop gracefully or by force", Body: v1.StopVM{}, BodyOptional: true, Answer: accepted, handle: (*Server).stopVM},
		{ID: "vms.reboot", Method: "POST", Path: vmPath + "/reboot", Action: auth.VMReboot, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm reboot",
			Summary: "Restart the guest", Answer: accepted, handle: verb(hcp.VerbReboot)},
		{ID: "vms.refresh", Method: "POST", Path: vmPath + "/refresh", Action: auth.VMRefresh, Scope: tenant, Async: true, Audit: AuditActor, CLI: "vm refresh",
			Summary: "Read the hypervisor now", Answer: accepted, handle: verb(hcp.VerbRefresh)},
		{ID: "vms.explain", Method: "GET", Path: vmPath + "/explain", Action: auth.VMExplain, Scope: tenant, CLI: "vm explain",
			Summary: "Why the VM is where it is", Answer: hcp.Explanation{}, handle: (*Server).explainVM},
		{ID: "vms.history", Method: "GET", Path: vmPath + "/history", Action: auth.VMHistory, Scope: tenant, CLI: "vm history",
			Summary: "The VM's events, newest first", Query: pageParams(), Answer: v1.Page[v1.Event]{}, handle: (*Server).vmHistory},
	}
}

func jobRoutes() []Route {
	tenant := hcp.ScopeTenant
	accepted := hcp.AcceptedView{}
	return []Route{
		{ID: "jobs.list", Method: "GET", Path: tenantPath + "/jobs", Action: auth.JobList, Scope: tenant, CLI: "job list",
			Summary: "List jobs, newest first", Answer: v1.Page[hcp.JobView]{}, handle: (*Server).listJobs,
			Query: pageParams(Param{Name: "vm", Type: "string", Doc: "Name, id or LRN"}, Param{Name: "kind", Type: "string", Enum: words(hcp.JobKinds())},
				Param{Name: "state", Type: "string", Enum: words(hcp.JobStates())})},
		{ID: "jobs.get", Method: "GET", Path: jobPath, Action: auth.JobGet, Scope: tenant, CLI: "job get",
			Summary: "Show a job", Answer: hcp.JobView{}, handle: (*Server).getJob},
		{ID: "jobs.wait", Method: "GET", Path: jobPath + "/wait", Action: auth.JobGet, Scope: tenant, CLI: "job wait", Waits: true,
			Summary: "Wait until the job is final or the time is over", Answer: hcp.JobView{}, handle: (*Server).waitJob,
			Query: []Param{{Name: "timeout", Type: "string", Doc: "A duration from 0s to 60s; 30s when absent"}}},
		{ID: "jobs.cancel", Method: "POST", Path: jobPath + "/cancel", Action: auth.JobCancel, Scope: tenant, Async: true, Audit: AuditActor, CLI: "job cancel",
			Summary: "Ask the job to stop where it can", Answer: accepted, handle: jobVerb(hcp.VerbCancel)},
		{ID: "jobs.retry", Method: "POST", Path: jobPath + "/retry", Action: auth.JobRetry, Scope: tenant, Async: true, Audit: AuditActor, CLI: "job retry",
			Summary: "Try a failed create again on the same VM", Answer: accepted, handle: jobVerb(hcp.VerbRetry)},
	}
}

func tenantReadRoutes() []Route {
	tenant := hcp.ScopeTenant
	read := func(rid, path string, action auth.Action, cli, summary string, answer any, h func(*Server, *call) (answer, error)) Route {
		return Route{ID: rid, Method: "GET", Path: tenantPath + path, Action: action, Scope: tenant, CLI: cli, Summary: summary, Answer: answer, handle: h}
	}
	events := read("events.stream", "/events", auth.EventRead, "event watch", "Stream events", nil, (*Server).streamEvents)
	events.Stream, events.Query = true, eventParams()
	audit := read("audit.list", "/audit", auth.AuditRead, "audit list", "List audit rows, newest first", v1.Page[hcp.AuditRecord]{}, (*Server).listAudit)
	audit.Query = auditParams()
	return []Route{
		read("images.list", "/images", auth.ImageRead, "image list", "List images", v1.Page[v1.Image]{}, (*Server).listImages),
		read("images.get", "/images/{image}", auth.ImageRead, "image get", "Show an image", v1.Image{}, (*Server).getImage),
		read("flavors.list", "/flavors", auth.FlavorRead, "flavor list", "List flavors", v1.Page[v1.Flavor]{}, (*Server).listFlavors),
		read("flavors.get", "/flavors/{flavor}", auth.FlavorRead, "flavor get", "Show a flavor", v1.Flavor{}, (*Server).getFlavor),
		read("zones.list", "/zones", auth.ZoneRead, "zone list", "List zones with their capabilities", v1.Page[v1.Zone]{}, (*Server).listZones),
		read("zones.get", "/zones/{zone}", auth.ZoneRead, "zone get", "Show a zone", v1.Zone{}, (*Server).getZone),
		read("quota.get", "/quota", auth.QuotaRead, "quota get", "Limits and use of the project", v1.Quota{}, (*Server).quota),
		read("quota.verify", "/quota/verify", auth.QuotaRead, "quota verify", "Compare the counters with what lives", v1.QuotaVerify{}, (*Server).verifyQuota),
		audit, events,
	}
}

func eventParams() []Param {
	return []Param{{Name: "types", Type: "string", Multi: true, Doc: "Event types; several by comma or repetition"},
		{Name: "vm", Type: "string", Doc: "Name, id or LRN"}, {Name: "cursor", Type: "string", Doc: "Go on behind it; Last-Event-ID counts the same"}}
}

func auditParams(more ...Param) []Param {
	return pageParams(append(more, Param{Name: "actor", Type: "string"}, Param{Name: "action", Type: "string"},
		Param{Name: "kind", Type: "string", Enum: []string{"call", "job_started", "job_succeeded", "job_failed"}},
		Param{Name: "request_id", Type: "string"})...)
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
