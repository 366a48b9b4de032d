package fault_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/fault"
	"github.com/lotuscloud/hcp/persistence/sqlite"
	"github.com/lotuscloud/hcp/persistence/storetest"
)

func TestWithoutRulesTheDecoratorIsTransparent(t *testing.T) {
	storetest.Run(t, func(t *testing.T) persistence.Store { return fault.Wrap(open(t)) })
}

func open(t *testing.T) persistence.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "hcp.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestEveryMethodWithAContextStandsUnderItsRules(t *testing.T) {
	// A method that the decorator forgets to wrap would go through unseen.
	contract := reflect.TypeFor[persistence.Store]()
	want := errors.New("struck")
	for i := range contract.NumMethod() {
		m := contract.Method(i)
		if m.Type.NumIn() == 0 || m.Type.In(0) != reflect.TypeFor[context.Context]() {
			continue
		}
		f := fault.Wrap(open(t), fault.Rule{Method: m.Name, Err: want})
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < m.Type.NumIn(); j++ {
			args = append(args, reflect.Zero(m.Type.In(j)))
		}
		out := reflect.ValueOf(f).MethodByName(m.Name).Call(args)
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, want) || f.Calls(m.Name) != 1 {
			t.Errorf("%s is not wrapped: %v", m.Name, err)
		}
	}
}

func insert(id hcp.VMID) persistence.Commit {
	return persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(id)}, VM: &hcp.VM{ID: id, Name: string(id)}}
}

func TestALostAnswerLeavesTheEffectAndARefusalLeavesNone(t *testing.T) {
	ctx := t.Context()
	f := fault.Wrap(open(t),
		fault.Rule{Method: "Commit", Nth: 1, When: fault.Before, Err: persistence.ErrUnknownOutcome},
		fault.Rule{Method: "Commit", Nth: 2, When: fault.After, Err: persistence.ErrUnknownOutcome})
	submit := func(c persistence.Commit) error {
		done := make(chan error, 1)
		f.Submit(c, func(err error) { done <- err })
		return <-done
	}
	if err := f.Commit(ctx, insert("vm_a")); !errors.Is(err, persistence.ErrUnknownOutcome) {
		t.Errorf("first: %v", err)
	}
	if err := submit(insert("vm_b")); !errors.Is(err, persistence.ErrUnknownOutcome) {
		t.Errorf("second: %v", err)
	}
	if err := submit(insert("vm_c")); err != nil {
		t.Errorf("third: %v", err)
	}
	for id, there := range map[hcp.VMID]bool{"vm_a": false, "vm_b": true, "vm_c": true} {
		if _, err := f.LoadVM(ctx, id); (err == nil) != there {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestARuleStrikesTheCallsItNames(t *testing.T) {
	ctx := t.Context()
	struck := errors.New("struck")
	f := fault.Wrap(open(t),
		fault.Rule{Method: "Generation", Nth: 2, Times: 2, Err: struck},
		fault.Rule{Method: "Commit", Match: func(c persistence.Commit) bool { return c.Actor.ID == "vm_b" }, Err: struck})
	for i, want := range []bool{false, true, true, false} {
		if _, err := f.Generation(ctx); errors.Is(err, struck) != want {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if err := f.Commit(ctx, insert("vm_a")); err != nil {
		t.Errorf("a commit that does not match: %v", err)
	}
	if err := f.Commit(ctx, insert("vm_b")); !errors.Is(err, struck) {
		t.Errorf("a commit that matches: %v", err)
	}
	f.Clear()
	if err := f.Commit(ctx, insert("vm_b")); err != nil {
		t.Errorf("after Clear: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a rule for no method was taken")
		}
	}()
	f.Add(fault.Rule{Method: "Comit"})
}

func TestAHookHoldsTheCall(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	f := fault.Wrap(open(t), fault.Rule{Method: "Commit", Hook: func(context.Context) { close(entered); <-release }})
	done := make(chan error, 1)
	f.Submit(insert("vm_a"), func(err error) { done <- err })
	<-entered
	if _, err := f.LoadVM(t.Context(), "vm_a"); !hcp.IsCode(err, hcp.CodeNotFound) {
		t.Errorf("the commit was not held: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
