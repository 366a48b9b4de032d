package libvirt

import (
	"context"
	"errors"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
)

// op says what was attempted: the same libvirt code means different things.
type op int

const (
	opRead   op = iota // has no effect
	opDefine           // brings a domain into being
	opStart
	opStop
	opDelete // of a domain or a volume
	opVolume // makes or fills a volume
	opSetup  // pool or network
	opAgent  // asks the guest
)

func (o op) mutates() bool { return o != opRead && o != opAgent }

// libvirt's error numbers, as far as they are told apart here.
const (
	codeInternal         = 1
	codeNoConnect        = 5
	codeInvalidArg       = 8
	codeOperationFailed  = 9
	codeXMLError         = 27
	codeOperationDenied  = 29
	codeXMLDetail        = 35
	codeSystemError      = 38
	codeNoDomain         = 42
	codeNoNetwork        = 43
	codeAuthFailed       = 45
	codeNoPool           = 49
	codeNoVolume         = 50
	codeOperationInvalid = 55
	codeUnsupported      = 67
	codeOperationTimeout = 68
	codeNoSnapshot       = 72
	codeArgUnsupported   = 74
	codeAuthCancelled    = 79
	codeNoMetadata       = 80
	codeBlockCopyActive  = 83
	codeOpUnsupported    = 84
	codeAgentSilent      = 86
	codeResourceBusy     = 87
	codeAccessDenied     = 88
	codeVolumeExists     = 90
	codeXMLSchema        = 92
	codeAuthUnavailable  = 94
	codeNoCheckpoint     = 103
)

// libvirtCode is the number that the host answered with, or 0.
func libvirtCode(err error) int {
	if e, ok := errors.AsType[golibvirt.Error](err); ok {
		return int(e.Code)
	}
	return 0
}

func isCode(err error, codes ...int) bool {
	have := libvirtCode(err)
	for _, c := range codes {
		if have == c && have != 0 {
			return true
		}
	}
	return false
}

// classify is the one place where a failure of libvirt becomes an error of HCP.
// Messages are for tenants; what libvirt said stays in Err.
func classify(err error, o op) *hcp.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*hcp.Error](err); ok {
		return e
	}
	if link, ok := asLink(err); ok {
		return classifyLink(link, o).WithCause(err)
	}
	if errors.Is(err, golibvirt.ErrUnsupported) {
		return hcp.Errorf(hcp.CodeFeatureNotSupported, "unsupported", "the hypervisor cannot do this").WithCause(err)
	}
	if e, ok := errors.AsType[golibvirt.Error](err); ok {
		return classifyAnswer(e, o).WithCause(err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return classifyLink(&errLink{sent: o.mutates(), err: err}, o).WithCause(err)
	}
	return hcp.Errorf(hcp.CodeInternal, "unexpected", "the hypervisor answered in a way that HCP does not understand").WithCause(err)
}

func classifyLink(link *errLink, o op) *hcp.Error {
	text := link.Error()
	switch {
	case link.sent && o.mutates():
		return hcp.Errorf(hcp.CodeOutcomeUnknown, "connection_lost", "the connection to the hypervisor ended before it answered")
	case !o.mutates() && errors.Is(link.err, context.DeadlineExceeded):
		return hcp.Errorf(hcp.CodeProviderTimeout, "no_answer", "the hypervisor did not answer in time")
	case errors.Is(link.err, errHostKey), strings.Contains(text, "ssh: unable to authenticate"), isCode(link.err, codeAuthFailed, codeAuthCancelled, codeAuthUnavailable):
		return hcp.Errorf(hcp.CodeProviderUnavailable, "auth_failed", "the hypervisor and HCP do not accept each other's keys")
	case isCode(link.err, codeAccessDenied, codeOperationDenied), strings.Contains(text, "permission denied"):
		return hcp.Errorf(hcp.CodeProviderUnavailable, "forbidden", "the hypervisor does not let HCP in")
	}
	return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer")
}

// knownTexts tells apart what libvirt says with its catch-all codes.
var knownTexts = []struct {
	text string
	err  *hcp.Error
}{
	{"asynchronous jobs running", busy},
	{"cannot acquire state change lock", busy},
	{"Device or resource busy", busy},
	{"Failed to terminate process", busy},
	{"Failed to get shared", busy},
	{"Failed to get \"write\" lock", busy},
	{"Cannot allocate memory", noRoom},
	{"cannot allocate memory", noRoom},
	{"No space left", noRoom},
	{"Disk quota exceeded", noRoom},
}

var (
	busy   = hcp.Errorf(hcp.CodeProviderUnavailable, "busy", "the hypervisor is busy with this object")
	noRoom = hcp.Errorf(hcp.CodeNoCapacity, "no_room", "the host has no room for this")
)

func classifyAnswer(e golibvirt.Error, o op) *hcp.Error {
	for _, known := range knownTexts {
		if strings.Contains(e.Message, known.text) {
			return known.err
		}
	}
	switch e.Code {
	case codeNoNetwork:
		if o == opStart || o == opDefine || o == opSetup {
			return hcp.Errorf(hcp.CodeConflict, "network_missing", "a network of the machine is not there")
		}
		return hcp.NotFound("network")
	case codeNoDomain, codeNoPool, codeNoVolume, codeNoSnapshot, codeNoMetadata, codeNoCheckpoint:
		return hcp.NotFound("object")
	case codeVolumeExists:
		return hcp.Errorf(hcp.CodeConflict, "exists", "the volume exists already")
	case codeOperationFailed:
		return hcp.Errorf(hcp.CodeConflict, "operation_failed", "the hypervisor could not do this in the present state")
	case codeOperationInvalid:
		return hcp.Errorf(hcp.CodeConflict, "invalid_state", "the machine's state does not allow this")
	case codeSystemError:
		return hcp.Errorf(hcp.CodeConflict, "precondition", "something that the machine needs on its host is missing")
	case codeInvalidArg, codeXMLError, codeXMLDetail, codeXMLSchema:
		return hcp.Errorf(hcp.CodeInvalidRequest, "refused", "the hypervisor refuses the request as not valid")
	case codeUnsupported, codeOpUnsupported, codeArgUnsupported:
		return hcp.Errorf(hcp.CodeFeatureNotSupported, "unsupported", "the hypervisor cannot do this")
	case codeAgentSilent:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "agent_silent", "the guest's agent does not answer")
	case codeOperationTimeout, codeBlockCopyActive, codeResourceBusy:
		return busy
	case codeOperationDenied, codeAccessDenied:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "forbidden", "the hypervisor does not let HCP do this")
	case codeAuthFailed, codeAuthCancelled, codeAuthUnavailable:
		return hcp.Errorf(hcp.CodeProviderUnavailable, "auth_failed", "the hypervisor does not accept HCP's credentials")
	case codeNoConnect:
		return hcp.Errorf(hcp.CodeInvalidRequest, "no_driver", "the host has no QEMU driver")
	}
	return hcp.Errorf(hcp.CodeInternal, "hypervisor_error", "the hypervisor reports an internal error")
}

// foreign is the refusal to touch what does not carry our marker.
func foreign() *hcp.Error {
	return hcp.Errorf(hcp.CodeConflict, "foreign_object", "the machine under this id is not the one that was meant")
}

// fail is classify for a return: a nil *hcp.Error must not become a non-nil error.
func fail(err error, o op) error {
	if e := classify(err, o); e != nil {
		return e
	}
	return nil
}
