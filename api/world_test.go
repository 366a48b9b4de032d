package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

// world is a server over a real store, with two orgs, a project in each, a
// cluster with room, an image and a flavor.
type world struct {
	t      testing.TB
	store  *sqlite.Store
	owner  *owner
	wakes  *wakes
	images *images
	deps   api.Deps
	server *api.Server
	issuer *auth.Issuer
	clock  *shifted
	ids    ident.Source
	url    string
	logs   *syncBuffer

	org, otherOrg         hcp.Org
	project, otherProject hcp.Project
	cluster               hcp.Cluster
	zone                  hcp.Zone
	image                 hcp.Image
	flavor                hcp.Flavor

	token, ops, other string
}

type option func(*api.Deps)

func newWorld(t testing.TB, opts ...option) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t, clock: &shifted{Clock: clock.Real()}, ids: ident.Random(), logs: &syncBuffer{}}
	store, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(t.TempDir(), "hcp.db"), NoSync: true})
	must(t, err)
	w.store = store
	t.Cleanup(func() { must(t, store.Close()) })
	w.owner, w.wakes, w.images = &owner{w: w}, &wakes{}, &images{}
	w.issuer, err = auth.NewIssuer(ctx, store, plainSealer{}, w.clock.Now, auth.Config{})
	must(t, err)
	deps := api.Deps{Store: store, Commander: w.owner, Wakes: w.wakes, Images: w.images, Issuer: w.issuer, Sealer: plainSealer{},
		Clock: w.clock, IDs: w.ids, Log: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics: func(api.Observation) {}, Version: "test"}
	for _, o := range opts {
		o(&deps)
	}
	w.seed(ctx)
	w.deps = deps
	w.server, w.url = w.serve()
	return w
}

// serve starts a server of the world's parts; it ends with the test.
func (w *world) serve() (*api.Server, string) {
	t := w.t
	t.Helper()
	server, err := api.New(context.Background(), w.deps)
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Listen(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		must(t, server.Shutdown(ctx))
		must(t, <-served)
	})
	return server, "http://" + ln.Addr().String()
}

// secondGateway is another server on the same store.
func (w *world) secondGateway() string {
	_, url := w.serve()
	return url
}

// at is the same world through another gateway.
func (w *world) at(url string) *world {
	other := *w
	other.url = url
	return &other
}

// seed writes the catalogue as an operator would have.
func (w *world) seed(ctx context.Context) {
	now := w.clock.Now()
	w.org = hcp.Org{ID: hcp.OrgID(w.ids.New(hcp.KindOrg)), Name: "acme", CreatedAt: now}
	w.otherOrg = hcp.Org{ID: hcp.OrgID(w.ids.New(hcp.KindOrg)), Name: "rival", CreatedAt: now}
	w.project = hcp.Project{ID: hcp.ProjectID(w.ids.New(hcp.KindProject)), Org: w.org.ID, Name: "demo", CreatedAt: now}
	w.otherProject = hcp.Project{ID: hcp.ProjectID(w.ids.New(hcp.KindProject)), Org: w.otherOrg.ID, Name: "other", CreatedAt: now}
	w.cluster = hcp.Cluster{ID: hcp.ClusterID(w.ids.New(hcp.KindCluster)), Name: "cl-secret-name", Driver: "sim", Endpoint: "http://secret-endpoint", CreatedAt: now,
		Info: &hcp.ClusterInfo{Version: "1", Capabilities: hcp.Capabilities{hcp.CapReboot: {Supported: true}}}}
	w.zone = hcp.Zone{ID: hcp.ZoneID(w.ids.New(hcp.KindZone)), Name: "local", Region: "here", CreatedAt: now,
		Members: []hcp.ZoneCluster{{Cluster: w.cluster.ID}}}
	w.image = hcp.Image{ID: hcp.ImageID(w.ids.New(hcp.KindImage)), Name: "debian", Version: "13", SHA256: strings.Repeat("ab", 32), Firmware: hcp.FirmwareBIOS,
		State: hcp.ImageActive, MinDisk: 2, MinMemory: 64, Artefacts: map[hcp.ClusterID]string{w.cluster.ID: "secret-artefact"}, CreatedAt: now}
	w.flavor = hcp.Flavor{ID: hcp.FlavorID(w.ids.New(hcp.KindFlavor)), Name: "small", VCPUs: 1, MemoryMiB: 256, DiskGiB: 4, CreatedAt: now}
	w.commit(persistence.Commit{Records: []persistence.RecordChange{
		w.record(persistence.RecordOrg, string(w.org.ID), w.org.Name, "", w.org),
		w.record(persistence.RecordOrg, string(w.otherOrg.ID), w.otherOrg.Name, "", w.otherOrg),
		w.record(persistence.RecordProject, string(w.project.ID), w.project.Name, string(w.org.ID), w.project),
		w.record(persistence.RecordProject, string(w.otherProject.ID), w.otherProject.Name, string(w.otherOrg.ID), w.otherProject),
		w.record(persistence.RecordZone, string(w.zone.ID), w.zone.Name, "", w.zone),
		w.record(persistence.RecordImage, string(w.image.ID), w.image.Name, "", w.image),
		w.record(persistence.RecordFlavor, string(w.flavor.ID), w.flavor.Name, "", w.flavor),
	}})
	w.commit(persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorCluster, ID: string(w.cluster.ID)}, Cluster: &w.cluster,
		Capacity: []persistence.CapacityLimit{{Cluster: w.cluster.ID, Limit: hcp.Sizes{VCPUs: 100000, MemoryMiB: 100000000, DiskGiB: 10000000}}}})
	must(w.t, w.store.PutReachability(ctx, w.cluster.ID, hcp.Reachability{Reachable: true, LastGoodAt: now, ChangedAt: now}))
	w.bind("alice", auth.ProjectOwner, "", w.project.ID)
	w.bind("mallory", auth.ProjectOwner, "", w.otherProject.ID)
	w.bind("oscar", auth.CloudOperator, "", "")
	w.bind("oscar", auth.InfraAdmin, "", "")
	w.token = w.issue("alice", hcp.ScopeTenant)
	w.other = w.issue("mallory", hcp.ScopeTenant)
	w.ops = w.issue("oscar", hcp.ScopeOps)
}

func (w *world) issue(subject string, scope hcp.Scope) string {
	w.t.Helper()
	token, err := w.issuer.Issue(subject, scope, time.Hour)
	must(w.t, err)
	return token
}

func (w *world) bind(subject, role string, org hcp.OrgID, project hcp.ProjectID) hcp.RoleBinding {
	w.t.Helper()
	r, known := auth.RoleNamed(role)
	if !known {
		w.t.Fatalf("there is no role %s", role)
	}
	b := hcp.RoleBinding{ID: w.ids.New(hcp.KindBinding), Subject: subject, Role: role, Scope: r.Scope, Org: org, Project: project}
	rec, err := auth.BindingRecord(b)
	must(w.t, err)
	w.commit(persistence.Commit{Records: []persistence.RecordChange{{Record: rec}}})
	return b
}

func (w *world) record(kind persistence.RecordKind, id, name, parent string, v any) persistence.RecordChange {
	body, err := json.Marshal(v)
	must(w.t, err)
	return persistence.RecordChange{Record: persistence.Record{Kind: kind, ID: id, Name: name, Parent: parent, Body: body}}
}

func (w *world) commit(c persistence.Commit) {
	w.t.Helper()
	must(w.t, w.store.Commit(context.Background(), c))
}

// reply is one answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("the body is not what it should be: %v\n%s", err, r.body)
	}
}

func (r reply) problem(t testing.TB) v1.Problem {
	t.Helper()
	var p v1.Problem
	r.into(t, &p)
	if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("the content type of a problem is %q", ct)
	}
	return p
}

// do sends one request; headers are pairs. Every answer is checked against the
// OpenAPI document and the headers each answer has.
func (w *world) do(method, path, token string, body any, headers ...string) reply {
	w.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b)
		must(w.t, err)
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, w.url+path, reader)
	must(w.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(w.t, err)
	r := reply{resp.StatusCode, resp.Header, data}
	checkAnswer(w.t, method, path, r)
	return r
}

func (w *world) vmBody(name string) map[string]any {
	return map[string]any{"name": name, "image": "debian", "flavor": "small"}
}

func (w *world) create(name string, headers ...string) reply {
	w.t.Helper()
	if len(headers) == 0 {
		headers = []string{"Idempotency-Key", w.ids.New(hcp.KindCommand)}
	}
	return w.do("POST", "/v1/projects/demo/vms", w.token, w.vmBody(name), headers...)
}

func (w *world) created(name string) hcp.AcceptedView {
	w.t.Helper()
	r := w.create(name)
	if r.status != 202 {
		w.t.Fatalf("create answered %d: %s", r.status, r.body)
	}
	var a hcp.AcceptedView
	r.into(w.t, &a)
	return a
}

// auditOf are the rows of kind call of one request.
func (w *world) auditOf(r reply) []hcp.AuditRecord {
	w.t.Helper()
	rows, err := w.store.ListAudit(context.Background(), persistence.AuditFilter{RequestID: hcp.RequestID(r.header.Get("Request-Id")),
		Kind: hcp.AuditCall, Page: persistence.Page{Limit: 10}})
	must(w.t, err)
	return rows
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shifted is the real clock, moved by tests.
type shifted struct {
	clock.Clock
	mu sync.Mutex
	by time.Duration
}

func (s *shifted) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Now().Add(s.by)
}

func (s *shifted) move(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += d
}

// plainSealer marks and reverses; the real one has its own tests.
type plainSealer struct{}

func (plainSealer) Seal(plain []byte, context string) (hcp.Sealed, error) {
	out := append([]byte(context+"\x00"), plain...)
	for i := range out {
		out[i] ^= 0x5a
	}
	return out, nil
}

func (plainSealer) Open(sealed hcp.Sealed, context string) ([]byte, error) {
	out := bytes.Clone(sealed)
	for i := range out {
		out[i] ^= 0x5a
	}
	plain, ok := bytes.CutPrefix(out, []byte(context+"\x00"))
	if !ok {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal", "sealed for another place")
	}
	return plain, nil
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
