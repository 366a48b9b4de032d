package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("HCPTEST_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HCPTEST_SEED=%d repeats this run", s)
	return s
}

// victim is one VM on its way through create, stop, start and delete.
type victim struct {
	w     *harness.World
	zone  func(map[string]any)
	image func(map[string]any)
	name  string
	id    hcp.VMID
	bound time.Duration // for a job, restart included

	inside int // kills that hit a job between its acceptance and its end
}

// A kill between any two instructions of create, stop, start or delete: after the
// restart the same call with the same key finds or makes one job, it ends, and
// the hypervisor has one machine or none. 50 kills.
func TestKillsOnSim(t *testing.T) {
	if testing.Short() {
		t.Skip("50 restarts take a minute")
	}
	random := rand.New(rand.NewPCG(seed(t), 1))
	w := harness.Start(t, harness.Options{})
	for _, op := range []simapi.Op{simapi.OpClone, simapi.OpConfigure, simapi.OpPowerOn, simapi.OpPowerOff, simapi.OpShutdown, simapi.OpDelete} {
		if err := w.Sim.Delay(t.Context(), op, 40*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	kills, inside := 0, 0
	for i := 0; kills < 52; i++ { // 13 lives of four verbs
		v := &victim{w: w, name: fmt.Sprintf("web-%d", i), bound: 60 * time.Second,
			zone: harness.With("zone", "local"), image: harness.With("image", "tiny")}
		v.life(t, random, 200*time.Millisecond)
		kills, inside = kills+4, inside+v.inside
	}
	t.Logf("%d kills, %d of them between the acceptance and the end of a job", kills, inside)
	if inside == 0 {
		t.Fatal("no kill hit a job: the moments are wrong")
	}
}

// life kills hcpd once in each of the four verbs.
func (v *victim) life(t *testing.T, random *rand.Rand, span time.Duration) {
	t.Helper()
	for _, verb := range []string{"create", "stop", "start", "delete"} {
		offset := time.Duration(random.Int64N(int64(span)))
		what := fmt.Sprintf("%s of %s killed after %v", verb, v.name, offset)
		cut := make(chan harness.Response, 1)
		go func() { cut <- v.call(verb) }()
		harness.Pause(offset)
		v.w.Kill()
		killed := time.Now()
		before := <-cut
		v.w.Restart()
		again := v.call(verb)
		if before.Err == nil && before.Status == http.StatusAccepted {
			// Accepted means stored: the job is there, and the same call is that job.
			first, second := harness.Accepted(t, before), again
			v.id = first.ResourceID
			if j := v.ends(t, what, first.JobID); j.FinishedAt.After(killed) {
				v.inside++
			}
			if verb == "create" {
				if r := harness.Accepted(t, second); r.JobID != first.JobID || r.ResourceID != first.ResourceID {
					t.Fatalf("%s: the same key gave job %s, then %s", what, first.JobID, r.JobID)
				}
			}
		}
		if again.Status == http.StatusAccepted {
			a := harness.Accepted(t, again)
			v.id = a.ResourceID
			v.ends(t, what, a.JobID)
		}
		v.rests(t, what, verb, again)
	}
}

func (v *victim) call(verb string) harness.Response {
	key := verb + "-" + v.name
	switch verb {
	case "create":
		return v.w.P.Post("/vms", key, harness.VMSpec(v.name, v.zone, v.image))
	case "delete":
		return v.w.P.Do(v.w.Context(), harness.Request{Method: http.MethodDelete, Path: "/vms/" + string(v.id), Header: map[string]string{"Idempotency-Key": key}})
	case "stop":
		return v.w.P.Post("/vms/"+string(v.id)+"/stop", key, map[string]any{"mode": "force"})
	}
	return v.w.P.Post("/vms/"+string(v.id)+"/"+verb, key, nil)
}

func (v *victim) ends(t *testing.T, what string, id hcp.JobID) hcp.JobView {
	t.Helper()
	j, why := v.w.P.TryEnds(id, v.bound)
	if why != "" || j.State != hcp.JobSucceeded {
		t.Fatalf("%s: %s %s", what, why, harness.DescribeJob(j))
	}
	return j
}

// rests: the VM is where the verb leaves it. A repeated call may find that the
// first one did it all.
func (v *victim) rests(t *testing.T, what, verb string, again harness.Response) {
	t.Helper()
	switch {
	case again.Status == http.StatusAccepted:
	case again.Status == http.StatusConflict && again.Reason() == "already_in_state" && verb != "create":
	case again.Status == http.StatusNotFound && verb == "delete":
	default:
		t.Fatalf("%s: the repeated call: %s", what, again)
	}
	if verb == "delete" {
		v.w.P.Gone(t, v.id, 5*time.Second)
		return
	}
	want := hcp.StateRunning
	if verb == "stop" {
		want = hcp.StateStopped
	}
	harness.Eventually(t, v.bound, what, func() string {
		if vm := v.w.P.VM(t, string(v.id)); vm.State != want {
			return "the VM is " + string(vm.State)
		}
		return ""
	})
}
