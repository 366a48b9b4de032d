package sqlstore

import (
	"context"
	"slices"

	"github.com/lotuscloud/hcp"
)

// statesOf asks the domain for the VM's word twice: as it reads while its cluster
// answers, and while it does not. The filter picks one of the two by the
// cluster's reachability at the time of the read; so a dead provider costs one
// write, and the rule itself stands in the domain alone.
func statesOf(v hcp.VM, obs *hcp.Observed) (reached, cut hcp.State) {
	reached = hcp.Known{VM: v, Observed: obs}.View().State
	cut = hcp.Known{VM: v, Observed: obs, Reachability: &hcp.Reachability{}}.View().State
	return reached, cut
}

// shownPower reads what the provider shows of a VM, as far as its state depends on it.
func shownPower(ctx context.Context, q Querier, vm hcp.VMID) (*hcp.Observed, error) {
	var obs hcp.Observed
	var at int64
	err := q.QueryRow(ctx, `select power, missing, at from observed where vm = $1`, vm).Scan((*string)(&obs.Power), &obs.Missing, &at)
	if err == ErrNoRows {
		return nil, nil
	}
	obs.At = fromMicros(at)
	return &obs, err
}

// refreshState derives a VM's words again after what the provider shows has changed.
func refreshState(ctx context.Context, q Querier, id hcp.VMID, obs *hcp.Observed) error {
	var v hcp.VM
	var at int64
	var hasRef bool
	var state, cut string
	err := q.QueryRow(ctx, `select lifecycle, activity, power, power_at, has_ref, state, state_cut from vms where id = $1`, id).
		Scan((*string)(&v.Lifecycle), (*string)(&v.Activity), (*string)(&v.Power), &at, &hasRef, &state, &cut)
	if err == ErrNoRows {
		return nil
	}
	if err != nil {
		return err
	}
	v.PowerAt = fromMicros(at)
	if hasRef {
		v.Ref = &hcp.ProviderRef{}
	}
	reached, unreached := statesOf(v, obs)
	if string(reached) == state && string(unreached) == cut {
		return nil
	}
	_, err = q.Exec(ctx, `update vms set state = $1, state_cut = $2 where id = $3`, reached, unreached, id)
	return err
}

// The quota classes of a VM row, for verification.
const (
	holdsNothing = 0
	holdsSizes   = 1
)

// quotaClass says what a VM must hold. One that is being made or lives must hold,
// a deleted one must not. In between the row itself says: a create that failed
// has given back what it held, also while its VM is then deleted. A VM in error
// that still holds needs a reason: a named residue, or a machine that is or may
// be there.
func quotaClass(v *hcp.VM) int64 {
	switch v.Lifecycle {
	case hcp.LifecycleDeleted:
		return holdsNothing
	case hcp.LifecycleDeleting:
		return flag(v.Holding)
	case hcp.LifecycleError:
		named := slices.ContainsFunc(v.Conditions, func(c hcp.Condition) bool { return c.Type == "residue" })
		return flag(v.Holding && (named || v.Ref != nil || v.CreateIntent))
	}
	return holdsSizes
}
