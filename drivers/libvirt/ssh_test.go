package libvirt

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// sshPeer is an SSH server that forwards to one unix socket, as sshd does.
type sshPeer struct {
	addr     string
	hostKey  string
	key      string // the client's, PEM
	sessions atomic.Int32
}

func keyPair(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

func newSSHPeer(t *testing.T, forwards bool) *sshPeer {
	t.Helper()
	host, _ := keyPair(t)
	client, pemKey := keyPair(t)
	p := &sshPeer{hostKey: string(ssh.MarshalAuthorizedKey(host.PublicKey())), key: pemKey}
	conf := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, io.EOF
		}
		return nil, nil
	}}
	conf.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(c, conf, forwards) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return p
}

func (p *sshPeer) serve(c net.Conn, conf *ssh.ServerConfig, forwards bool) {
	conn, channels, requests, err := ssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	p.sessions.Add(1)
	defer p.sessions.Add(-1)
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		var target struct {
			Path     string
			Reserved string
			Port     uint32
		}
		if !forwards || ch.ChannelType() != "direct-streamlocal@openssh.com" || ssh.Unmarshal(ch.ExtraData(), &target) != nil {
			_ = ch.Reject(ssh.Prohibited, "not forwarded")
			continue
		}
		back, err := net.Dial("unix", target.Path)
		if err != nil {
			_ = ch.Reject(ssh.ConnectionFailed, "no such socket")
			continue
		}
		stream, reqs, err := ch.Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(reqs)
		go func() { _, _ = io.Copy(stream, back); _ = stream.Close() }()
		go func() { _, _ = io.Copy(back, stream); _ = back.Close() }()
	}
	_ = conn.Wait()
}

func (p *sshPeer) credentials(t *testing.T, change func(*credentials)) []byte {
	t.Helper()
	c := credentials{PrivateKey: p.key, HostKey: p.hostKey}
	change(&c)
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// echoSocket answers the handshake and a version question.
func echoSocket(t *testing.T) string {
	return misbehaving(t, func(uint32, net.Conn) bool { return false })
}

// misbehaving is echoSocket but for the calls that instead takes.
func misbehaving(t *testing.T, instead func(proc uint32, c net.Conn) bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				head := make([]byte, frameHeader)
				for {
					if _, err := io.ReadFull(c, head); err != nil {
						return
					}
					if _, err := io.CopyN(io.Discard, c, int64(head[3])+int64(head[2])<<8-frameHeader); err != nil {
						return
					}
					if instead(binary.BigEndian.Uint32(head[12:]), c) {
						continue
					}
					answer := append([]byte{0, 0, 0, frameHeader + 8}, head[4:]...)
					answer[19] = 1 // a reply
					payload := make([]byte, 8)
					if head[15] == 66 { // which ways to authenticate: one, none
						payload[3] = 1
					}
					if _, err := c.Write(append(answer, payload...)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return path
}

func (p *sshPeer) open(t *testing.T, socket string, creds []byte) (*Driver, error) {
	t.Helper()
	d, err := Open(context.Background(), drivers.Config{Endpoint: "qemu+ssh://root@" + p.addr + "/system?socket=" + socket, Credentials: creds, CallTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.(*Driver), nil
}

// Each connection of the library's own SSH dialer left an SSH session behind.
func TestSSHSessionsEndWithTheirConnections(t *testing.T) {
	p := newSSHPeer(t, true)
	d, err := p.open(t, echoSocket(t), p.credentials(t, func(*credentials) {}))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		s, err := openSession(ctx, d.hosts[0].ep)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		s.close()
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; p.sessions.Load() > 0; i++ {
		if <-tick.C; i > 250 {
			t.Fatalf("%d SSH sessions are left", p.sessions.Load())
		}
	}
}

func TestReport16_SSHRefusalsAreClearAndQuick(t *testing.T) {
	p := newSSHPeer(t, true)
	_, otherKey := keyPair(t)
	otherHost, _ := keyPair(t)
	socket := echoSocket(t)
	host, port, _ := net.SplitHostPort(p.addr)
	for name, c := range map[string]struct {
		change func(*credentials)
		reason string
	}{
		"good":           {func(*credentials) {}, ""},
		"known hosts":    {func(c *credentials) { c.KnownHosts, c.HostKey = "["+host+"]:"+port+" "+c.HostKey, "" }, ""},
		"wrong host key": {func(c *credentials) { c.HostKey = string(ssh.MarshalAuthorizedKey(otherHost.PublicKey())) }, "auth_failed"},
		"wrong key":      {func(c *credentials) { c.PrivateKey = otherKey }, "auth_failed"},
	} {
		d, err := p.open(t, socket, p.credentials(t, c.change))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = d.hosts[0].control.do(t.Context(), ping)
		if e := classify(err, opRead); (err == nil) != (c.reason == "") || err != nil && (e.Code != hcp.CodeProviderUnavailable || e.Reason != c.reason) {
			t.Errorf("%s: %v", name, e)
		}
	}
	for name, change := range map[string]func(*credentials){
		"no key": func(c *credentials) { c.PrivateKey = "" }, "no pin": func(c *credentials) { c.HostKey = "" },
		"pin of another": func(c *credentials) { c.HostKey, c.KnownHosts = "", "elsewhere "+c.HostKey },
	} {
		if _, err := p.open(t, socket, p.credentials(t, change)); !hcp.IsCode(err, hcp.CodeInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An SSH server that forwards no sockets: the operator is told exactly that.
func TestReport17_SSHServerWithoutForwarding(t *testing.T) {
	p := newSSHPeer(t, false)
	d, err := p.open(t, "/run/libvirt/libvirt-sock", p.credentials(t, func(*credentials) {}))
	if err != nil {
		t.Fatal(err)
	}
	e := classify(d.hosts[0].control.do(t.Context(), ping), opRead)
	if e == nil || e.Code != hcp.CodeProviderUnavailable || !strings.Contains(e.Err.Error(), "AllowStreamLocalForwarding") {
		t.Errorf("%v", e)
	}
}
