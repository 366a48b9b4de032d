package hcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
)

const vmID = hcp.VMID("vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071")

func TestIDsAreParsedStrictly(t *testing.T) {
	for s, want := range map[string]bool{
		string(vmID):                           true,
		"vm_0193a5b2c4d87e0f9a1b2c3d4e5f607":   false, // a digit short
		"vm_0193A5b2c4d87e0f9a1b2c3d4e5f6071":  false, // upper case
		"vm_0193a5b2c4d84e0f9a1b2c3d4e5f6071":  false, // version 4
		"xx_0193a5b2c4d87e0f9a1b2c3d4e5f6071":  false,
		"0193a5b2c4d87e0f9a1b2c3d4e5f6071":     false,
		"vm_":                                  false,
		" vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071": false,
	} {
		if _, _, ok := hcp.ParseID(s); ok != want {
			t.Errorf("ParseID(%q) = %v", s, ok)
		}
	}
	if got := vmID.UUID(); got != "0193a5b2-c4d8-7e0f-9a1b-2c3d4e5f6071" {
		t.Errorf("UUID %s", got)
	}
	if back, ok := hcp.VMIDFromUUID(strings.ToUpper(vmID.UUID())); !ok || back != vmID {
		t.Errorf("back from the UUID: %s", back)
	}
}

func TestLRNsRoundTripAndRefuseRubbish(t *testing.T) {
	s := hcp.LRNOfVM("eu", "prj_0193a5b2c4d87e0f9a1b2c3d4e5f6071", vmID)
	l, err := hcp.ParseLRN(s)
	if err != nil || l.String() != s || l.ID != string(vmID) {
		t.Fatalf("%v, %v", l, err)
	}
	for _, bad := range []string{"lrn:", "lrn:lotuscloud:compute:eu", s + "x", strings.Replace(s, "vm/", "job/", 1), strings.Replace(s, "prj_", "abc_", 1), "lrn:other:compute:::vm/" + string(vmID)} {
		if _, err := hcp.ParseLRN(bad); !hcp.IsCode(err, hcp.CodeInvalidRequest) {
			t.Errorf("ParseLRN(%q): %v", bad, err)
		}
	}
}

func TestNamesNeverReadAsPathsIDsOrControls(t *testing.T) {
	good := []string{"web-1", "Büro Süd", "データベース", "a", strings.Repeat("ä", 128), "web_1.prod", "vm_short"}
	bad := []string{"", ".", "..", "a/b", `a\b`, "a%2Fb", "a\x00b", "a\nb", "a\u202eb", " a", "a ", strings.Repeat("a", 129), string(vmID),
		strings.ToUpper(string(vmID)), "lrn:x", "a\xff"}
	for _, s := range good {
		if err := hcp.CheckName(s); err != nil {
			t.Errorf("%q is refused: %v", s, err)
		}
	}
	for _, s := range bad {
		if err := hcp.CheckName(s); !hcp.IsCode(err, hcp.CodeInvalidRequest) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestHostnamesFollowRFC1123(t *testing.T) {
	for name, want := range map[string]string{"web_1.prod": "web-1-prod", "Web 1": "web-1", "--a--": "a", "データ": "vm-4e5f6071",
		strings.Repeat("x", 80): strings.Repeat("x", 63), "ä1": "1"} {
		if got := hcp.Hostname(name, vmID); got != want {
			t.Errorf("Hostname(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestEveryLifecyclePairIsListedOrAConflict(t *testing.T) {
	reached := map[hcp.Lifecycle]bool{hcp.LifecycleCreating: true}
	for _, from := range hcp.Lifecycles() {
		leaves := false
		for _, on := range hcp.Triggers() {
			to, err := from.Next(on)
			if err != nil {
				if !hcp.IsCode(err, hcp.CodeConflict) || to != from {
					t.Errorf("%s on %s: %v", from, on, err)
				}
				continue
			}
			reached[to] = true
			leaves = leaves || to != from
		}
		if final := from == hcp.LifecycleDeleted; leaves == final {
			t.Errorf("%s: leaves %v, final %v", from, leaves, final)
		}
	}
	for _, l := range hcp.Lifecycles() {
		if !reached[l] {
			t.Errorf("%s is never reached", l)
		}
	}
}

func TestEveryStateIsInTheList(t *testing.T) {
	powers := []hcp.Power{hcp.PowerRunning, hcp.PowerStopped, hcp.PowerPaused, hcp.PowerSuspended, hcp.PowerUnknown}
	seen := map[hcp.State]bool{}
	for _, l := range hcp.Lifecycles() {
		for _, p := range powers {
			for _, a := range append(hcp.JobKinds(), "") {
				s := hcp.DeriveState(l, p, a)
				seen[s] = true
				if !slices.Contains(hcp.States(), s) {
					t.Errorf("%s/%s/%s gives the unlisted %q", l, p, a, s)
				}
			}
		}
	}
	for _, s := range hcp.States() {
		if !seen[s] {
			t.Errorf("%s is never shown", s)
		}
	}
}

func TestTheCatalogueIsComplete(t *testing.T) {
	seen := map[hcp.Code]bool{}
	for _, e := range hcp.Catalogue() {
		if seen[e.Code] || e.Title == "" || e.Hint == "" || e.Exit == 0 || e.Audience == "" {
			t.Errorf("entry %+v", e)
		}
		seen[e.Code] = true
	}
	if hcp.Code("NONSENSE").Entry().Code != hcp.CodeInternal {
		t.Error("an unknown code does not read as INTERNAL_ERROR")
	}
}

func TestForeignErrorsNeverShow(t *testing.T) {
	e := hcp.AsError(fmt.Errorf("dial 10.0.0.7: %w", errors.New("password=hunter2")))
	b, err := json.Marshal(e.Fault())
	if err != nil || e.Code != hcp.CodeInternal || strings.Contains(string(b), "10.0.0.7") || strings.Contains(string(b), "hunter2") {
		t.Errorf("%s %v", b, err)
	}
	wrapped := fmt.Errorf("step create: %w", hcp.NotFound("VM"))
	if !hcp.IsCode(wrapped, hcp.CodeNotFound) {
		t.Error("a wrapped error loses its code")
	}
	back := hcp.Errorf(hcp.CodeConflict, "r", "m").WithCause(errors.New("c")).WithDetail("k", "v").Wire().Error()
	if back.Code != hcp.CodeConflict || back.Reason != "r" || back.Err.Error() != "c" || back.Details["k"] != "v" {
		t.Errorf("over the wire: %+v", back)
	}
}

func TestSealedNeverPrints(t *testing.T) {
	s := hcp.Sealed("secret")
	for _, out := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
		if strings.Contains(out, "secret") {
			t.Errorf("it prints %q", out)
		}
	}
}

func TestUnlimitedIsAWord(t *testing.T) {
	for in, want := range map[string]hcp.Limit{`"unlimited"`: hcp.NoLimit(), "0": hcp.LimitOf(0), "7": hcp.LimitOf(7)} {
		var l hcp.Limit
		if err := json.Unmarshal([]byte(in), &l); err != nil || l != want {
			t.Errorf("%s: %v %v", in, l, err)
		}
		if b, _ := json.Marshal(l); string(b) != in {
			t.Errorf("%s comes back as %s", in, b)
		}
	}
	for _, bad := range []string{"null", "-1", `"7"`, "1.5", "true"} {
		var l hcp.Limit
		if json.Unmarshal([]byte(bad), &l) == nil {
			t.Errorf("%s is taken as %v", bad, l)
		}
	}
	if hcp.LimitOf(0).Allows(0, 1) || !hcp.NoLimit().Allows(1<<60, 1) {
		t.Error("0 must allow nothing, unlimited everything")
	}
}

func TestAnUnreachableProviderMakesPowerUnknownNeverStopped(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	k := hcp.Known{VM: hcp.VM{Lifecycle: hcp.LifecycleActive, Power: hcp.PowerRunning, PowerAt: at, Ref: &hcp.ProviderRef{ID: "1"}},
		Reachability: &hcp.Reachability{Reachable: false}}
	v := k.View()
	if v.Power != hcp.PowerUnknown || v.State != hcp.StateUnknown || v.LastSeen == nil || v.LastSeen.Power != hcp.PowerRunning || !v.LastSeen.At.Equal(at) {
		t.Errorf("%s %s %+v", v.Power, v.State, v.LastSeen)
	}
}

func TestPlacementRanksAndSaysWhyNot(t *testing.T) {
	img := hcp.Image{Artefacts: map[hcp.ClusterID]string{"a": "x", "b": "x", "c": "x", "d": "x"}}
	room := hcp.Sizes{VCPUs: 8, MemoryMiB: 8192, DiskGiB: 100}
	small := hcp.Sizes{VCPUs: 1, MemoryMiB: 512, DiskGiB: 1}
	ranked, rejected := hcp.Place(hcp.PlaceRequest{Sizes: small, Image: img, Requires: []hcp.Capability{hcp.CapUEFI}}, []hcp.Candidate{
		{Cluster: "a", Reachable: true, Limit: room, Claimed: hcp.Sizes{MemoryMiB: 4096}, Capabilities: hcp.Capabilities{hcp.CapUEFI: {Supported: true}}},
		{Cluster: "b", Reachable: true, Limit: room, Capabilities: hcp.Capabilities{hcp.CapUEFI: {Supported: true}}},
		{Cluster: "c", Reachable: true, Limit: room, Capabilities: hcp.Capabilities{}},
		{Cluster: "d", Maintenance: true},
		{Cluster: "e", Reachable: true},
		{Cluster: "a", Reachable: false, Limit: room, Capabilities: hcp.Capabilities{hcp.CapUEFI: {Supported: true}}},
	})
	if len(ranked) != 2 || ranked[0].Cluster != "b" {
		t.Errorf("ranked %+v", ranked)
	}
	reasons := []string{}
	for _, r := range rejected {
		reasons = append(reasons, r.Reason)
	}
	if want := []string{"capability", "maintenance", "no_artefact", "unreachable"}; !slices.Equal(reasons, want) {
		t.Errorf("rejected for %v, want %v", reasons, want)
	}
	if e := hcp.PlaceRefusal([]hcp.Rejection{{Reason: "capability"}}); e.Code != hcp.CodeFeatureNotSupported {
		t.Errorf("a zone that cannot: %v", e)
	}
	if e := hcp.PlaceRefusal([]hcp.Rejection{{Reason: "unreachable"}, {Reason: "unreachable"}}); e.Reason != "unreachable" {
		t.Errorf("a zone that is away: %v", e)
	}
	if e := hcp.PlaceRefusal(rejected); e.Code != hcp.CodeNoCapacity || e.Reason != "no_room" {
		t.Errorf("a zone that is full: %v", e)
	}
}
