package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/transport"
)

func TestANodeThatComesMovesOnlyItsShare(t *testing.T) {
	three := []string{"a", "b", "c"}
	four := append(three[:3:3], "d")
	count := map[string]int{}
	const n = 4000
	for i := range n {
		id := hcp.ClusterID(fmt.Sprintf("cl_%d", i))
		before, after := Owner(id, three), Owner(id, four)
		count[after]++
		if before != after && after != "d" {
			t.Fatalf("%s moved from %s to %s", id, before, after)
		}
	}
	for node, c := range count {
		if c < n/4*8/10 || c > n/4*12/10 {
			t.Errorf("%s owns %d of %d", node, c, n)
		}
	}
	if Owner("cl", nil) != "" || Owner("cl", []string{"b", "a"}) != Owner("cl", []string{"a", "b"}) {
		t.Error("the owner depends on the order, or is somebody where nobody is")
	}
}

type fixed struct{ self, nodes string }

func (f fixed) Self() Node      { return Node{Name: f.self} }
func (f fixed) Nodes() []string { return []string{f.nodes} }

func newRouter(t *testing.T, m Membership) (*Router, transport.Bus) {
	t.Helper()
	bus, err := transport.OpenEmbedded(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	return NewRouter(bus, m, clock.Real(), func(d time.Duration) time.Duration { return d }, slog.New(slog.DiscardHandler)), bus
}

func TestAMovedOwnerIsAskedAgainWithinTheDeadline(t *testing.T) {
	m := fixed{"n1", "n1"}
	r, bus := newRouter(t, m)
	asked := 0
	stop, err := Serve(bus, m, func(_ hcp.Command, reply func(hcp.Answer)) {
		if asked++; asked < 3 {
			reply(hcp.Answer{Fault: hcp.Errorf(hcp.CodeUnavailable, hcp.ReasonMoved, "elsewhere").Wire()})
			return
		}
		reply(hcp.Answer{Status: 202})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	a, err := r.Do(context.Background(), hcp.Command{Cluster: "cl"})
	if err != nil || a.Status != 202 || asked != 3 {
		t.Errorf("%+v %v after %d asks", a, err, asked)
	}
}

func TestNobodyHomeIsUnavailableWithinTheDeadline(t *testing.T) {
	r, _ := newRouter(t, fixed{"n1", "n2"})
	began := clock.Real().Now()
	_, err := r.Do(context.Background(), hcp.Command{Cluster: "cl", Deadline: began.Add(200 * time.Millisecond)})
	if !hcp.IsCode(err, hcp.CodeUnavailable) {
		t.Errorf("got %v", err)
	}
	if took := clock.Real().Now().Sub(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestANodeThatIsNotTheOwnerSaysMoved(t *testing.T) {
	_, bus := newRouter(t, fixed{"n1", "n1"})
	other := fixed{"n1", "n2"} // n1 believes that n2 is the only node
	stop, err := Serve(bus, other, func(hcp.Command, func(hcp.Answer)) { t.Error("a foreign command was handled") })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r := NewRouter(bus, fixed{"n1", "n1"}, clock.Real(), func(d time.Duration) time.Duration { return d }, slog.New(slog.DiscardHandler))
	if _, err := r.Do(context.Background(), hcp.Command{Cluster: "cl", Deadline: clock.Real().Now().Add(200 * time.Millisecond)}); !hcp.IsCode(err, hcp.CodeUnavailable) {
		t.Errorf("got %v", err)
	}
}
