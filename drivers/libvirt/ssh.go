package libvirt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/lotuscloud/hcp"
)

// credentials of a cluster, as JSON. Only hosts over SSH need any.
type credentials struct {
	PrivateKey string `json:"private_key"` // PEM
	Passphrase string `json:"passphrase"`
	// KnownHosts is lines of a known_hosts file; HostKey one key ("ssh-ed25519 AAAA...")
	// that every host must show. One of the two is needed: no key is trusted unseen.
	KnownHosts string `json:"known_hosts"`
	HostKey    string `json:"host_key"`
}

func (credentials) String() string   { return "[credentials]" }
func (credentials) GoString() string { return "[credentials]" }

func parseCredentials(raw []byte) (credentials, error) {
	var c credentials
	if len(raw) == 0 {
		return c, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, badCredentials("they are not a JSON object with private_key and known_hosts or host_key")
	}
	return c, nil
}

func badCredentials(why string) error {
	return &hcp.Error{Code: hcp.CodeInvalidRequest, Reason: "invalid_credentials", Message: "the credentials are not valid: " + why,
		Fields: []hcp.FieldError{{Pointer: "/credentials", Reason: "invalid_credentials", Detail: why}}}
}

// errHostKey is a host that shows another key than the pinned one.
var errHostKey = errors.New("the host shows a key that is not pinned")

// sshDialer reaches a host's socket through SSH. Unlike the library's own, its
// connection closes the SSH client with it.
func sshDialer(u *url.URL, socket string, creds credentials) (func(context.Context) (net.Conn, error), error) {
	if creds.PrivateKey == "" {
		return nil, badCredentials("a host over SSH needs private_key")
	}
	var signer ssh.Signer
	var err error
	if creds.Passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(creds.PrivateKey), []byte(creds.Passphrase))
	} else {
		signer, err = ssh.ParsePrivateKey([]byte(creds.PrivateKey))
	}
	if err != nil {
		return nil, badCredentials("private_key cannot be read")
	}
	address := net.JoinHostPort(u.Hostname(), orDefault(u.Port(), "22"))
	keys, err := pinnedKeys(creds, u.Hostname(), address)
	if err != nil {
		return nil, err
	}
	conf := &ssh.ClientConfig{
		User: orDefault(u.User.Username(), "root"),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			for _, k := range keys {
				if bytes.Equal(k.Marshal(), key.Marshal()) {
					return nil
				}
			}
			return errHostKey
		},
		HostKeyAlgorithms: keyAlgorithms(keys),
	}
	return func(ctx context.Context) (net.Conn, error) { return dialSSH(ctx, address, socket, conf) }, nil
}

func dialSSH(ctx context.Context, address, socket string, conf *ssh.ClientConfig) (net.Conn, error) {
	raw, err := dialer("tcp", address)(ctx)
	if err != nil {
		return nil, err
	}
	// the handshake and the open have no context of their own
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(raw, address, conf)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("ssh: %w", err)
	}
	client := ssh.NewClient(conn, channels, requests)
	stream, err := client.Dial("unix", socket)
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("ssh: the server does not forward %s (AllowStreamLocalForwarding): %w", socket, err)
	}
	return &sshConn{Conn: stream, client: client}, nil
}

type sshConn struct {
	net.Conn
	client *ssh.Client
	once   sync.Once
}

func (c *sshConn) Close() error {
	c.once.Do(func() {
		_ = c.Conn.Close()
		_ = c.client.Close()
	})
	return nil
}

// pinnedKeys are the keys that the host may show.
func pinnedKeys(creds credentials, host, address string) ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	if creds.HostKey != "" {
		k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(creds.HostKey))
		if err != nil {
			return nil, badCredentials("host_key cannot be read")
		}
		keys = append(keys, k)
	}
	rest := []byte(creds.KnownHosts)
	for len(bytes.TrimSpace(rest)) > 0 {
		marker, hosts, k, _, next, err := ssh.ParseKnownHosts(rest)
		if err != nil {
			return nil, badCredentials("known_hosts cannot be read")
		}
		rest = next
		h, port, _ := net.SplitHostPort(address)
		for _, name := range hosts {
			if marker == "" && (name == host && port == "22" || name == "["+h+"]:"+port) {
				keys = append(keys, k)
			}
		}
	}
	if len(keys) == 0 {
		return nil, badCredentials("a host over SSH needs its key in known_hosts (as name or [name]:port, not hashed) or host_key")
	}
	return keys, nil
}

func keyAlgorithms(keys []ssh.PublicKey) []string {
	var names []string
	for _, k := range keys {
		if k.Type() == ssh.KeyAlgoRSA {
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		names = append(names, k.Type())
	}
	return names
}
