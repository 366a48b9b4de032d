package load

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/flushrate"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

func now() time.Time { return clock.Real().Now() }

// TestBench is `make bench`; it takes two to three minutes and runs only when asked.
func TestBench(t *testing.T) {
	if os.Getenv("HCP_BENCH") != "1" {
		t.Skip("a benchmark, not a test: run it with make bench")
	}
	single, grouped := machine(t)
	w := start(t)
	fmt.Printf("\n%-7s %7s %6s %11s %8s %8s %8s %8s %11s %8s %8s\n", "op", "clients", "n", "rate", "accept50", "accept99", "done50", "done99",
		"hcpd CPU/op", "flush/op", "commit/op")
	var rate64 float64
	for _, load := range []struct{ clients, n int }{{1, 200}, {16, 1000}, {64, 2000}} {
		ids := make([]string, load.n)
		run := fmt.Sprintf("%d-%d", load.clients, now().UnixNano())
		f := measure(t, w, "create", load.clients, load.n, func(c *caller, i int) (accept, done time.Duration, err error) {
			name := fmt.Sprintf("b-%s-%d", run, i)
			ids[i], accept, done, err = c.verb(http.MethodPost, "/vms", name, `{"name":"`+name+`","image":"tiny","flavor":"tiny","zone":"local"}`)
			return accept, done, err
		})
		if t.Failed() {
			return
		}
		switch load.clients {
		case 16:
			reads(t, w, ids)
			fmt.Printf("resident at %d VMs: %.0f MiB\n", load.n, w.resident(t))
		case 64:
			rate64 = f.rate
		}
		for _, verb := range []struct{ name, method, suffix string }{
			{"stop", http.MethodPost, "/stop"}, {"start", http.MethodPost, "/start"}, {"delete", http.MethodDelete, ""}} {
			measure(t, w, verb.name, load.clients, load.n, func(c *caller, i int) (accept, done time.Duration, err error) {
				_, accept, done, err = c.verb(verb.method, "/vms/"+ids[i]+verb.suffix, "", "")
				return accept, done, err
			})
		}
	}
	fmt.Printf("\naims of this release: create >= 500/s at 64 clients, <= 4 ms CPU per create, accept p50 <= 4 ms at 1 client\n")
	fmt.Printf("this run: create %.0f/s; machine: %.0f flushes/s single, %.0f/s grouped by 16\n", rate64, single, grouped)
}

// machine prints what the disk and the bare store can do, in the same run.
func machine(t *testing.T) (single, grouped float64) {
	t.Helper()
	var err error
	if single, err = flushrate.Single(t.TempDir(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if grouped, err = flushrate.Grouped(t.TempDir(), 16, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("machine: %.0f flushes/s single, %.0f appends/s grouped by 16 writers\n", single, grouped)
	for _, writers := range []int{1, 16, 64} {
		fmt.Printf("store, bare create commits, %2d writers: %.0f/s\n", writers, bareCommits(t, writers, 2*time.Second))
	}
	return single, grouped
}

func bareCommits(t *testing.T, writers int, d time.Duration) float64 {
	t.Helper()
	store, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(t.TempDir(), "bare.db"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ids := ident.Random()
	began := now()
	until := began.Add(d)
	var mu sync.Mutex
	total := 0
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			n := 0
			for now().Before(until) {
				vm := hcp.VM{ID: hcp.VMID(ids.New(hcp.KindVM)), Org: "org", Project: "prj", Owner: "o", Cluster: "cl", CreatedAt: now(),
					Lifecycle: hcp.LifecycleCreating, Power: hcp.PowerStopped}
				vm.Name = string(vm.ID[3:])
				job := hcp.Job{ID: hcp.JobID(ids.New(hcp.KindJob)), VM: vm.ID, Kind: hcp.JobCreate, State: hcp.JobRunning, Project: "prj", Cluster: "cl", CreatedAt: now()}
				c := persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(vm.ID)}, VM: &vm, Jobs: []hcp.Job{job},
					Events: []hcp.Event{{ID: hcp.EventID(ids.New(hcp.KindEvent)), Type: hcp.EventResourceCreated, Time: now(), VM: vm.ID}}}
				if err := store.Commit(context.Background(), c); err != nil {
					t.Error(err)
					return
				}
				n++
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	return float64(total) / now().Sub(began).Seconds()
}

// reads measures list and get at as many VMs as there are.
func reads(t *testing.T, w *world, ids []string) {
	t.Helper()
	c := newCaller(w)
	get := func(path string) time.Duration {
		began := now()
		status, b, err := c.do(http.MethodGet, path, "", "")
		if err != nil || status != http.StatusOK {
			t.Fatalf("GET %s: %d %v %s", path, status, err, b)
		}
		return now().Sub(began)
	}
	for _, r := range []struct {
		name, path string
		n          int
	}{{"list of 100", "/vms?page_size=100", 100}, {"list of 1,000", "/vms?page_size=1000", 20}, {"get", "/vms/" + ids[0], 500}} {
		var took []time.Duration
		for range r.n {
			took = append(took, get(r.path))
		}
		fmt.Printf("%-14s at %d VMs: p50 %s, p95 %s\n", r.name, len(ids), ms(took, .5), ms(took, .95))
	}
}
