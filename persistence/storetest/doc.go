// Package storetest is the contract of persistence.Store as tests: one suite for
// every engine, one method per rule, the name is the rule. It may not know an
// engine. A new engine is right when Run passes on it, and on it under the fault
// decorator without rules.
//
// Start reading at Run, then any Test method.
package storetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp/persistence"
)

// suite is the receiver of every rule.
type suite struct {
	open func(t *testing.T) persistence.Store
}

// Run checks every rule, each on a fresh store from open, in parallel. open
// registers the store's Close with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) persistence.Store) {
	t.Helper()
	s := &suite{open: open}
	v := reflect.ValueOf(s)
	ran := 0
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if !strings.HasPrefix(name, "Test") {
			continue
		}
		rule, ok := v.Method(i).Interface().(func(*testing.T))
		if !ok {
			t.Fatalf("%s is not a rule: a rule takes *testing.T", name)
		}
		ran++
		t.Run(strings.TrimPrefix(name, "Test"), func(t *testing.T) {
			t.Parallel()
			rule(t)
		})
	}
	if ran == 0 {
		t.Fatal("the suite has no rule")
	}
}
