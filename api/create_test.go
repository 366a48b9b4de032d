package api_test

import (
	"testing"

	"github.com/lotuscloud/hcp"
)

func TestCreateGoesToTheOwnerOfTheChosenCluster(t *testing.T) {
	w := newWorld(t)
	r := w.create("web-1")
	if r.status != 202 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	var a hcp.AcceptedView
	r.into(t, &a)
	if got, want := r.header.Get("Location"), "/v1/projects/"+string(w.project.ID)+"/jobs/"+string(a.JobID); got != want {
		t.Errorf("Location is %q, not %q", got, want)
	}
	c := w.owner.last()
	vm := c.Create.VM
	if c.Cluster != w.cluster.ID || vm.Cluster != w.cluster.ID || vm.Image.Artefact != "secret-artefact" || vm.Owner != "alice" || vm.Project != w.project.ID ||
		vm.Org != w.org.ID || vm.Region != "here" || vm.Hostname != "web-1" || !c.Create.Start || c.Create.Claim != w.flavor.Pin().Sizes() {
		t.Errorf("the command is not resolved: %+v", c.Create)
	}
	get := w.do("GET", "/v1/projects/demo/vms/web-1", w.token, nil)
	var view hcp.VMView
	get.into(t, &view)
	if view.ID != a.ResourceID {
		t.Errorf("the name finds %s", view.ID)
	}
	if rows := w.auditOf(r); len(rows) != 1 || rows[0].Result != "accepted" || rows[0].TraceID != r.header.Get("Trace-Id") {
		t.Errorf("the create left the audit rows %+v", rows)
	}
}
