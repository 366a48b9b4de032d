package provider

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/persistence"
)

// Messages from outside.
type (
	// Activate makes the actor read its record and begin to govern.
	Activate struct{}
	// Ask is an operator's command; Reply is called exactly once.
	Ask struct {
		Command hcp.Command
		Reply   func(hcp.Answer)
	}
	// Use hands the live driver to a caller outside of jobs: an image upload.
	Use struct {
		Do func(s Session, err *hcp.Error)
	}
	// Look makes the actor read one VM soon: a watcher's hint, or a fresh start.
	Look struct{ VM hcp.VMID }
)

// Messages of its own.
type (
	loaded struct {
		state persistence.ClusterState
		seen  []hcp.Observed
		err   error
	}
	committed struct{ err error }
	worked    struct {
		vm      hcp.VMID
		mutated bool
		err     error
		settle  func(error)
	}
	tick   struct{}
	probed struct {
		info hcp.ClusterInfo
		err  error
	}
	swept      sweep
	reported   struct{ obs drivers.Observation }
	storedRows struct {
		rows []hcp.Observed
		err  error
	}
)

// Policy are the bounds of a cluster's governor.
type Policy struct {
	CallTimeout       time.Duration
	ProbeInterval     time.Duration
	InventoryInterval time.Duration
	// Concurrency is how much work runs at once where the cluster's option
	// "concurrency" says nothing.
	Concurrency int
	Queue       int // work waiting beyond which more is refused as busy
}

// DefaultPolicy is what holds without configuration.
func DefaultPolicy() Policy {
	return Policy{CallTimeout: 30 * time.Second, ProbeInterval: 10 * time.Second, InventoryInterval: 10 * time.Second,
		Concurrency: 8, Queue: 20_000}
}

// VMs is where notices about VMs go.
type VMs interface {
	// Notice tells the VM's actor what a sweep saw; it activates it.
	Notice(vm hcp.VMID, seen *drivers.Observation, missing, residue bool, at time.Time)
	// ClusterUp tells active VM actors that their provider answers again.
	ClusterUp(cluster hcp.ClusterID)
}

// Deps are what every provider actor shares.
type Deps struct {
	Store   persistence.Store
	Openers drivers.Openers
	Sealer  persistence.Sealer
	VMs     VMs
	Clock   clock.Clock
	NewID   func(hcp.IDKind) string
	Log     *slog.Logger
	Policy  Policy
	// Published is told when events were committed.
	Published func()
	// Settled keeps what VM actors ask without a message: the settle time.
	Settled func(hcp.ClusterID, time.Duration)
}

// Actor governs one cluster.
type Actor struct {
	deps *Deps
	self *actors.Self
	log  *slog.Logger
	id   hcp.ClusterID

	isLoaded, isLoading bool
	isClosed            bool
	early               []any // messages that came before the record was read

	cluster    hcp.Cluster
	epoch, seq int64
	claimed    bool
	commits    []pendingCommit // the first is on its way while isSending
	isSending  bool

	driver  drivers.Driver
	openErr *hcp.Error
	breaker *gobreaker.TwoStepCircuitBreaker[any]
	queue   fairQueue
	running int

	reach      hcp.Reachability
	isProbing  bool
	isSweeping bool
	nextProbe  time.Time
	nextSweep  time.Time
	watchEnds  context.CancelFunc
	probeDone  []waiter // who waits for the probe in flight

	// Which observations are fresher than our own calls: an observation counts only
	// when no mutating call on its VM was in flight or ended after its read began.
	moment    int64
	mutating  map[hcp.VMID]int
	mutated   map[hcp.VMID]mutation
	stored    map[hcp.VMID]hcp.Observed // as in the store
	fresh     map[hcp.VMID]hcp.Observed // to be stored
	isStoring bool
	isTicking bool
	limit     *hcp.Sizes // as last stored
	isShut    bool       // it is being unregistered: no room for anybody
}

var _ actors.Behaviour = (*Actor)(nil)

// New makes the behaviour of one activation.
func New(deps *Deps, self *actors.Self) *Actor {
	self.SetBusy(true) // a provider actor is never passivated for idleness
	return &Actor{deps: deps, self: self, id: hcp.ClusterID(self.ID()), log: deps.Log.With("cluster", self.ID()),
		breaker: newBreaker(), mutating: map[hcp.VMID]int{}, mutated: map[hcp.VMID]mutation{},
		stored: map[hcp.VMID]hcp.Observed{}, fresh: map[hcp.VMID]hcp.Observed{}}
}

// breakerTrips is how many failures in a row open the circuit; half-open, one
// piece of work may try each second.
const breakerTrips = 5

func newBreaker() *gobreaker.TwoStepCircuitBreaker[any] {
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests: 1, Timeout: time.Second,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerTrips },
		IsSuccessful: func(err error) bool { return !isAway(err) },
	})
}

// isAway reports whether the error says that the provider itself does not answer.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	e := hcp.AsError(err)
	return e.Code == hcp.CodeProviderTimeout || e.Code == hcp.CodeProviderUnavailable && e.Reason != "busy" && e.Reason != "cancelled"
}

// Receive handles one message.
func (a *Actor) Receive(msg any) {
	if a.isClosed {
		a.turnAway(msg)
		return
	}
	switch m := msg.(type) {
	case loaded:
		a.onLoaded(m)
		return
	case committed:
		a.onCommitted(m)
		return
	}
	if !a.isLoaded {
		a.early = append(a.early, msg)
		a.load()
		return
	}
	switch m := msg.(type) {
	case Activate:
	case Work:
		a.onWork(m)
	case worked:
		a.onWorked(m)
	case Ask:
		a.onAsk(m)
	case Use:
		a.onUse(m)
	case Look:
		a.look(m.VM)
	case tick:
		a.onTick()
	case probed:
		a.onProbed(m)
	case swept:
		a.onSwept(sweep(m))
	case reported:
		a.onReported(m)
	case storedRows:
		a.onStored(m)
	case looked:
		a.onLooked(m)
	case emptied:
		a.onEmptied(m)
	default:
		a.log.Error("an actor got a message it does not know", "message", msg)
	}
}

// Crashed answers whoever waits for a broken activation.
func (a *Actor) Crashed(msg any, _ error) {
	a.closeDriver()
	a.turnAway(msg)
	for w, ok := a.queue.pop(); ok; w, ok = a.queue.pop() {
		go w.Refused(gone())
	}
	for _, m := range a.early {
		a.turnAway(m)
	}
	a.early = nil
	for _, p := range a.commits {
		if p.ask != nil {
			p.ask.Reply(refuse(gone()))
		}
	}
	a.commits = nil
	a.giveUpProbe()
}

// turnAway answers what comes to an activation that has ended, so that nobody
// waits in vain: commands, work, and commands that a worker was busy with.
func (a *Actor) turnAway(msg any) {
	switch m := msg.(type) {
	case emptied:
		m.ask.Reply(refuse(gone()))
	case Work:
		go m.Refused(gone())
	case Ask:
		m.Reply(refuse(gone()))
	case Use:
		go m.Do(Session{}, gone())
	}
}

func gone() *hcp.Error {
	return hcp.Errorf(hcp.CodeProviderUnavailable, "not_governed", "the cluster is not governed here just now")
}

func refuse(err error) hcp.Answer { return hcp.Answer{Fault: hcp.AsError(err).Wire()} }

func (a *Actor) load() {
	if a.isLoading {
		return
	}
	a.isLoading = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		st, err := a.deps.Store.LoadCluster(ctx, string(a.id))
		var seen []hcp.Observed
		if err == nil {
			seen, err = a.deps.Store.ListObserved(ctx, a.id)
		}
		a.self.Tell(loaded{st, seen, err})
	}()
}

func (a *Actor) onLoaded(m loaded) {
	a.isLoading = false
	switch {
	case hcp.IsCode(m.err, hcp.CodeNotFound):
		a.isLoaded = true // a registration may follow
	case m.err != nil:
		a.log.Warn("the cluster could not be read", "err", m.err)
		for _, msg := range a.early {
			a.turnAway(msg)
		}
		a.early = nil
		a.deps.Clock.AfterFunc(time.Second, func() { a.self.Tell(Activate{}) })
		return
	default:
		a.isLoaded = true
		a.cluster, a.epoch, a.seq = m.state.Cluster, m.state.Epoch, m.state.Seq
		for _, o := range m.seen {
			a.stored[o.VM] = o
		}
		if !a.cluster.Deleted {
			// The claim fences every older activation before the first provider call.
			a.commit(persistence.Commit{}, nil, func(err error) {
				if err == nil {
					a.govern()
				}
			})
		}
	}
	early := a.early
	a.early = nil
	for _, msg := range early {
		a.Receive(msg)
	}
}

// govern opens the driver and begins to probe and sweep.
func (a *Actor) govern() {
	a.openDriver()
	if a.cluster.Info != nil {
		a.deps.Settled(a.id, a.cluster.Info.SettleTime)
	}
	a.isTicking = true
	a.onTick()
}

// optionConcurrency is the one option of a cluster that is the governor's own;
// its driver does not see it.
const (
	optionConcurrency = "concurrency"
	maxConcurrency    = 1000
)

// concurrency is how much work may run at once.
func (a *Actor) concurrency() int {
	if n, err := strconv.Atoi(a.cluster.Options[optionConcurrency]); err == nil && n > 0 {
		return min(n, maxConcurrency)
	}
	if a.cluster.Driver == "sim" {
		return 64
	}
	return a.deps.Policy.Concurrency
}

const tickEvery = 250 * time.Millisecond

func (a *Actor) onTick() {
	now := a.deps.Clock.Now()
	if a.isClosed || a.cluster.Deleted {
		a.isTicking = false
		return
	}
	if !a.isProbing && !now.Before(a.nextProbe) {
		a.probe(nil)
	}
	if !a.isSweeping && a.driver != nil && a.reach.Reachable && !now.Before(a.nextSweep) {
		a.sweep()
	}
	a.flush()
	a.dispatch() // what waited for the breaker
	a.deps.Clock.AfterFunc(tickEvery, func() { a.self.Tell(tick{}) })
}
