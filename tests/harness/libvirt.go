package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
)

// Host is a private libvirt host: real libvirtd, real QEMU, in namespaces of its
// own. It dies with the test.
type Host struct {
	Name, URI string
	env       []string
}

// repository is the root of the module, from a test's folder.
var repository = filepath.Join("..", "..")

// LibvirtHost starts a host. Without root or the packages the test is skipped, and
// fails instead where HCP_REQUIRE_LIBVIRT=1 says that they must be there.
func LibvirtHost(t testing.TB) *Host {
	t.Helper()
	if testing.Short() {
		t.Skip("no real hypervisor is started with -short")
	}
	missing := ""
	if os.Geteuid() != 0 {
		missing = "root"
	}
	for _, tool := range []string{"libvirtd", "virsh", "qemu-system-x86_64", "dnsmasq", "nsenter", "cpio"} {
		if _, err := exec.LookPath(tool); err != nil && missing == "" {
			missing = tool
		}
	}
	if missing != "" {
		if os.Getenv("HCP_REQUIRE_LIBVIRT") == "1" {
			t.Fatalf("a real libvirt needs %s, and it is required; make test installs what is needed", missing)
		}
		t.Skipf("a real libvirt needs %s; make test installs what is needed", missing)
	}
	dir := t.TempDir()
	h := &Host{Name: "e2e", env: append(CleanEnv(), "HCP_HOSTS="+dir)}
	out, err := h.script("start", h.Name)
	if err != nil {
		t.Fatal(err)
	}
	h.URI = out
	t.Cleanup(func() {
		if t.Failed() {
			if log, err := os.ReadFile(filepath.Join(dir, h.Name, "log", "libvirtd.log")); err == nil {
				t.Logf("libvirtd said last:\n%s", log[max(0, len(log)-3000):])
			}
		}
		if _, err := h.script("remove", h.Name); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *Host) script(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(repository, "deploy", "libvirt", "host.sh"), args...)
	cmd.Env = h.env
	return capture(cmd)
}

// Exec runs a command inside the host's namespaces.
func (h *Host) Exec(args ...string) (string, error) {
	return h.script(append([]string{"exec", h.Name}, args...)...)
}

// Virsh asks the host and fails the test on an error.
func (h *Host) Virsh(t testing.TB, args ...string) string {
	t.Helper()
	out, err := h.TryVirsh(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryVirsh is Virsh without a test.
func (h *Host) TryVirsh(args ...string) (string, error) {
	return capture(exec.Command("virsh", append([]string{"-q", "-c", h.URI}, args...)...))
}

// Domains lists the uuids of all domains.
func (h *Host) Domains() ([]string, error) {
	out, err := h.TryVirsh("list", "--all", "--uuid")
	return strings.Fields(out), err
}

// Volumes lists what is in the pool that HCP uses.
func (h *Host) Volumes(t testing.TB) (names []string) {
	t.Helper()
	for line := range strings.Lines(h.Virsh(t, "vol-list", "hcp")) {
		if f := strings.Fields(line); len(f) > 0 {
			names = append(names, f[0])
		}
	}
	slices.Sort(names)
	return names
}

func capture(cmd *exec.Cmd) (string, error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errOut.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// GuestImage is the tiny guest, built when it is not there.
func GuestImage(t testing.TB) []byte {
	t.Helper()
	cmd := exec.Command(filepath.Join(repository, "deploy", "guest", "build.sh"))
	cmd.Env = CleanEnv()
	path, err := capture(cmd)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// ImportImage makes an image of that content known and brings it to the libvirt.
func (w *World) ImportImage(name string, firmware hcp.Firmware, content []byte) {
	w.T.Helper()
	sum := sha256.Sum256(content)
	r := w.Ops.Post("/v1/ops/images", "", map[string]any{"name": name, "version": "1", "sha256": hex.EncodeToString(sum[:]), "firmware": firmware})
	if r.Status != http.StatusCreated {
		w.T.Fatalf("create the image %s: %s", name, r)
	}
	r = w.Ops.Do(w.Context(), Request{Method: http.MethodPut, Path: "/v1/ops/images/" + name + "/artefacts/local-libvirt", Body: content,
		Header: map[string]string{"Content-Type": "application/octet-stream"}})
	if r.Status/100 != 2 {
		w.T.Fatalf("import the image %s: %s", name, r)
	}
}

// checkDomains: the libvirt has exactly the domains that HCP knows of.
func (w *World) checkDomains() {
	w.T.Helper()
	if w.opt.Libvirt == nil {
		return
	}
	Eventually(w.T, 60*time.Second, "the libvirt has what HCP knows of", func() string {
		have, err := w.opt.Libvirt.Domains()
		if err != nil {
			return err.Error()
		}
		var want []string
		for _, v := range w.VMs() {
			if v.ProviderRef != nil && v.Zone == "libvirt" {
				want = append(want, v.ID.UUID())
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("domains %v, VMs with a provider_ref %v", have, want)
		}
		return ""
	})
}
