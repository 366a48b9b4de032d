package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/transport"
)

// Router brings commands to the owner of their cluster, and repeats within the
// command's deadline while ownership moves.
type Router struct {
	bus     transport.Bus
	members Membership
	clock   clock.Clock
	jitter  func(time.Duration) time.Duration
	log     *slog.Logger
	// budget bounds repeats over all commands: in an outage the callers' patience must
	// not become a storm.
	budget *rate.Limiter
}

// NewRouter makes a router; jitter shortens a pause by a random part.
func NewRouter(bus transport.Bus, members Membership, clk clock.Clock, jitter func(time.Duration) time.Duration, log *slog.Logger) *Router {
	return &Router{bus: bus, members: members, clock: clk, jitter: jitter, log: log, budget: rate.NewLimiter(200, 400)}
}

const (
	defaultPatience = 10 * time.Second
	firstPause      = 20 * time.Millisecond
	longestPause    = time.Second
)

// Do sends the command to its owner and returns what the owner said. The error is
// UNAVAILABLE when no owner answered in time: it is not known whether the command
// was accepted, and repeating it with the same key is safe.
func (r *Router) Do(ctx context.Context, c hcp.Command) (hcp.Answer, error) {
	if c.Deadline.IsZero() {
		c.Deadline = r.clock.Now().Add(defaultPatience)
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return hcp.Answer{}, hcp.AsError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Deadline.Sub(r.clock.Now()))
	defer cancel()
	pause := firstPause
	for {
		answer, again, err := r.once(ctx, c.Cluster, payload)
		if !again {
			return answer, err
		}
		if !r.budget.Allow() {
			return hcp.Answer{}, unreachable(errors.New("the retry budget is used up"))
		}
		if !r.wait(ctx, r.jitter(pause)) {
			return hcp.Answer{}, unreachable(err)
		}
		pause = min(2*pause, longestPause)
	}
}

// once asks the present owner; again says that asking anew may help.
func (r *Router) once(ctx context.Context, id hcp.ClusterID, payload []byte) (answer hcp.Answer, again bool, err error) {
	owner := Owner(id, r.members.Nodes())
	if owner == "" {
		return answer, true, errors.New("there is no node")
	}
	data, err := r.bus.Request(ctx, transport.SubjectNode(owner, transport.KindCommand), payload)
	switch {
	case errors.Is(err, transport.ErrNoResponders):
		return answer, true, err
	case err != nil:
		return answer, false, unreachable(err)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return hcp.Answer{}, false, hcp.AsError(err)
	}
	if answer.Fault != nil && answer.Fault.Reason == hcp.ReasonMoved {
		return hcp.Answer{}, true, answer.Fault.Error()
	}
	return answer, false, nil
}

func (r *Router) wait(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := r.clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

func unreachable(cause error) error {
	return hcp.Errorf(hcp.CodeUnavailable, "owner_unreachable", "the owner of the cluster did not answer in time").
		WithHint("repeat the call with the same idempotency key").WithRetryAfter(time.Second).WithCause(cause)
}

// Serve answers commands for clusters that this node owns. handle must answer
// exactly once and must not block.
func Serve(bus transport.Bus, members Membership, handle func(hcp.Command, func(hcp.Answer))) (stop func(), err error) {
	subject := transport.SubjectNode(members.Self().Name, transport.KindCommand)
	return bus.Serve(subject, func(payload []byte, reply func([]byte)) {
		answer := func(a hcp.Answer) {
			data, err := json.Marshal(a)
			if err != nil {
				data, _ = json.Marshal(hcp.Answer{Fault: hcp.AsError(err).Wire()})
			}
			reply(data)
		}
		var c hcp.Command
		if err := json.Unmarshal(payload, &c); err != nil {
			answer(hcp.Answer{Fault: hcp.AsError(err).Wire()})
			return
		}
		if !owns(members, Owner(c.Cluster, members.Nodes())) {
			answer(hcp.Answer{Fault: hcp.Errorf(hcp.CodeUnavailable, hcp.ReasonMoved, "another node owns the cluster").Wire()})
			return
		}
		handle(c, answer)
	})
}
