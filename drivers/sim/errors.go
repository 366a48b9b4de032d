package sim

import (
	"context"
	"errors"
	"net"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// classify is the one place where errors of the simulated hypervisor become
// HCP's. The provider's own words go into the cause only.
func classify(op simapi.Op, err error) *hcp.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*simapi.Error](err); ok {
		return classifyAnswer(e).WithCause(err)
	}
	return classifySilence(op, err).WithCause(err)
}

// classifyAnswer maps what the hypervisor said. Each of these answers means that nothing was done.
func classifyAnswer(e *simapi.Error) *hcp.Error {
	switch e.Code {
	case simapi.CodeUnauthorized:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "auth_failed", "the hypervisor does not accept HCP's credentials")
	case simapi.CodeForbidden:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "forbidden", "the hypervisor does not allow HCP to do this")
	case simapi.CodeUnavailable, simapi.CodeHostDown:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer")
	case simapi.CodeLocked:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "busy", "the hypervisor is at work on this machine")
	case simapi.CodeNotFound:
		return hcp.Errorf(hcp.CodeNotFound, "not_found", "the hypervisor has no such machine")
	case simapi.CodeForeign:
		return hcp.Errorf(hcp.CodeConflict, "foreign_object", "the machine on the hypervisor is not the one HCP made; it was left alone")
	case simapi.CodeTaken:
		return hcp.Errorf(hcp.CodeConflict, "ref_taken", "the place on the hypervisor is in use by another machine")
	case simapi.CodeNotStopped:
		return hcp.Errorf(hcp.CodeConflict, "not_stopped", "the machine is not off")
	case simapi.CodeNotRunning:
		return hcp.Errorf(hcp.CodeConflict, "not_running", "the machine does not run")
	case simapi.CodeNoCapacity:
		return hcp.Errorf(hcp.CodeNoCapacity, "no_capacity", "the hypervisor has no room for the machine")
	case simapi.CodeNoImage:
		return hcp.Errorf(hcp.CodeConflict, "image_missing", "the image is not on the hypervisor any more")
	case simapi.CodeExists, simapi.CodeInUse, simapi.CodeAlreadyRunning, simapi.CodeAlreadyStopped:
		return hcp.Errorf(hcp.CodeConflict, e.Code, "the hypervisor is in another state than the call needs")
	}
	return hcp.Errorf(hcp.CodeInternal, "provider_error", "the hypervisor failed to do this")
}

// classifySilence maps calls without an answer.
func classifySilence(op simapi.Op, err error) *hcp.Error {
	e, _ := errors.AsType[*callError](err)
	if op.Mutating() && e != nil && e.sent {
		return hcp.Errorf(hcp.CodeOutcomeUnknown, "no_answer", "the connection to the hypervisor was lost before it answered")
	}
	ne, isNet := errors.AsType[net.Error](err)
	if late := errors.Is(err, context.DeadlineExceeded) || isNet && ne.Timeout(); late && !op.Mutating() && !isDial(err) {
		return hcp.Errorf(hcp.CodeProviderTimeout, "timeout", "the hypervisor did not answer in time")
	}
	if errors.Is(err, context.Canceled) {
		return hcp.Errorf(hcp.CodeProviderUnavailable, "cancelled", "the call was given up before it reached the hypervisor")
	}
	return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer")
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
