package libvirt

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/lotuscloud/hcp"
)

const systemSocket = "/run/libvirt/libvirt-sock"

// endpoint is one host of a cluster: how it is called and how it is reached.
type endpoint struct {
	name      string // key of the host in refs and reports; stable over restarts
	driverURI string // what libvirtd is asked to open
	dial      func(context.Context) (net.Conn, error)
}

// parseEndpoints reads the comma-separated URIs of a cluster. A host is called
// by its ?name=, else by its address, else "local" or its socket's path.
func parseEndpoints(list string, creds credentials) ([]endpoint, error) {
	var eps []endpoint
	seen := map[string]bool{}
	for _, raw := range strings.Split(list, ",") {
		raw = strings.TrimSpace(raw)
		if raw == "" {
			continue
		}
		ep, err := parseEndpoint(raw, creds)
		if err != nil {
			return nil, err
		}
		if seen[ep.name] {
			return nil, badEndpoint("two hosts have the same name: add ?name= to their URIs")
		}
		seen[ep.name] = true
		eps = append(eps, ep)
	}
	if len(eps) == 0 {
		return nil, badEndpoint("it names no host")
	}
	return eps, nil
}

func parseEndpoint(raw string, creds credentials) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, badEndpoint("it is not a URI")
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return endpoint{}, badEndpoint("it holds a password; secrets belong into the credentials")
		}
	}
	q := u.Query()
	for key := range q {
		if key != "socket" && key != "name" {
			return endpoint{}, badEndpoint("it has a parameter that HCP does not know; it knows socket and name")
		}
	}
	if u.Path != "/system" {
		return endpoint{}, badEndpoint("its path is not /system; only the system instance can be driven")
	}
	ep := endpoint{name: q.Get("name"), driverURI: "qemu:///system"}
	socket := q.Get("socket")
	if socket == "" {
		socket = systemSocket
	}
	if !strings.HasPrefix(socket, "/") {
		return endpoint{}, badEndpoint("its socket is not an absolute path")
	}
	fallback := u.Hostname()
	switch u.Scheme {
	case "qemu", "qemu+unix":
		if u.Host != "" {
			return endpoint{}, badEndpoint("a host name needs a transport: qemu+ssh://user@host/system")
		}
		fallback = "local"
		if q.Get("socket") != "" {
			fallback = socket
		}
		ep.dial = dialer("unix", socket)
	case "qemu+tcp":
		if u.Hostname() == "" {
			return endpoint{}, badEndpoint("it names no host")
		}
		// Plain TCP has no authentication and no secrecy: it never leaves this machine.
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return endpoint{}, badEndpoint("qemu+tcp is plain text without authentication and reaches this machine only; use qemu+ssh")
		}
		ep.dial = dialer("tcp", net.JoinHostPort(u.Hostname(), orDefault(u.Port(), "16509")))
	case "qemu+ssh":
		if u.Hostname() == "" {
			return endpoint{}, badEndpoint("it names no host")
		}
		if ep.dial, err = sshDialer(u, socket, creds); err != nil {
			return endpoint{}, err
		}
	default:
		return endpoint{}, badEndpoint("its scheme is none of qemu, qemu+unix and qemu+ssh")
	}
	if ep.name == "" {
		ep.name = fallback
	}
	return ep, nil
}

func dialer(network, address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

func badEndpoint(why string) error {
	return &hcp.Error{Code: hcp.CodeInvalidRequest, Reason: "invalid_endpoint", Message: fmt.Sprintf("the endpoint is not valid: %s", why),
		Hint:   "give one URI a host, comma-separated, like qemu:///system or qemu+ssh://root@host/system",
		Fields: []hcp.FieldError{{Pointer: "/endpoint", Reason: "invalid_endpoint", Detail: why}}}
}
