package provider

import (
	"testing"

	"github.com/lotuscloud/hcp"
)

func TestAProjectWithManyJobsDelaysAnotherByOne(t *testing.T) {
	var q fairQueue
	for range 1000 {
		q.push(Work{Project: "big"})
	}
	q.push(Work{Project: "small", VM: "vm_small"})
	var order []hcp.ProjectID
	for range 3 {
		w, ok := q.pop()
		if !ok {
			t.Fatal("the queue is empty")
		}
		order = append(order, w.Project)
	}
	if order[0] != "big" || order[1] != "small" || order[2] != "big" {
		t.Errorf("order %v", order)
	}
	if n := q.len(); n != 998 {
		t.Errorf("%d left, want 998", n)
	}
}

func TestWithinAProjectItIsFirstComeFirstServed(t *testing.T) {
	var q fairQueue
	for _, id := range []hcp.VMID{"a", "b", "c"} {
		q.push(Work{Project: "p", VM: id})
	}
	for _, want := range []hcp.VMID{"a", "b", "c"} {
		if w, ok := q.pop(); !ok || w.VM != want {
			t.Errorf("got %s, want %s", w.VM, want)
		}
	}
	if _, ok := q.pop(); ok {
		t.Error("something is left")
	}
}

func TestOnlyAProviderThatIsAwayTripsTheBreaker(t *testing.T) {
	away := func(code hcp.Code, reason string) bool { return isAway(hcp.Errorf(code, reason, "x")) }
	if isAway(nil) || away(hcp.CodeProviderUnavailable, "busy") || away(hcp.CodeProviderUnavailable, "cancelled") || away(hcp.CodeNotFound, "") || away(hcp.CodeNoCapacity, "") {
		t.Error("an answer of the provider counts as its absence")
	}
	if !away(hcp.CodeProviderUnavailable, "unreachable") || !away(hcp.CodeProviderUnavailable, "auth_failed") || !away(hcp.CodeProviderTimeout, "") {
		t.Error("absence does not count")
	}
}
