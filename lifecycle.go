package hcp

import "slices"

// Trigger is what moves a VM from one lifecycle to the next.
type Trigger string

const (
	TriggerCreated       Trigger = "created"        // the create job verified the machine
	TriggerCreateFailed  Trigger = "create_failed"  // the create job ended without one
	TriggerDeleteAsked   Trigger = "delete_asked"   // a delete was accepted
	TriggerDeleteFailed  Trigger = "delete_failed"  // the delete job gave up with the machine there
	TriggerDeleted       Trigger = "deleted"        // absence was verified
	TriggerRetryAsked    Trigger = "retry_asked"    // the create is tried again
	TriggerRecovered     Trigger = "recovered"      // a look showed a usable machine
	TriggerRecoverFailed Trigger = "recover_failed" // a look showed that it is not usable
)

type edge struct {
	from Lifecycle
	on   Trigger
}

// transitions is the whole machine; docs/lifecycle.md is generated from it. A
// pair that is absent is CONFLICT.
var transitions = map[edge]Lifecycle{
	{LifecycleCreating, TriggerCreated}:      LifecycleActive,
	{LifecycleCreating, TriggerCreateFailed}: LifecycleError,
	{LifecycleCreating, TriggerDeleteAsked}:  LifecycleDeleting,
	{LifecycleActive, TriggerDeleteAsked}:    LifecycleDeleting,
	{LifecycleActive, TriggerRecoverFailed}:  LifecycleError,
	{LifecycleDeleting, TriggerDeleteAsked}:  LifecycleDeleting,
	{LifecycleDeleting, TriggerDeleted}:      LifecycleDeleted,
	{LifecycleDeleting, TriggerDeleteFailed}: LifecycleError,
	{LifecycleDeleting, TriggerCreateFailed}: LifecycleDeleting, // the cancelled create ends, the delete goes on
	{LifecycleDeleting, TriggerCreated}:      LifecycleDeleting, // too late to cancel: the delete goes on
	{LifecycleError, TriggerDeleteAsked}:     LifecycleDeleting,
	{LifecycleError, TriggerRetryAsked}:      LifecycleCreating,
	{LifecycleError, TriggerRecovered}:       LifecycleActive,
}

// Next is pure: where a VM in this lifecycle goes on the trigger, or CONFLICT.
func (l Lifecycle) Next(on Trigger) (Lifecycle, error) {
	to, ok := transitions[edge{l, on}]
	if !ok {
		return l, Errorf(CodeConflict, "wrong_lifecycle", "a VM that is %s cannot take %s", l, on)
	}
	return to, nil
}

// Lifecycles and Triggers list the table's axes in documentation order.
func Lifecycles() []Lifecycle {
	return []Lifecycle{LifecycleCreating, LifecycleActive, LifecycleDeleting, LifecycleDeleted, LifecycleError}
}

func Triggers() []Trigger {
	return []Trigger{TriggerCreated, TriggerCreateFailed, TriggerDeleteAsked, TriggerDeleteFailed, TriggerDeleted,
		TriggerRetryAsked, TriggerRecovered, TriggerRecoverFailed}
}

// activityState is the state shown while a job of that kind lives.
var activityState = map[JobKind]State{
	JobCreate: StateCreating, JobStart: StateStarting, JobStop: StateStopping, JobReboot: StateRestarting, JobDelete: StateDeleting,
}

// DeriveState is the tenant's one word for a VM. A live job wins, then the
// lifecycle, then the power.
func DeriveState(l Lifecycle, p Power, activity JobKind) State {
	switch l {
	case LifecycleDeleted:
		return StateDeleted
	case LifecycleDeleting:
		return StateDeleting
	case LifecycleCreating:
		return StateCreating
	}
	if s, ok := activityState[activity]; ok {
		return s
	}
	if l == LifecycleError {
		return StateError
	}
	switch p {
	case PowerRunning:
		return StateRunning
	case PowerStopped:
		return StateStopped
	case PowerPaused:
		return StatePaused
	case PowerSuspended:
		return StateSuspended
	}
	return StateUnknown
}

// State is the VM's tenant-visible state.
func (v VM) State() State { return DeriveState(v.Lifecycle, v.Power, v.Activity) }

// verbRule says in which lifecycles a verb is accepted, in which powers it makes
// sense, and in which power it is already done.
type verbRule struct {
	lifecycles []Lifecycle
	done       Power   // the VM is already in the wished state: CONFLICT already_in_state
	powers     []Power // empty: any
}

// verbRules is judged against the state after the jobs already queued. Delete
// is not in it: it is always taken.
var verbRules = map[JobKind]verbRule{
	JobStart:  {[]Lifecycle{LifecycleActive}, PowerRunning, []Power{PowerStopped, PowerSuspended, PowerUnknown}},
	JobStop:   {[]Lifecycle{LifecycleActive}, PowerStopped, []Power{PowerRunning, PowerPaused, PowerUnknown}},
	JobReboot: {[]Lifecycle{LifecycleActive}, "", []Power{PowerRunning, PowerUnknown}},
}

// JudgeVerb says whether a VM in that lifecycle and power takes the verb; the
// error is CONFLICT with reason already_in_state, wrong_lifecycle or wrong_power.
func JudgeVerb(verb JobKind, l Lifecycle, p Power) error {
	rule, ok := verbRules[verb]
	if !ok {
		return Errorf(CodeInternal, "no_rule", "there is no rule for the verb %s", verb)
	}
	if !slices.Contains(rule.lifecycles, l) {
		return Errorf(CodeConflict, "wrong_lifecycle", "a VM that is %s cannot take %s", l, verb.Word())
	}
	if rule.done != "" && p == rule.done {
		return Errorf(CodeConflict, "already_in_state", "the VM is already %s", p).WithHint("nothing is left to do")
	}
	if len(rule.powers) > 0 && !slices.Contains(rule.powers, p) {
		return Errorf(CodeConflict, "wrong_power", "a VM that is %s cannot take %s", p, verb.Word())
	}
	return nil
}

// PowerAfter is the power a VM will have once a job of that kind has succeeded;
// the second result is false when the job does not change it.
func PowerAfter(kind JobKind) (Power, bool) {
	switch kind {
	case JobStart, JobReboot:
		return PowerRunning, true
	case JobStop:
		return PowerStopped, true
	}
	return "", false
}
