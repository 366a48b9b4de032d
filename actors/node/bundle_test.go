package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/vm"
	"github.com/lotuscloud/hcp/cluster"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/fault"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/drivers/sim/simctl"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/secrets"
	"github.com/lotuscloud/hcp/persistence/sqlite"
	"github.com/lotuscloud/hcp/transport"
)

// bundle is one node over a real store and a simulated hypervisor, with faults
// injected between the two. The node can be restarted on the same store.
type bundle struct {
	t      *testing.T
	store  *sqlite.Store
	sealer *secrets.KeyFile
	faults *fault.Injector
	sim    *simctl.Client
	simURL string
	ids    ident.Source
	jobs   vm.Policy
	wrap   persistence.Store // stands before store from the next start on; nil: nothing does

	bus    *transport.Embedded
	node   *Node
	router *cluster.Router
	id     hcp.ClusterID
}

const (
	testOrg     = hcp.OrgID("org_1")
	testProject = hcp.ProjectID("prj_1")
)

func newBundle(t *testing.T) *bundle {
	t.Helper()
	dir := t.TempDir()
	b := &bundle{t: t, faults: fault.New(), ids: ident.Random(), jobs: vm.DefaultPolicy()}
	b.jobs.RetryFirst, b.jobs.RetryMax = time.Millisecond, 20*time.Millisecond
	var err error
	b.store, err = sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "hcp.db"), Now: clock.Real().Now, NoSync: true})
	b.must(err)
	t.Cleanup(func() { _ = b.store.Close() })
	b.sealer, err = secrets.OpenKeyFile(filepath.Join(dir, "key"), true)
	b.must(err)
	server, err := sim.NewServer(sim.ServerConfig{})
	b.must(err)
	web := httptest.NewServer(server)
	t.Cleanup(func() { _ = server.Close(); web.Close() })
	b.simURL, b.sim = web.URL, simctl.NewClient(web.URL)
	t.Cleanup(b.sim.Close)
	b.start()
	t.Cleanup(b.stop)
	b.id = hcp.ClusterID(b.ids.New(hcp.KindCluster))
	b.do(hcp.Command{Verb: hcp.VerbClusterPut, Cluster: b.id, Put: &hcp.PutCluster{Cluster: hcp.Cluster{
		ID: b.id, Name: "sim", Driver: "sim", Endpoint: b.simURL}}})
	b.eventually("the cluster has room", func() bool {
		room, err := b.store.ClusterCapacity(context.Background())
		return err == nil && room[b.id].Limit.VCPUs > 0
	})
	return b
}

func (b *bundle) start() {
	b.t.Helper()
	log := slog.New(slog.DiscardHandler)
	var store persistence.Store = b.store
	if b.wrap != nil {
		store = b.wrap
	}
	var err error
	b.bus, err = transport.OpenEmbedded(log)
	b.must(err)
	wakes, err := transport.NewWakes(b.bus)
	b.must(err)
	members, err := cluster.JoinSolo(context.Background(), b.store, clock.Real(), "n1", "test")
	b.must(err)
	clusters := provider.DefaultPolicy()
	clusters.ProbeInterval, clusters.InventoryInterval = 200*time.Millisecond, 200*time.Millisecond
	b.node, err = Start(context.Background(), Deps{
		Store: store, Sealer: b.sealer, Bus: b.bus, Wakes: wakes, Members: members, Clock: clock.Real(), IDs: b.ids,
		Openers: drivers.Openers{"sim": func(ctx context.Context, c drivers.Config) (drivers.Driver, error) {
			d, err := sim.Open(ctx, c)
			if err != nil {
				return nil, err
			}
			return fault.Wrap(d, b.faults), nil
		}},
		Jitter: func(d time.Duration) time.Duration { return d }, Log: log, Metrics: noMetrics{}, Jobs: b.jobs, Cluster: clusters,
		Idle: time.Minute, Scan: 50 * time.Millisecond,
	})
	b.must(err)
	b.router = cluster.NewRouter(b.bus, members, clock.Real(), func(d time.Duration) time.Duration { return d }, log)
}

func (b *bundle) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.node.Stop(ctx); err != nil {
		b.t.Errorf("stop: %v", err)
	}
	b.bus.Close()
}

// restart ends the node and starts another on the same store.
func (b *bundle) restart() { b.stop(); b.start() }

type noMetrics struct{}

func (noMetrics) JobEnded(hcp.JobKind, hcp.JobState, hcp.Code, time.Duration)   {}
func (noMetrics) ProviderCalled(hcp.ClusterID, string, hcp.Code, time.Duration) {}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// ask sends a command and returns the answer, refusals as errors.
func (b *bundle) ask(c hcp.Command) (hcp.Answer, error) {
	if c.Cluster == "" {
		c.Cluster = b.id
	}
	c.Call = hcp.Call{RequestID: hcp.RequestID(b.ids.New(hcp.KindRequest)), Actor: "tester", Action: string(c.Verb), TraceID: "t"}
	a, err := b.router.Do(context.Background(), c)
	if err == nil && a.Fault != nil {
		err = a.Fault.Error()
	}
	return a, err
}

func (b *bundle) do(c hcp.Command) hcp.Answer {
	b.t.Helper()
	a, err := b.ask(c)
	b.must(err)
	return a
}

func (b *bundle) newVM(name string) hcp.VM {
	id := hcp.VMID(b.ids.New(hcp.KindVM))
	return hcp.VM{ID: id, Name: name, Org: testOrg, Project: testProject, Owner: "tester", Region: "r", Zone: "zone_1", Cluster: b.id,
		Image: hcp.ImagePin{ID: "img_1", Name: "tiny", Artefact: "tiny-bios"}, Hostname: hcp.Hostname(name, id),
		Flavor:       hcp.FlavorPin{ID: "flv_1", Name: "tiny", VCPUs: 1, MemoryMiB: 256, DiskGiB: 1},
		ProviderName: hcp.ProviderName(name, id), Desired: hcp.Desired{Power: hcp.PowerRunning}}
}

func (b *bundle) create(name string) hcp.Answer {
	b.t.Helper()
	v := b.newVM(name)
	return b.do(hcp.Command{Verb: hcp.VerbCreate, VM: v.ID, Create: &hcp.CreateVM{VM: v, Claim: v.Flavor.Sizes(), Start: true}})
}

// final waits until the job has ended.
func (b *bundle) final(id hcp.JobID) hcp.Job {
	b.t.Helper()
	var job hcp.Job
	b.eventually(fmt.Sprintf("job %s ends", id), func() bool {
		var err error
		job, err = b.store.GetJob(context.Background(), "", id)
		return err == nil && job.State.Final()
	})
	return job
}

func (b *bundle) vm(id hcp.VMID) hcp.VM {
	b.t.Helper()
	k, err := b.store.GetVM(context.Background(), "", string(id))
	b.must(err)
	return k.VM
}

// machines are the provider ids of objects on the sim that carry a marker of ours.
func (b *bundle) machines() []string {
	b.t.Helper()
	list, err := b.sim.List(context.Background())
	b.must(err)
	var ids []string
	for _, m := range list.Machines {
		if m.Marker != "" {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// balanced asserts what must hold after everything: quota and capacity add up,
// and machines on the sim are exactly those that records hold.
func (b *bundle) balanced() {
	b.t.Helper()
	drift, err := b.store.VerifyQuota(context.Background(), "")
	b.must(err)
	room, err := b.store.VerifyCapacity(context.Background())
	b.must(err)
	if len(drift)+len(room) > 0 {
		b.t.Errorf("books drift: %+v %+v", drift, room)
	}
	rows, err := b.store.ListVMs(context.Background(), persistence.VMFilter{Cluster: b.id, Page: persistence.Page{Limit: 1000}})
	b.must(err)
	var held []string
	for _, k := range rows {
		if k.VM.Ref != nil {
			held = append(held, k.VM.Ref.ID)
		}
	}
	if got := b.machines(); len(got) != len(held) {
		b.t.Errorf("%d machines of ours on the sim %v, %d held by records %v", len(got), got, len(held), held)
	}
}

func (b *bundle) eventually(what string, is func() bool) {
	b.t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for range 4000 {
		if is() {
			return
		}
		<-ticks.C
	}
	b.t.Fatalf("not within 20 s: %s", what)
}

// stepsOf renders a job's steps for messages.
func stepsOf(j hcp.Job) string {
	var s []string
	for _, st := range j.Steps {
		s = append(s, fmt.Sprintf("%s=%s/%d", st.Name, st.State, st.Attempts))
	}
	return string(j.State) + ": " + strings.Join(s, " ")
}
