package provider

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func (a *Actor) onWork(w Work) {
	if a.cluster.ID == "" || a.cluster.Deleted {
		go w.Refused(hcp.Errorf(hcp.CodeProviderUnavailable, "no_cluster", "the VM's cluster is not registered any more"))
		return
	}
	if a.queue.len() >= a.deps.Policy.Queue {
		go w.Refused(hcp.Errorf(hcp.CodeProviderUnavailable, "busy", "too much work waits for the hypervisor"))
		return
	}
	a.queue.push(w)
	a.dispatch()
}

// dispatch starts queued work while the caps and the breaker allow it.
func (a *Actor) dispatch() {
	for a.claimed && a.running < a.concurrency() {
		w, ok := a.queue.pop()
		if !ok {
			return
		}
		if a.driver == nil {
			go w.Refused(a.notOpen())
			continue
		}
		settle, err := a.breaker.Allow()
		if err != nil {
			go w.Refused(hcp.Errorf(hcp.CodeProviderUnavailable, "breaker_open", "the hypervisor does not answer; HCP waits before it tries again").
				WithCause(a.lastTrouble()))
			continue
		}
		a.run(w, settle)
	}
}

func (a *Actor) lastTrouble() error {
	if a.reach.Reason == "" {
		return nil
	}
	return hcp.Errorf(hcp.CodeProviderUnavailable, a.reach.Reason, "the last probe failed")
}

func (a *Actor) notOpen() *hcp.Error {
	if a.openErr != nil {
		return hcp.Errorf(hcp.CodeProviderUnavailable, "not_open", "the hypervisor cannot be used as it is configured").WithCause(a.openErr)
	}
	return gone()
}

func (a *Actor) run(w Work, settle func(error)) {
	a.running++
	if w.Mutates {
		a.mutating[w.VM]++
	}
	s := a.session()
	go func() {
		var err error
		done := false
		defer func() {
			// A worker that panics must still give its place back; the panic itself goes on.
			if !done {
				a.self.Tell(worked{w.VM, w.Mutates, hcp.Errorf(hcp.CodeInternal, "worker_failed", "a worker failed"), settle})
			}
		}()
		err = w.Do(context.Background(), s)
		done = true
		a.self.Tell(worked{w.VM, w.Mutates, err, settle})
	}()
}

func (a *Actor) session() Session {
	s := Session{Driver: a.driver, ClusterEpoch: a.epoch, CallTimeout: a.deps.Policy.CallTimeout,
		Report: func(o drivers.Observation) { a.self.Tell(reported{o}) }}
	if a.cluster.Info != nil {
		s.Info = *a.cluster.Info
	}
	return s
}

func (a *Actor) onWorked(m worked) {
	a.running--
	m.settle(m.err)
	if m.mutated {
		a.moment++
		a.mutated[m.vm] = mutation{a.moment, a.deps.Clock.Now()}
		if a.mutating[m.vm]--; a.mutating[m.vm] <= 0 {
			delete(a.mutating, m.vm)
		}
	}
	if isAway(m.err) && a.reach.Reachable && !a.isProbing {
		a.probe(nil) // ask at once whether the provider is away, or only this call failed
	}
	a.dispatch()
}

func (a *Actor) onUse(m Use) {
	if a.driver == nil {
		go m.Do(Session{}, a.notOpen())
		return
	}
	go m.Do(a.session(), nil)
}

// openDriver makes the driver from the record and its sealed credentials.
func (a *Actor) openDriver() {
	a.closeDriver()
	driver, err := a.open(a.cluster, nil)
	if err != nil {
		old := a.openErr
		a.driver, a.openErr = nil, hcp.AsError(err)
		if old == nil || old.Error() != a.openErr.Error() { // it is tried again at every probe
			a.log.Error("the driver could not be opened", "driver", a.cluster.Driver, "err", err, "fields", a.openErr.Fields)
		}
		return
	}
	a.driver, a.openErr = driver, nil
	a.watch()
}

// open makes a driver of a record; without credentials it takes those stored.
// Openers dial nothing: it is quick.
func (a *Actor) open(record hcp.Cluster, sealed hcp.Sealed) (drivers.Driver, error) {
	open, ok := a.deps.Openers[record.Driver]
	if !ok {
		return nil, hcp.Errorf(hcp.CodeInvalidRequest, "unknown_driver", "there is no driver %q in this build", record.Driver)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if sealed == nil {
		var err error
		if sealed, err = a.deps.Store.Secret(ctx, hcp.CredentialContext(a.id)); err != nil && !hcp.IsCode(err, hcp.CodeNotFound) {
			return nil, err
		}
	}
	var credentials []byte
	if len(sealed) > 0 {
		var err error
		if credentials, err = a.deps.Sealer.Open(sealed, hcp.CredentialContext(a.id)); err != nil {
			return nil, err
		}
	}
	options := maps.Clone(record.Options)
	delete(options, optionConcurrency)
	return open(ctx, drivers.Config{Cluster: a.id, Endpoint: record.Endpoint, Options: options,
		Credentials: credentials, CallTimeout: a.deps.Policy.CallTimeout, Now: a.deps.Clock.Now, Log: a.log})
}

// judgeRecord refuses what no driver can be made of, before it is stored: a cluster
// that works must not be lost to a slip in an option.
func (a *Actor) judgeRecord(record hcp.Cluster, sealed hcp.Sealed) error {
	if v, ok := record.Options[optionConcurrency]; ok {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > maxConcurrency {
			e := hcp.Errorf(hcp.CodeInvalidRequest, "invalid_option", "an option of the cluster is not valid")
			e.Fields = []hcp.FieldError{{Pointer: "/options/" + optionConcurrency, Reason: "invalid_option", Detail: "it is a number from 1 to 1000"}}
			return e
		}
	}
	d, err := a.open(record, sealed)
	if err == nil {
		return d.Close()
	}
	if hcp.IsCode(err, hcp.CodeInvalidRequest) {
		return err
	}
	return nil // trouble of ours; opening it again will tell
}

func (a *Actor) closeDriver() {
	if a.watchEnds != nil {
		a.watchEnds()
		a.watchEnds = nil
	}
	if a.driver == nil {
		return
	}
	d := a.driver
	a.driver = nil
	go func() { _ = d.Close() }()
}

// watch listens for hints where the driver has them; each makes a look.
func (a *Actor) watch() {
	w, ok := a.driver.(drivers.Watcher)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.watchEnds = cancel
	go func() {
		for ctx.Err() == nil {
			err := w.Watch(ctx, func(vm hcp.VMID) { a.self.Tell(Look{vm}) })
			if ctx.Err() != nil {
				return
			}
			a.log.Debug("the watch ended and begins again", "err", err)
			again := make(chan struct{})
			a.deps.Clock.AfterFunc(time.Second, func() { close(again) })
			select {
			case <-again:
			case <-ctx.Done():
			}
		}
	}()
}
