package drivertest

import (
	"fmt"
	"slices"
	"testing"
)

// rules is the suite: the name is the rule.
var rules = []struct {
	name string
	run  func(*suite)
}{
	{"PrepareHasNoEffect", (*suite).prepareHasNoEffect},
	{"PrepareAvoidsTakenIDs", (*suite).prepareAvoidsTakenIDs},
	{"CreateLeavesTheMarker", (*suite).createLeavesTheMarker},
	{"CreateTwiceWithOneTokenMakesOneMachine", (*suite).createTwice},
	{"CreateUnderTheIDOfAnotherIsRefTaken", (*suite).createTaken},
	{"CreateMakesTheSizesAsked", (*suite).createSizes},
	{"CreateFromUEFIImage", (*suite).createUEFI},
	{"CreateFromUnknownImageMakesNothing", (*suite).createUnknownImage},
	{"ConfigureTwiceIsOne", (*suite).configureTwice},
	{"ConcurrentCreatesAllSucceed", (*suite).concurrentCreates},
	{"FindFindsOurMachine", (*suite).findOurs},
	{"FindOfUnknownIsEmpty", (*suite).findUnknown},
	{"FindWithAHostAwayIsNotEmpty", (*suite).findHostDown},
	{"GetOfAbsentIsNotFound", (*suite).getAbsent},
	{"StartTwiceIsOne", (*suite).startTwice},
	{"StartedMachineShowsItsAddress", (*suite).address},
	{"GracefulStopStops", (*suite).gracefulStop},
	{"ForcedStopStops", (*suite).forcedStop},
	{"StopOfStoppedIsSuccess", (*suite).stopStopped},
	{"StartAfterStopRuns", (*suite).startAgain},
	{"DeleteOfRunningIsRefused", (*suite).deleteRunning},
	{"DeleteRemovesTheMachine", (*suite).deleteRemoves},
	{"DeleteTwiceIsAlreadyAbsent", (*suite).deleteTwice},
	{"TokenOfAnotherVMTouchesNothing", (*suite).foreignToken},
	{"StrangerUnderOurIDIsNeverTouched", (*suite).stranger},
	{"PollOfUnknownTaskIsLost", (*suite).pollUnknown},
	{"InventoryShowsOursAndStrangers", (*suite).inventory},
	{"InventoryNamesUnreachedHosts", (*suite).inventoryUnreached},
	{"InventoryStopsWhenYieldFails", (*suite).inventoryStops},
	{"CutBeforeTheEffectIsToldHonestly", (*suite).cutBefore},
	{"CutAfterTheEffectIsOutcomeUnknown", (*suite).cutAfter},
	{"UnreachableIsProviderUnavailable", (*suite).unreachable},
	{"ProbeDescribesTheCluster", (*suite).probe},
	{"CapabilitiesMatchInterfaces", (*suite).capabilities},
	{"CancelledCallReturnsPromptly", (*suite).cancelled},
	{"ErrorsAreSafeForTenants", (*suite).safeErrors},
	{"SecondDriverSeesTheSameCluster", (*suite).secondDriver},
	{"CloseTwiceEndsSessions", (*suite).closeTwice},
}

// Rules lists the names of all rules, in the order in which they run.
func Rules() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Run runs every rule. Each makes its own machines and removes them.
func Run(t *testing.T, env Env) {
	env.defaults()
	for _, name := range slices.Concat(env.Require, keys(env.Differs)) {
		if name != All && !slices.Contains(Rules(), name) {
			t.Fatalf("there is no rule %q", name)
		}
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if why, ok := env.Differs[r.name]; ok {
				t.Skipf("known difference: %s", why)
			}
			s := &suite{T: t, Env: env, required: slices.Contains(env.Require, r.name) || slices.Contains(env.Require, All)}
			s.d = s.open()
			r.run(s)
		})
	}
}

func keys(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

// need skips a rule whose hook is missing, or fails it when it is required.
func (s *suite) need(have bool, what string) {
	s.Helper()
	if have {
		return
	}
	why := fmt.Sprintf("the peer gives no %s", what)
	if s.required {
		s.Fatal(why + ", and the rule is required")
	}
	s.Skip(why)
}
