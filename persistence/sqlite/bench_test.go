package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/flushrate"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

// BenchmarkCommit commits whole creates (VM, job, three events, holds, claim, key,
// audit row) and small turns (head, VM and job), flushed to disk, and prints them
// beside the machine's own flush rates.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []string{"create", "turn"} {
		for _, submitters := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", kind, submitters), func(b *testing.B) { benchCommit(b, kind, submitters) })
		}
	}
}

func benchCommit(b *testing.B, kind string, submitters int) {
	s := open(b, filepath.Join(b.TempDir(), "hcp.db"), false)
	ids := ident.Random()
	limit := hcp.Sizes{VCPUs: 1 << 40, MemoryMiB: 1 << 40, DiskGiB: 1 << 40}
	must(b, s.Commit(b.Context(), persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: "cl_1", Limit: limit}}}))
	turns := make([]persistence.Commit, submitters)
	for i := range turns {
		turns[i] = createCommit(ids)
		must(b, s.Commit(b.Context(), turns[i]))
	}
	before, cpu := s.Stats(), cpuTime(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, submitters)
	b.ResetTimer()
	for i := range submitters {
		go func() { done <- work(s, ids, kind, turns[i], &left) }()
	}
	for range submitters {
		must(b, <-done)
	}
	b.StopTimer()
	after := s.Stats()
	n := float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/n, "cpu-µs/op")
	b.ReportMetric(n/float64(after.Groups-before.Groups), "commits/flush")
}

func work(s *sqlite.Store, ids ident.Source, kind string, turn persistence.Commit, left *atomic.Int64) error {
	for seq := int64(1); left.Add(-1) >= 0; seq++ {
		c := turn
		if kind == "create" {
			c = createCommit(ids)
		} else {
			c.Epoch, c.Seq, c.Holds, c.Claims, c.Key, c.Audit = 1, seq, nil, nil, nil, nil
			c.Events = c.Events[:1]
		}
		if err := s.Commit(context.Background(), c); err != nil {
			return err
		}
	}
	return nil
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func createCommit(ids ident.Source) persistence.Commit {
	at := clock.Real().Now()
	id := hcp.VMID(ids.New(hcp.KindVM))
	v := hcp.VM{ID: id, Name: "vm-" + string(id), Org: "org_0193a5b2c4d87e0f9a1b2c3d4e5f6071", Project: "prj_0193a5b2c4d87e0f9a1b2c3d4e5f6071", Owner: "alice",
		Region: "r1", Zone: "zone_0193a5b2c4d87e0f9a1b2c3d4e5f6071", ZoneName: "local", Cluster: "cl_1", Lifecycle: hcp.LifecycleCreating,
		Power: hcp.PowerUnknown, Activity: hcp.JobCreate, Desired: hcp.Desired{Power: hcp.PowerRunning},
		Image:    hcp.ImagePin{ID: "img_0193a5b2c4d87e0f9a1b2c3d4e5f6071", Name: "debian", Version: "12", SHA256: fmt.Sprintf("%064d", 1), Artefact: "debian-12"},
		Flavor:   hcp.FlavorPin{ID: "flv_0193a5b2c4d87e0f9a1b2c3d4e5f6071", Name: "small", VCPUs: 1, MemoryMiB: 512, DiskGiB: 10},
		Hostname: "vm-1", SSHKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ3v0Q0YfGm0l7e2p1fJm9"}, ProviderName: "vm-1-" + id.Short(), Generation: 1, CreatedAt: at, UpdatedAt: at}
	job := hcp.Job{ID: hcp.JobID(ids.New(hcp.KindJob)), Kind: hcp.JobCreate, State: hcp.JobRunning, VM: id, VMName: v.Name, Region: v.Region, Zone: v.Zone, Cluster: v.Cluster,
		Org: v.Org, Project: v.Project, Owner: v.Owner, Phase: hcp.PhaseForward, Queue: 1, CreatedAt: at, StartedAt: at, Deadline: at.Add(2 * time.Hour),
		Requests: []hcp.Request{{Actor: "alice", Via: "api", RequestID: "req_1", TraceID: "trace", At: at}}, TraceID: "trace"}
	for _, name := range []string{"prepare", "create", "configure", "start", "verify"} {
		job.Steps = append(job.Steps, hcp.Step{Name: name, State: hcp.StepPending, Cancellable: true})
	}
	event := func(typ hcp.EventType) hcp.Event {
		sizes := v.Flavor.Sizes()
		return hcp.Event{ID: hcp.EventID(ids.New(hcp.KindEvent)), Type: typ, Subject: hcp.LRNOfVM(v.Region, v.Project, id), Actor: "alice", Time: at, TraceID: "trace",
			Org: v.Org, Project: v.Project, Owner: v.Owner, VM: id, Job: job.ID, Data: hcp.EventData{Name: v.Name, Zone: "local", Sizes: &sizes, NewState: hcp.StateCreating}}
	}
	body, _ := hcp.AcceptedBody(hcp.Known{VM: v}, job)
	return persistence.Commit{
		Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(id)}, VM: &v, Jobs: []hcp.Job{job}, Wake: map[hcp.JobID]time.Time{job.ID: at},
		Events: []hcp.Event{event(hcp.EventResourceCreated), event(hcp.EventJobQueued), event(hcp.EventJobStarted)},
		Holds:  []persistence.QuotaChange{{VM: id, Subjects: hcp.SubjectsOf(v.Org, v.Project, v.Owner), Amounts: hcp.HoldsOf(v.Flavor)}},
		Claims: []persistence.CapacityChange{{Cluster: v.Cluster, VM: id, Sizes: v.Flavor.Sizes()}},
		Key: &persistence.IdempotencyRecord{IdempotencyKey: hcp.IdempotencyKey{Principal: "alice", Project: v.Project, Method: "POST",
			Path: "/v1/projects/" + string(v.Project) + "/vms", Key: ids.New(hcp.KindCommand), Fingerprint: fmt.Sprintf("%064d", 1)},
			Status: 202, Body: body, VM: id, Job: job.ID, CreatedAt: at, ExpiresAt: at.Add(24 * time.Hour)},
		Audit: []hcp.AuditRecord{{ID: hcp.AuditID(ids.New(hcp.KindAudit)), Kind: hcp.AuditCall, Time: at, Actor: "alice", Scope: hcp.ScopeTenant, Action: "vm.create",
			Org: v.Org, Project: v.Project, Result: "accepted", Status: 202, RequestID: hcp.RequestID(ids.New(hcp.KindRequest)), TraceID: "trace", Method: "POST", Path: "/vms"}},
	}
}

// BenchmarkFlush is what the machine itself can do.
func BenchmarkFlush(b *testing.B) {
	for b.Loop() {
		single, err := flushrate.Single(b.TempDir(), 500*time.Millisecond)
		must(b, err)
		grouped, err := flushrate.Grouped(b.TempDir(), 16, 500*time.Millisecond)
		must(b, err)
		b.ReportMetric(single, "single/s")
		b.ReportMetric(grouped, "grouped16/s")
	}
}
