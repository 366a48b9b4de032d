package drivertest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func (s *suite) pollUnknown() {
	st, err := s.d.Poll(s.Context(), hcp.TaskRef{ID: "999999999", Op: "create"})
	s.must(err, "poll of a task that never was")
	if st.State != drivers.TaskLost {
		s.Errorf("a task that never was is %q, want lost", st.State)
	}
}

// cutBefore: unknown or surely not done are both honest; done is not.
func (s *suite) cutBefore() {
	s.need(s.Hooks.CutBefore != nil, "hook CutBefore")
	v := s.prepared()
	s.Hooks.CutBefore(s.T, CallCreate)
	err := s.createErr(s.d, v)
	if !hcp.IsCode(err, hcp.CodeOutcomeUnknown) && !hcp.IsCode(err, hcp.CodeProviderUnavailable) {
		s.Fatalf("a create cut before its effect gave %v, want OUTCOME_UNKNOWN or PROVIDER_UNAVAILABLE", err)
	}
	s.absent(v)
	s.create(s.d, v)
	s.one(v)
}

func (s *suite) cutAfter() {
	s.need(s.Hooks.CutAfter != nil, "hook CutAfter")
	v := s.prepared()
	s.Hooks.CutAfter(s.T, CallCreate)
	s.refuse(s.createErr(s.d, v), hcp.CodeOutcomeUnknown, "", "a create cut after its effect")
	if !s.eventually(s.Wait, func() bool { o, err := s.d.Get(s.Context(), v.ref); return err == nil && !o.Locked }) {
		s.Fatal("the machine of a create cut after its effect does not show")
	}
	s.one(v)
	s.create(s.d, v)
	s.one(v)

	s.Hooks.CutAfter(s.T, CallStart)
	_, err := s.d.Start(s.Context(), s.tok(v.id, "start"), v.ref)
	s.refuse(err, hcp.CodeOutcomeUnknown, "", "a start cut after its effect")
	s.power(v, hcp.PowerRunning)

	s.Hooks.CutAfter(s.T, CallStop)
	_, err = s.d.Stop(s.Context(), s.tok(v.id, "stop"), v.ref, hcp.StopForce)
	s.refuse(err, hcp.CodeOutcomeUnknown, "", "a stop cut after its effect")
	s.power(v, hcp.PowerStopped)

	s.Hooks.CutAfter(s.T, CallDelete)
	_, err = s.d.Delete(s.Context(), s.tok(v.id, "delete"), v.ref)
	s.refuse(err, hcp.CodeOutcomeUnknown, "", "a delete cut after its effect")
	s.eventually(s.Wait, func() bool { _, err := s.d.Get(s.Context(), v.ref); return hcp.IsCode(err, hcp.CodeNotFound) })
	s.absent(v)
}

// calls is every method that talks to the provider.
func (s *suite) calls(ctx context.Context, v vm) map[string]error {
	errs := map[string]error{}
	_, errs["probe"] = s.d.Probe(ctx)
	_, errs["create"] = s.d.Create(ctx, s.tok(v.id, "create"), v.ref, v.spec)
	_, errs["start"] = s.d.Start(ctx, s.tok(v.id, "start"), v.ref)
	_, errs["stop"] = s.d.Stop(ctx, s.tok(v.id, "stop"), v.ref, hcp.StopForce)
	_, errs["delete"] = s.d.Delete(ctx, s.tok(v.id, "delete"), v.ref)
	_, errs["get"] = s.d.Get(ctx, v.ref)
	_, errs["find"] = s.d.Find(ctx, v.id)
	_, errs["inventory"] = s.d.Inventory(ctx, func(drivers.Observation) error { return nil })
	return errs
}

func (s *suite) unreachable() {
	s.need(s.Hooks.Down != nil && s.Hooks.Up != nil, "hooks Down and Up")
	v, idle := s.created(), s.prepared()
	fresh := s.open() // has no connection yet
	s.Hooks.Down(s.T)
	up := false
	s.Cleanup(func() {
		if !up {
			s.Hooks.Up(s.T)
		}
	})
	warm := s.d
	for _, d := range []drivers.Driver{warm, fresh} {
		s.d = d
		for what, err := range s.calls(s.Context(), v) {
			// A driver of several hosts may answer an inventory and name them all.
			if err == nil && what == "inventory" || err == nil && what == "probe" {
				continue
			}
			// A warm connection that dies under a request is unknown by right.
			if d == warm && hcp.IsCode(err, hcp.CodeOutcomeUnknown) && mutating(what) {
				continue
			}
			s.refuse(err, hcp.CodeProviderUnavailable, "", what+" of an unreachable provider")
		}
		if _, err := s.d.Get(s.Context(), idle.ref); hcp.IsCode(err, hcp.CodeNotFound) {
			s.Error("get says not found although the provider does not answer")
		}
	}
	s.Hooks.Up(s.T)
	up = true
	s.d = warm
	if !s.eventually(s.Wait, func() bool { _, err := s.d.Get(s.Context(), v.ref); return err == nil }) {
		s.Error("the driver does not come back after the provider did")
	}
	s.one(v)
}

func mutating(what string) bool {
	return what == "create" || what == "start" || what == "stop" || what == "delete"
}

func (s *suite) probe() {
	info, err := s.d.Probe(s.Context())
	s.must(err, "probe")
	if info.Version == "" || len(info.Hosts) == 0 || info.Capabilities == nil {
		s.Fatalf("probe tells too little: %+v", info)
	}
	var sum hcp.Sizes
	for _, h := range info.Hosts {
		if h.Name == "" || !h.Reachable {
			s.Errorf("probe shows host %+v", h)
		}
		if !h.Free.Fits(h.Capacity) {
			s.Errorf("host %s has more free than it has: %+v", h.Name, h)
		}
		sum = sum.Plus(h.Capacity)
	}
	if !info.Capacity.Fits(sum) || info.Capacity.VCPUs <= 0 || info.Capacity.MemoryMiB <= 0 || info.Capacity.DiskGiB <= 0 {
		s.Errorf("capacity is %+v, the hosts have %+v", info.Capacity, sum)
	}
}

func (s *suite) capabilities() {
	info, err := s.d.Probe(s.Context())
	s.must(err, "probe")
	for c, implemented := range drivers.Optional() {
		if info.Capabilities.Has(c) && !implemented(s.d) {
			s.Errorf("capability %s is claimed, its interface is not implemented", c)
		}
		if implemented(s.d) && !info.Capabilities.Has(c) && info.Capabilities[c].Reason == "" {
			s.Errorf("the interface of %s is implemented; the probe must claim it or say why not", c)
		}
	}
	for c, st := range info.Capabilities {
		if st.Supported == (st.Reason != "") {
			s.Errorf("capability %s: supported %v with reason %q; exactly the absent ones have one", c, st.Supported, st.Reason)
		}
	}
}

func (s *suite) cancelled() {
	v := s.created()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for what, err := range s.calls(ctx, v) {
		if err == nil && what != "inventory" {
			s.Errorf("%s with a cancelled context succeeded", what)
		}
	}
	s.one(v)
	if s.Hooks.Slow == nil || s.Hooks.Fast == nil {
		return
	}
	s.Hooks.Slow(s.T)
	s.Cleanup(func() { s.Hooks.Fast(s.T) })
	ctx, cancel = context.WithTimeout(s.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := s.d.Get(ctx, v.ref); done <- err }()
	late := time.NewTimer(3 * time.Second)
	defer late.Stop()
	select {
	case err := <-done:
		s.refuse(err, hcp.CodeProviderTimeout, "", "a read that ran out of time")
	case <-late.C:
		s.Error("the call goes on although its context ended long ago")
	}
}

func (s *suite) safeErrors() {
	v, absent := s.running(), s.prepared()
	thief := s.think()
	thief.ref = v.ref
	unknown := absent
	unknown.spec.Image = "no-such-image-of-hcp"
	errs := s.calls(s.Context(), thief)
	_, errs["get of absent"] = s.d.Get(s.Context(), absent.ref)
	errs["create from unknown image"] = s.createErr(s.d, unknown)
	_, errs["delete of running"] = s.d.Delete(s.Context(), s.tok(v.id, "delete"), v.ref)
	if s.Hooks.Down != nil && s.Hooks.Up != nil {
		s.Hooks.Down(s.T)
		for what, err := range s.calls(s.Context(), v) {
			errs[what+" while down"] = err
		}
		s.Hooks.Up(s.T)
	}
	secrets := append([]string{v.ref.ID, absent.ref.ID}, s.Hooks.Secrets...)
	info, err := s.d.Probe(s.Context())
	s.must(err, "probe")
	for _, h := range info.Hosts {
		secrets = append(secrets, h.Name)
	}
	for what, err := range errs {
		if err == nil {
			continue
		}
		e, ok := errors.AsType[*hcp.Error](err)
		if !ok {
			s.Errorf("%s gave %T, want *hcp.Error: %v", what, err, err)
			continue
		}
		if !e.Code.Known() || e.Reason == "" || e.Message == "" {
			s.Errorf("%s gave code %q, reason %q, message %q", what, e.Code, e.Reason, e.Message)
		}
		if f := e.Fault(); f != nil {
			for _, secret := range secrets {
				if secret != "" && (strings.Contains(f.Message, secret) || strings.Contains(f.Hint, secret)) {
					s.Errorf("%s tells a tenant %q: %s %s", what, secret, f.Message, f.Hint)
				}
			}
		}
	}
}

func (s *suite) secondDriver() {
	v := s.created()
	first := s.d
	s.d = s.open()
	s.one(v)
	s.start(v)
	s.stop(v)
	s.d = first
	s.get(v)
}

func (s *suite) closeTwice() {
	before := 0
	if s.Hooks.Sessions != nil {
		before = s.Hooks.Sessions(s.T)
	}
	d := s.open()
	if _, err := d.Probe(s.Context()); err != nil {
		s.Fatalf("probe: %v", err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			s.Fatalf("close: %v", err)
		}
	}
	if _, err := d.Get(s.Context(), hcp.ProviderRef{ID: "1"}); err == nil || hcp.IsCode(err, hcp.CodeNotFound) {
		s.Errorf("a closed driver answers: %v", err)
	}
	if s.Hooks.Sessions == nil {
		return
	}
	if !s.eventually(s.Wait, func() bool { return s.Hooks.Sessions(s.T) == before }) {
		s.Errorf("%d sessions are open after close, %d were before open", s.Hooks.Sessions(s.T), before)
	}
}
