package fault_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/fault"
)

// spy is a driver that notes which of its methods were reached. Its methods are
// promoted from a nil driver unless written here.
type spy struct {
	drivers.Driver
	reached *[]string
}

func (s spy) note(op string) { *s.reached = append(*s.reached, op) }

func (s spy) Probe(context.Context) (hcp.ClusterInfo, error) {
	s.note("Probe")
	return hcp.ClusterInfo{}, nil
}
func (s spy) Prepare(context.Context, drivers.Token, drivers.Spec, []string) (hcp.ProviderRef, error) {
	s.note("Prepare")
	return hcp.ProviderRef{ID: "1"}, nil
}
func (s spy) Create(context.Context, drivers.Token, hcp.ProviderRef, drivers.Spec) (drivers.Task, error) {
	s.note("Create")
	return drivers.Finished(""), nil
}
func (s spy) Configure(context.Context, drivers.Token, hcp.ProviderRef, drivers.Spec) (drivers.Task, bool, error) {
	s.note("Configure")
	return drivers.Finished(""), true, nil
}
func (s spy) Start(context.Context, drivers.Token, hcp.ProviderRef) (drivers.Task, error) {
	s.note("Start")
	return drivers.Finished(""), nil
}
func (s spy) Stop(context.Context, drivers.Token, hcp.ProviderRef, hcp.StopMode) (drivers.Task, error) {
	s.note("Stop")
	return drivers.Finished(""), nil
}
func (s spy) Delete(context.Context, drivers.Token, hcp.ProviderRef) (drivers.Task, error) {
	s.note("Delete")
	return drivers.Finished(""), nil
}
func (s spy) Poll(context.Context, hcp.TaskRef) (drivers.TaskStatus, error) {
	s.note("Poll")
	return drivers.TaskStatus{State: drivers.TaskDone}, nil
}
func (s spy) Get(context.Context, hcp.ProviderRef) (drivers.Observation, error) {
	s.note("Get")
	return drivers.Observation{}, nil
}
func (s spy) Find(context.Context, hcp.VMID) ([]hcp.ProviderRef, error) {
	s.note("Find")
	return nil, nil
}
func (s spy) Inventory(context.Context, func(drivers.Observation) error) ([]string, error) {
	s.note("Inventory")
	return nil, nil
}
func (s spy) Close() error { s.note("Close"); return nil }

type reboots struct{ s spy }

func (r reboots) Reboot(context.Context, drivers.Token, hcp.ProviderRef) (drivers.Task, error) {
	r.s.note("Reboot")
	return drivers.Finished(""), nil
}

type watches struct{ s spy }

func (w watches) Watch(context.Context, func(hcp.VMID)) error { w.s.note("Watch"); return nil }

type imports struct{ s spy }

func (i imports) ImportImage(context.Context, string, string, int64, io.Reader) (string, error) {
	i.s.note("ImportImage")
	return "a", nil
}

// inners is a driver for every set of optional interfaces.
func inners(s spy) map[string]drivers.Driver {
	r, w, m := reboots{s}, watches{s}, imports{s}
	return map[string]drivers.Driver{
		"none": s,
		"reboot": struct {
			spy
			reboots
		}{s, r},
		"watch": struct {
			spy
			watches
		}{s, w},
		"import": struct {
			spy
			imports
		}{s, m},
		"reboot watch": struct {
			spy
			reboots
			watches
		}{s, r, w},
		"reboot import": struct {
			spy
			reboots
			imports
		}{s, r, m},
		"watch import": struct {
			spy
			watches
			imports
		}{s, w, m},
		"all": struct {
			spy
			reboots
			watches
			imports
		}{s, r, w, m},
	}
}

func TestWrapHasExactlyTheOptionalInterfacesOfTheDriver(t *testing.T) {
	if n := len(drivers.Optional()); n != 3 {
		t.Fatalf("drivers.Optional has %d entries; Wrap and this test know 3: add the new one to both", n)
	}
	var reached []string
	for name, inner := range inners(spy{reached: &reached}) {
		wrapped := fault.Wrap(inner, fault.New())
		for c, has := range drivers.Optional() {
			if has(wrapped) != has(inner) {
				t.Errorf("%s: the driver has %s: %v, wrapped: %v", name, c, has(inner), has(wrapped))
			}
		}
	}
	all := inners(spy{reached: &reached})["all"]
	for c, has := range drivers.Optional() {
		if !has(all) {
			t.Errorf("the test driver lacks the interface of %s", c)
		}
	}
}

// TestEveryMethodIsForwardedAndFails calls each exported method by reflection,
// so that a method added to the contract cannot be forgotten.
func TestEveryMethodIsForwardedAndFails(t *testing.T) {
	boom := errors.New("boom")
	var reached []string
	inner := inners(spy{reached: &reached})["all"]
	call := func(d drivers.Driver, method string) error {
		m := reflect.ValueOf(d).MethodByName(method)
		args := make([]reflect.Value, m.Type().NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type().In(i))
		}
		args0(m.Type(), args)
		out := m.Call(args)
		err, _ := out[len(out)-1].Interface().(error)
		return err
	}
	for _, method := range methods() {
		reached = nil
		if err := call(fault.Wrap(inner, fault.New()), method); err != nil || !slices.Equal(reached, []string{method}) {
			t.Errorf("%s reached %v: %v", method, reached, err)
		}
		if method == "Close" {
			continue
		}
		reached = nil
		if err := call(fault.Wrap(inner, fault.New(fault.Rule{Op: method, Err: boom})), method); !errors.Is(err, boom) || len(reached) != 0 {
			t.Errorf("%s with a fault before it gave %v and reached %v", method, err, reached)
		}
		reached = nil
		if err := call(fault.Wrap(inner, fault.New(fault.Rule{Op: method, When: fault.After, Err: boom})), method); !errors.Is(err, boom) || len(reached) != 1 {
			t.Errorf("%s with a fault after it gave %v and reached %v", method, err, reached)
		}
	}
}

// methods are those of Driver and of every optional interface.
func methods() []string {
	set := map[string]bool{}
	for _, typ := range []reflect.Type{reflect.TypeFor[drivers.Driver](), reflect.TypeFor[drivers.Rebooter](),
		reflect.TypeFor[drivers.Watcher](), reflect.TypeFor[drivers.ImageImporter]()} {
		for i := range typ.NumMethod() {
			set[typ.Method(i).Name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func args0(m reflect.Type, args []reflect.Value) {
	if len(args) > 0 && m.In(0) == reflect.TypeFor[context.Context]() {
		args[0] = reflect.ValueOf(context.Background())
	}
}

func TestNthCountsCallsOfItsOwnMethod(t *testing.T) {
	boom := errors.New("boom")
	var reached []string
	faults := fault.New(fault.Rule{Op: "Get", Nth: 2, Err: boom})
	d := fault.Wrap(spy{reached: &reached}, faults)
	var got []bool
	for range 3 {
		_, _ = d.Find(context.Background(), "")
		_, err := d.Get(context.Background(), hcp.ProviderRef{})
		got = append(got, err != nil)
	}
	if !slices.Equal(got, []bool{false, true, false}) || faults.Calls("Get") != 3 {
		t.Errorf("the calls failed as %v, want only the second; counted %d", got, faults.Calls("Get"))
	}
}
