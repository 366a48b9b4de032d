package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

const (
	stubTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	stubRequest = "req_0193a5b2c4d87e0f9a1b2c3d4e5f6071"
	stubProject = hcp.ProjectID("prj_0193a5b2c4d87e0f9a1b2c3d4e5f6001")
)

// stub is a server with the API's shapes, built from the domain's own views, and
// jobs that end the way a test says.
type stub struct {
	mu      sync.Mutex
	vms     []hcp.VMView
	jobs    map[hcp.JobID]*hcp.JobView
	log     []string // "POST /v1/..." of every request
	keys    []string // idempotency keys that came
	jobEnds func(j *hcp.JobView)
	looks   int // how many looks at a job it takes until it ends
	url     string
}

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{jobs: map[hcp.JobID]*hcp.JobView{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/projects/demo/vms", s.listVMs)
	mux.HandleFunc("POST /v1/projects/demo/vms", s.createVM)
	mux.HandleFunc("GET /v1/projects/demo/vms/{vm}", s.getVM)
	mux.HandleFunc("PATCH /v1/projects/demo/vms/{vm}", s.patchVM)
	mux.HandleFunc("DELETE /v1/projects/demo/vms/{vm}", s.verb(hcp.JobDelete))
	mux.HandleFunc("POST /v1/projects/demo/vms/{vm}/start", s.verb(hcp.JobStart))
	mux.HandleFunc("POST /v1/projects/demo/vms/{vm}/stop", s.verb(hcp.JobStop))
	mux.HandleFunc("GET /v1/projects/demo/jobs", s.listJobs)
	mux.HandleFunc("GET /v1/projects/demo/jobs/{job}", s.getJob)
	mux.HandleFunc("GET /v1/projects/demo/jobs/{job}/wait", s.getJob)
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, v1.Version{Version: "1.2.3", API: "v1"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuse(w, hcp.NotFound("project"), r.URL.Path) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, r.Method+" "+r.URL.RequestURI())
		if k := r.Header.Get("Idempotency-Key"); k != "" {
			s.keys = append(s.keys, k)
		}
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// problemServer answers every request with the error.
func problemServer(t *testing.T, e *hcp.Error) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { refuse(w, e, r.URL.Path) }))
	t.Cleanup(server.Close)
	return server.URL
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Trace-Id", stubTrace)
	w.Header().Set("Request-Id", stubRequest)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, e *hcp.Error, path string) {
	entry := e.Code.Entry()
	hint := e.Hint
	if hint == "" {
		hint = entry.Hint
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if entry.Retryable {
		w.Header().Set("Retry-After", "0")
	}
	w.WriteHeader(entry.Status)
	json.NewEncoder(w).Encode(v1.Problem{Type: "/problems/" + strings.ToLower(string(e.Code)), Title: entry.Title, Status: entry.Status, Detail: e.Message,
		Instance: path, Code: e.Code, Reason: e.Reason, Hint: hint, Retryable: entry.Retryable, TraceID: stubTrace, RequestID: stubRequest, Details: e.Details, Errors: e.Fields})
}

// addVM makes a VM the stub knows.
func (s *stub) addVM(name string, change ...func(*hcp.VMView)) hcp.VMView {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := hcp.VMID(fmt.Sprintf("vm_0193a5b2c4d87e0f9a1b2c3d4e5f60%02x", len(s.vms)))
	known := hcp.Known{VM: hcp.VM{ID: id, Name: name, Project: stubProject, Region: "home", ZoneName: "local", Lifecycle: hcp.LifecycleActive,
		Power: hcp.PowerStopped, PowerAt: testNow.Add(-time.Minute), Image: hcp.ImagePin{ID: "img_1", Name: "debian-13", Version: "2026.11"},
		Flavor: hcp.FlavorPin{Name: "small", VCPUs: 1, MemoryMiB: 512, DiskGiB: 5}, Owner: "demo-user", Generation: 7,
		CreatedAt: testNow.Add(-3 * time.Hour), UpdatedAt: testNow.Add(-time.Hour)}}
	v := known.View()
	for _, c := range change {
		c(&v)
	}
	s.vms = append(s.vms, v)
	return v
}

func (s *stub) find(ref string) *hcp.VMView {
	for i := range s.vms {
		v := &s.vms[i]
		if string(v.ID) == ref || v.Name == ref && v.Lifecycle != hcp.LifecycleDeleted {
			return v
		}
	}
	return nil
}

func (s *stub) listVMs(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, 200, v1.Page[hcp.VMView]{Items: append([]hcp.VMView{}, s.vms...)})
}

func (s *stub) getVM(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(r.PathValue("vm"))
	if v == nil || v.Lifecycle == hcp.LifecycleDeleted {
		refuse(w, hcp.NotFound("vm"), r.URL.Path)
		return
	}
	answer(w, 200, v)
}

func (s *stub) patchVM(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(r.PathValue("vm"))
	var in v1.UpdateVM
	json.NewDecoder(r.Body).Decode(&in)
	if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, v.Generation) {
		refuse(w, hcp.Errorf(hcp.CodePreconditionFailed, "etag_mismatch", "the VM has changed meanwhile"), r.URL.Path)
		return
	}
	if in.Name != nil {
		v.Name = *in.Name
	}
	if in.Labels != nil {
		v.Labels = *in.Labels
	}
	v.Generation++
	answer(w, 200, v)
}

func (s *stub) createVM(w http.ResponseWriter, r *http.Request) {
	var in v1.CreateVM
	json.NewDecoder(r.Body).Decode(&in)
	if in.Image != "debian-13" {
		refuse(w, hcp.NotFound("image"), r.URL.Path)
		return
	}
	v := s.addVM(in.Name, func(v *hcp.VMView) {
		v.Lifecycle, v.State, v.Labels = hcp.LifecycleCreating, hcp.StateCreating, in.Labels
	})
	s.accept(w, v, hcp.JobCreate)
}

func (s *stub) verb(kind hcp.JobKind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		found := s.find(r.PathValue("vm"))
		s.mu.Unlock()
		if found == nil {
			refuse(w, hcp.NotFound("vm"), r.URL.Path)
			return
		}
		s.accept(w, *found, kind)
	}
}

func (s *stub) accept(w http.ResponseWriter, v hcp.VMView, kind hcp.JobKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := hcp.Job{ID: hcp.JobID(fmt.Sprintf("job_0193a5b2c4d87e0f9a1b2c3d4e5f61%02x", len(s.jobs))), Kind: kind, State: hcp.JobQueued, VM: v.ID, VMName: v.Name,
		Project: stubProject, Phase: hcp.PhaseForward, CreatedAt: testNow, TraceID: stubTrace, Deadline: testNow.Add(2 * time.Hour),
		Steps: []hcp.Step{{Name: "prepare", State: hcp.StepPending}, {Name: "work", State: hcp.StepPending}}}
	view := j.View()
	s.jobs[j.ID] = &view
	answer(w, 202, hcp.AcceptedView{ResourceID: v.ID, JobID: j.ID, Resource: v, Job: view})
}

func (s *stub) getJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[hcp.JobID(r.PathValue("job"))]
	if j == nil {
		refuse(w, hcp.NotFound("job"), r.URL.Path)
		return
	}
	if s.looks--; s.looks < 0 && !j.State.Final() {
		s.end(j)
	} else if !j.State.Final() {
		j.State, j.Steps[0].State, j.Steps[0].Attempts = hcp.JobRunning, hcp.StepRunning, 1
	}
	answer(w, 200, j)
}

// end finishes a job: well, or as jobEnds says.
func (s *stub) end(j *hcp.JobView) {
	finished := testNow.Add(1500 * time.Millisecond)
	j.State, j.Progress, j.FinishedAt = hcp.JobSucceeded, 100, &finished
	for i := range j.Steps {
		j.Steps[i].State, j.Steps[i].Attempts = hcp.StepSucceeded, 1
	}
	if s.jobEnds != nil {
		s.jobEnds(j)
	}
	v := s.find(string(j.Target.ID))
	if j.State != hcp.JobSucceeded {
		return
	}
	switch j.Kind {
	case hcp.JobCreate, hcp.JobStart:
		v.Lifecycle, v.Power, v.State = hcp.LifecycleActive, hcp.PowerRunning, hcp.StateRunning
		v.Addresses = []hcp.Address{{IP: "192.0.2.17", Source: "lease"}}
	case hcp.JobStop:
		v.Power, v.State = hcp.PowerStopped, hcp.StateStopped
	case hcp.JobDelete:
		v.Lifecycle, v.State = hcp.LifecycleDeleted, hcp.StateDeleted
	}
}

func (s *stub) listJobs(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := v1.Page[hcp.JobView]{Items: []hcp.JobView{}}
	for _, j := range s.jobs {
		page.Items = append(page.Items, *j)
	}
	answer(w, 200, page)
}

func failWith(e *hcp.Error) func(*hcp.JobView) {
	return func(j *hcp.JobView) {
		j.State, j.Error = hcp.JobFailed, e.Fault()
		j.Steps[1].State, j.Steps[1].Error = hcp.StepFailed, e.Fault()
	}
}
