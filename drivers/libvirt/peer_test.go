package libvirt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

const (
	hostScript  = "../../deploy/libvirt/host.sh"
	guestScript = "../../deploy/guest/build.sh"
)

// peers are real libvirt hosts with real QEMU, in namespaces of their own. They
// start when the first test needs them and end with the tests.
var peers struct {
	once  sync.Once
	dir   string
	why   string // they are not there
	image string // path of the guest's qcow2
}

func TestMain(m *testing.M) {
	code := m.Run()
	if peers.dir != "" && !stopPeers() {
		code = 1
	}
	os.Exit(code)
}

func stopPeers() (ok bool) {
	ok = true
	for _, name := range []string{"lv-one", "lv-two"} {
		if _, err := script("stop", name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			ok = false
		}
	}
	if ok {
		_ = os.RemoveAll(peers.dir)
	}
	return ok
}

// removeAbandoned ends the hosts of test runs that were killed.
func removeAbandoned() {
	dirs, err := filepath.Glob("/var/tmp/hcp-lv-*-*")
	if err != nil {
		return
	}
	for _, dir := range dirs {
		pid := strings.Split(filepath.Base(dir), "-")[2]
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			peers.dir = dir
			stopPeers()
		}
	}
	peers.dir = ""
}

func script(args ...string) (string, error) {
	cmd := exec.Command(hostScript, args...)
	cmd.Env = append(os.Environ(), "HCP_HOSTS="+peers.dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("host.sh %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func startPeers() {
	if os.Getuid() != 0 {
		peers.why = "private hosts need root"
		return
	}
	for _, tool := range []string{"libvirtd", "virtlogd", "qemu-system-x86_64", "qemu-img", "dnsmasq", "virsh", "nsenter", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			peers.why = tool + " is not installed (see deploy/libvirt/packages.txt)"
			return
		}
	}
	out, err := exec.Command(guestScript).Output()
	if err != nil {
		peers.why = "the guest image cannot be built: " + err.Error()
		return
	}
	peers.image = strings.TrimSpace(string(out))
	removeAbandoned()
	if peers.dir, err = os.MkdirTemp("/var/tmp", fmt.Sprintf("hcp-lv-%d-", os.Getpid())); err != nil {
		peers.why = err.Error()
		return
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, name := range []string{"lv-one", "lv-two"} {
		wg.Go(func() { _, errs[i] = script("start", name, filepath.Join(peers.dir, name)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			peers.why = err.Error()
		}
	}
}

// peer is one private host.
type peer struct{ name string }

// hosts gives both hosts, or skips with the reason; HCP_REQUIRE_LIBVIRT=1 makes a failure of it.
func hosts(t testing.TB) (one, two peer) {
	t.Helper()
	if testing.Short() {
		t.Skip("real hosts take minutes: not with -short")
	}
	peers.once.Do(startPeers)
	if peers.why != "" {
		if os.Getenv("HCP_REQUIRE_LIBVIRT") == "1" {
			t.Fatalf("libvirt is required: %s", peers.why)
		}
		t.Skipf("no real libvirt here: %s", peers.why)
	}
	return peer{"lv-one"}, peer{"lv-two"}
}

func (p peer) socket() string { return filepath.Join(peers.dir, p.name, "run", "libvirt-sock") }
func (p peer) uri() string    { return socketURI(p.name, p.socket()) }

// sh runs a command inside the host and fails the test when it fails.
func (p peer) sh(t testing.TB, args ...string) string {
	t.Helper()
	out, err := script(append([]string{"exec", p.name}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (p peer) virsh(t testing.TB, args ...string) string {
	t.Helper()
	return p.sh(t, append([]string{"virsh", "-q", "-c", "qemu:///system"}, args...)...)
}

func (p peer) signal(t testing.TB, name string) {
	t.Helper()
	if _, err := script("signal", p.name, name); err != nil {
		t.Fatal(err)
	}
}

// volumes are the names in the host's pool.
func (p peer) volumes(t testing.TB) (names []string) {
	t.Helper()
	for line := range strings.Lines(p.virsh(t, "vol-list", "hcp")) {
		if f := strings.Fields(line); len(f) > 0 {
			names = append(names, f[0])
		}
	}
	return names
}

var imported struct {
	sync.Mutex
	name string
}

// image brings the tiny guest to both hosts, once.
func image(t testing.TB) string {
	t.Helper()
	one, two := hosts(t)
	imported.Lock()
	defer imported.Unlock()
	if imported.name != "" {
		return imported.name
	}
	raw, err := os.ReadFile(peers.image)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	d := openAt(t, time.Minute, one.uri()+","+two.uri(), nil)
	name, err := d.(drivers.ImageImporter).ImportImage(t.Context(), "tiny", hex.EncodeToString(sum[:]), int64(len(raw)), bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("import of the guest image: %v", err)
	}
	imported.name = name
	return name
}

// lab is a driver on some hosts, and machines made through it.
type lab struct {
	testing.TB
	drivers.Driver
}

func newLab(t testing.TB, timeout time.Duration, on ...peer) lab {
	t.Helper()
	image(t)
	var uris []string
	for _, p := range on {
		uris = append(uris, p.uri())
	}
	return lab{t, openAt(t, timeout, strings.Join(uris, ","), nil)}
}

var made struct {
	sync.Mutex
	n uint32
}

func newVM() hcp.VMID {
	made.Lock()
	defer made.Unlock()
	made.n++
	id := [16]byte{1, 0x93, 0x99, byte(os.Getpid() >> 8), byte(os.Getpid()), 0, 0x70, 0, 0x80}
	id[15], id[14] = byte(made.n), byte(made.n>>8)
	return hcp.VMID(hcp.FormatID(hcp.KindVM, id))
}

func (l lab) spec(firmware hcp.Firmware) drivers.Spec {
	vm := newVM()
	return drivers.Spec{VM: vm, Name: "hcp-" + vm.Short(), Project: "prj_01939999000070008000000000000001", Hostname: "web-" + vm.Short(),
		VCPUs: 1, MemoryMiB: 256, DiskGiB: 1, Image: image(l.TB), Firmware: firmware}
}

func tok(vm hcp.VMID, step string) drivers.Token {
	return drivers.Token{VM: vm, Job: "job_01939999000070008000000000000001", Step: step, Attempt: 1}
}

// create makes the machine and removes it when the test ends.
func (l lab) create(spec drivers.Spec) hcp.ProviderRef {
	l.Helper()
	ref := l.prepare(spec)
	_, err := l.Create(l.Context(), tok(spec.VM, "create"), ref, spec)
	l.must(err, "create")
	return ref
}

// prepare promises to remove whatever will be under the ref.
func (l lab) prepare(spec drivers.Spec) hcp.ProviderRef {
	l.Helper()
	ref, err := l.Prepare(l.Context(), tok(spec.VM, "prepare"), spec, nil)
	l.must(err, "prepare")
	l.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := l.Stop(ctx, tok(spec.VM, "stop"), ref, hcp.StopForce); err == nil || hcp.IsCode(err, hcp.CodeNotFound) {
			_, _ = l.Delete(ctx, tok(spec.VM, "delete"), ref)
		}
	})
	return ref
}

func (l lab) must(err error, what string) {
	l.Helper()
	if err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

func (l lab) start(spec drivers.Spec, ref hcp.ProviderRef) {
	l.Helper()
	_, err := l.Start(l.Context(), tok(spec.VM, "start"), ref)
	l.must(err, "start")
}

func (l lab) stop(spec drivers.Spec, ref hcp.ProviderRef) {
	l.Helper()
	_, err := l.Stop(l.Context(), tok(spec.VM, "stop"), ref, hcp.StopForce)
	l.must(err, "forced stop")
}

func (l lab) remove(spec drivers.Spec, ref hcp.ProviderRef) drivers.Task {
	l.Helper()
	task, err := l.Delete(l.Context(), tok(spec.VM, "delete"), ref)
	l.must(err, "delete")
	return task
}

func (l lab) get(ref hcp.ProviderRef) drivers.Observation {
	l.Helper()
	o, err := l.Get(l.Context(), ref)
	l.must(err, "get")
	return o
}
