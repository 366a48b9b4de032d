package cli

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
)

// mutation is what a command that makes a job answers: the API's 202, with the
// VM and the job as they are when the wait is over.
type mutation struct {
	hcp.AcceptedView
	Replayed bool `json:"replayed,omitempty"` // the server knew this idempotency key
}

// waitedListing shows the VM that came of it, startedListing the job to wait for.
var (
	waitedListing  = mapListing(vmListing, func(m mutation) hcp.VMView { return m.Resource })
	startedListing = mapListing(jobListing, func(m mutation) hcp.JobView { return m.Job })
)

// mapListing shows a U as the T in it.
func mapListing[T, U any](l listing[T], of func(U) T) listing[U] {
	m := listing[U]{noun: l.noun, name: func(u U) string { return l.name(of(u)) }}
	for _, c := range l.columns {
		m.columns = append(m.columns, column[U]{head: c.head, isWide: c.isWide, keep: c.keep, state: c.state, right: c.right,
			cell: func(a *app, u U) string { return c.cell(a, of(u)) }})
	}
	return m
}

// sendCommand is one call that answers 202.
type sendCommand func(ctx context.Context, p *client.Project, name string, opts ...client.CallOption) (client.Accepted, error)

// mutateAll sends a command for every name and waits for its jobs.
func (a *app) mutateAll(ctx context.Context, noun, verb string, w *waitFlags, names []string, send sendCommand) error {
	if err := w.check(); err != nil {
		return err
	}
	names = unique(names)
	if len(names) > 0 { // where to and as whom is wrong for all names or for none
		if _, err := a.projectFor(names[0]); err != nil {
			return err
		}
	}
	show := a.newProgress(w.progress)
	results, err := forEach(ctx, a, names, func(ctx context.Context, name string) (mutation, error) {
		return a.mutateOne(ctx, noun, verb, w, show, name, send)
	})
	show.close()
	if w.noWait {
		return showPartial(a, startedListing, results, len(names), err)
	}
	return showPartial(a, waitedListing, results, len(names), err)
}

func (a *app) mutateOne(ctx context.Context, noun, verb string, w *waitFlags, show progress, name string, send sendCommand) (mutation, error) {
	p, err := a.projectFor(name)
	if err != nil {
		return mutation{}, err
	}
	key := w.key
	if key == "" {
		key = uuid.NewString()
	}
	accepted, err := send(ctx, p, name, client.WithKey(key))
	if err != nil {
		return mutation{}, a.about(noun, name, verb).withKey(key).failed(err)
	}
	m := mutation{accepted.AcceptedView, accepted.Meta.Replayed}
	if w.noWait {
		return m, nil
	}
	show.update(m.Job)
	m.Job, err = a.follow(ctx, w, show, m.JobID, func(ctx context.Context, d time.Duration) (hcp.JobView, error) {
		return p.WaitJobOnce(ctx, string(m.JobID), d)
	})
	if err != nil {
		return mutation{}, a.about("job", string(m.JobID), "").failed(err)
	}
	if f := a.jobFailure(m.Job); f != nil && !wasCancelledOnRequest(m.Job, verb) {
		return mutation{}, f
	}
	m.Resource = a.afterwards(ctx, p, m)
	return m, nil
}

// wasCancelledOnRequest reports whether the end of the job is what `job cancel` asked for.
func wasCancelledOnRequest(j hcp.JobView, verb string) bool {
	return verb == "cancel" && j.State == hcp.JobCancelled
}

// afterwards reads the VM again, to show it as the job left it. The result of
// the job stands whether or not this read succeeds. What was deleted is not asked
// for: the refusal would stand in the audit log.
func (a *app) afterwards(ctx context.Context, p *client.Project, m mutation) hcp.VMView {
	if m.Job.Kind == hcp.JobDelete && m.Job.State == hcp.JobSucceeded {
		gone := m.Resource
		gone.State, gone.Lifecycle, gone.Power, gone.Activity = hcp.StateDeleted, hcp.LifecycleDeleted, hcp.PowerUnknown, ""
		gone.Addresses, gone.Observed, gone.LastSeen = []hcp.Address{}, nil, nil
		return gone
	}
	v, err := p.GetVM(ctx, string(m.ResourceID))
	if err == nil {
		return v
	}
	a.warn("the job ended, but the VM could not be read again: " + a.about("vm", "", "").failed(err).Message)
	return m.Resource
}

// unique keeps the first of equal names: one name is one effect.
func unique(names []string) []string {
	seen := make(map[string]bool, len(names))
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
