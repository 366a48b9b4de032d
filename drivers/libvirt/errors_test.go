package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
)

// Codes and messages as libvirt 9.0 with QEMU 7.2 gave them.
func TestClassifyRecordedErrors(t *testing.T) {
	lv := func(code uint32, message string) error { return golibvirt.Error{Code: code, Message: message} }
	for _, c := range []struct {
		err    error
		op     op
		code   hcp.Code
		reason string
	}{
		{lv(42, "Domain not found: no domain with matching uuid '019a...'"), opRead, hcp.CodeNotFound, "not_found"},
		{lv(43, "Network not found: no network with matching name 'lab'"), opStart, hcp.CodeConflict, "network_missing"},
		{lv(43, "Network not found: no network with matching name 'lab'"), opRead, hcp.CodeNotFound, "not_found"},
		{lv(49, "Storage pool not found: no storage pool with matching name 'x'"), opVolume, hcp.CodeNotFound, "not_found"},
		{lv(50, "Storage volume not found: no storage vol with matching name 'x'"), opDelete, hcp.CodeNotFound, "not_found"},
		{lv(80, "metadata not found: Requested metadata element is not present"), opRead, hcp.CodeNotFound, "not_found"},
		{lv(90, "storage volume 'x' exists already"), opVolume, hcp.CodeConflict, "exists"},
		{lv(9, "operation failed: domain 'web' already exists with uuid 1111"), opDefine, hcp.CodeConflict, "operation_failed"},
		{lv(55, "Requested operation is not valid: domain is already running"), opStart, hcp.CodeConflict, "invalid_state"},
		{lv(55, "Requested operation is not valid: cannot undefine domain with nvram"), opDelete, hcp.CodeConflict, "invalid_state"},
		{lv(8, "invalid argument: could not get preferred machine for /usr/bin/qemu-system-x86_64 type=kvm"), opDefine, hcp.CodeInvalidRequest, "refused"},
		{lv(27, "XML error: missing name"), opDefine, hcp.CodeInvalidRequest, "refused"},
		{lv(67, "unsupported configuration: x"), opDefine, hcp.CodeFeatureNotSupported, "unsupported"},
		{lv(84, "Operation not supported: internal snapshots of a VM with pflash based firmware are not supported"), opStart, hcp.CodeFeatureNotSupported, "unsupported"},
		{lv(74, "argument unsupported: QEMU guest agent is not configured"), opAgent, hcp.CodeFeatureNotSupported, "unsupported"},
		{lv(86, "Guest agent is not responding: QEMU guest agent is not connected"), opAgent, hcp.CodeProviderUnavailable, "agent_silent"},
		{lv(68, "Timed out during operation: cannot acquire state change lock (held by monitor=remoteDispatchDomainDestroyFlags)"), opStop, hcp.CodeProviderUnavailable, "busy"},
		{lv(87, "resource busy: x"), opStop, hcp.CodeProviderUnavailable, "busy"},
		{lv(1, "internal error: pool 'hcp' has asynchronous jobs running."), opVolume, hcp.CodeProviderUnavailable, "busy"},
		{lv(1, "internal error: qemu unexpectedly closed the monitor: cannot set up guest memory 'pc.ram': Cannot allocate memory"), opStart, hcp.CodeNoCapacity, "no_room"},
		{lv(38, "cannot write data to file '/var/lib/libvirt/hcp/x': No space left on device"), opVolume, hcp.CodeNoCapacity, "no_room"},
		{lv(38, "Cannot access storage file '/var/lib/libvirt/hcp/x.qcow2': No such file or directory"), opStart, hcp.CodeConflict, "precondition"},
		{lv(38, "Failed to terminate process 4711 with SIGKILL: Device or resource busy"), opStop, hcp.CodeProviderUnavailable, "busy"},
		{lv(29, "operation forbidden: read only access prevents virDomainCreate"), opStart, hcp.CodeProviderUnavailable, "forbidden"},
		{lv(45, "authentication failed: access denied by policy"), opRead, hcp.CodeProviderUnavailable, "auth_failed"},
		{lv(5, "no connection driver available for qemu:///system"), opRead, hcp.CodeInvalidRequest, "no_driver"},
		{lv(1, "internal error: something new"), opStart, hcp.CodeInternal, "hypervisor_error"},
		{golibvirt.ErrUnsupported, opRead, hcp.CodeFeatureNotSupported, "unsupported"},

		// a call on the wire when its connection ended may have been done; one that never left was not
		{golibvirt.ErrInterrupted, opStart, hcp.CodeOutcomeUnknown, "connection_lost"},
		{golibvirt.ErrInterrupted, opRead, hcp.CodeProviderUnavailable, "unreachable"},
		{syscall.EINVAL, opStart, hcp.CodeProviderUnavailable, "unreachable"},
		{io.EOF, opDelete, hcp.CodeOutcomeUnknown, "connection_lost"},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, opStop, hcp.CodeOutcomeUnknown, "connection_lost"},
		{&errLink{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, opStart, hcp.CodeProviderUnavailable, "unreachable"},
		{&errLink{sent: true, err: context.DeadlineExceeded}, opStart, hcp.CodeOutcomeUnknown, "connection_lost"},
		{&errLink{sent: true, err: context.DeadlineExceeded}, opRead, hcp.CodeProviderTimeout, "no_answer"},
		{&errLink{err: errSilent}, opRead, hcp.CodeProviderUnavailable, "unreachable"},
		{&errLink{err: fmt.Errorf("ssh: %w", errHostKey)}, opRead, hcp.CodeProviderUnavailable, "auth_failed"},
		{&errLink{err: lv(88, "access denied: 'QEMU' denied access")}, opStart, hcp.CodeProviderUnavailable, "forbidden"},
		{errors.New("what is this"), opRead, hcp.CodeInternal, "unexpected"},
	} {
		e := classify(c.err, c.op)
		if e.Code != c.code || e.Reason != c.reason {
			t.Errorf("%v (op %d): %s %s, want %s %s", c.err, c.op, e.Code, e.Reason, c.code, c.reason)
		}
		if !errors.Is(e, c.err) && e.Err == nil {
			t.Errorf("%v: the cause is lost", c.err)
		}
		for _, leak := range []string{"/var/lib", "uuid", "qemu", "4711", "pool 'hcp'", "019a"} {
			if strings.Contains(e.Message, leak) {
				t.Errorf("the message %q tells a tenant %q", e.Message, leak)
			}
		}
	}
}

// A nil *hcp.Error in an error is not nil.
func TestFailOfNothingIsNil(t *testing.T) {
	if err := fail(nil, opStart); err != nil {
		t.Fatalf("fail(nil) is %v", err)
	}
}
