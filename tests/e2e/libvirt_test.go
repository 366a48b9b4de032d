package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/tests/harness"
)

// The behaviours that a simulation cannot vouch for, on a real libvirtd with real
// QEMU guests. "Report n" are defects that users of libvirt have reported
// elsewhere; each is a subtest here. One host and one hcpd for all of them.
func TestLibvirt(t *testing.T) {
	host := harness.LibvirtHost(t)
	content := harness.GuestImage(t)
	w := harness.Start(t, harness.Options{Libvirt: host})
	w.ImportImage("guest", hcp.FirmwareBIOS, content)
	w.ImportImage("guest-uefi", hcp.FirmwareUEFI, content)
	images := host.Volumes(t)
	l := &lab{w, host}

	t.Run("B04_Report19_DeleteOfARunningGuestLeavesTheImageAndTheOthers", func(t *testing.T) { l.deletesRunning(t, images) })
	t.Run("Report01_UEFIGuestIsDeletedWithItsNVRAM", func(t *testing.T) { l.deletesUEFI(t, images) })
	t.Run("Report02_EightCreatesAtOnce", func(t *testing.T) { l.createsEight(t, images) })
	t.Run("Report03_AfterAFailureTheRetryIsTheSameVM", l.retries)
	t.Run("Report05_NoAddressNeverFailsTheJob", l.lacksAddress)
}

type lab struct {
	w    *harness.World
	host *harness.Host
}

func (l *lab) guest(image string) []func(map[string]any) {
	return []func(map[string]any){harness.With("zone", "libvirt"), harness.With("image", image)}
}

func (l *lab) stopped(image string) []func(map[string]any) {
	return append(l.guest(image), harness.With("power", "stopped"))
}

// delete deletes and waits until nothing but want is in the pool.
func (l *lab) delete(t *testing.T, id hcp.VMID, want []string) hcp.JobView {
	t.Helper()
	j := l.w.P.Succeeds(t, harness.Accepted(t, l.w.P.Delete("/vms/"+string(id))).JobID, 120*time.Second)
	l.w.P.Gone(t, id, 5*time.Second)
	domains, err := l.host.Domains()
	ok(t, err)
	for _, uuid := range domains {
		if uuid == id.UUID() {
			t.Fatalf("the domain of %s is left", id)
		}
	}
	if have := l.host.Volumes(t); want != nil && strings.Join(have, " ") != strings.Join(want, " ") {
		t.Fatalf("the pool holds %v, want %v", have, want)
	}
	return j
}

// B04 and report 19: a VM was deleted, its disk stayed, or a disk that another VM
// still used went with it.
func (l *lab) deletesRunning(t *testing.T, images []string) {
	other := l.w.P.Made(t, "other", l.stopped("guest")...)
	withOther := l.host.Volumes(t)
	v := l.w.P.Made(t, "web", l.guest("guest")...)
	if info := l.host.Virsh(t, "dominfo", v.ID.UUID()); !strings.Contains(info, "running") {
		t.Fatalf("HCP says %s, libvirt says:\n%s", v.State, info)
	}
	harness.Eventually(t, 120*time.Second, "the guest has an address", func() string {
		if v := l.w.P.VM(t, string(v.ID)); len(v.Addresses) == 0 {
			return "none yet"
		}
		return ""
	})
	j := l.delete(t, v.ID, withOther)
	steps := map[string]hcp.StepState{}
	for _, s := range j.Steps {
		steps[s.Name] = s.State
	}
	if steps["stop"] != hcp.StepSucceeded || steps["delete"] != hcp.StepSucceeded {
		t.Fatalf("want the steps stop and delete: %s", harness.DescribeJob(j))
	}
	if state := l.host.Virsh(t, "domstate", other.ID.UUID()); state != "shut off" {
		t.Fatalf("the other VM is %s", state)
	}
	l.delete(t, other.ID, images)
}

// Report 1: undefine refuses a domain that has NVRAM.
func (l *lab) deletesUEFI(t *testing.T, images []string) {
	v := l.w.P.Made(t, "uefi", l.guest("guest-uefi")...)
	nvram, err := l.host.Exec("sh", "-c", "ls /var/lib/libvirt/qemu/nvram")
	ok(t, err)
	if nvram == "" {
		t.Fatal("the guest has no NVRAM: this test would prove nothing")
	}
	l.delete(t, v.ID, images)
	if left, err := l.host.Exec("sh", "-c", "ls /var/lib/libvirt/qemu/nvram"); err != nil || left != "" {
		t.Fatalf("NVRAM is left: %q %v", left, err)
	}
	if r := l.w.P.Delete("/vms/" + string(v.ID)); r.Status != http.StatusNotFound {
		t.Fatalf("a second delete: %s", r)
	}
}

// Report 2: parallel creates on one pool failed with "asynchronous jobs running".
func (l *lab) createsEight(t *testing.T, images []string) {
	answers := make([]harness.Response, 8)
	parallel(len(answers), func(i int) {
		answers[i] = l.w.P.Post("/vms", name("eight", i), harness.VMSpec(name("eight", i), l.stopped("guest")...))
	})
	for _, r := range answers {
		l.w.P.Succeeds(t, harness.Accepted(t, r).JobID, 180*time.Second)
	}
	for _, r := range answers {
		l.delete(t, harness.Accepted(t, r).ResourceID, nil)
	}
	if have := l.host.Volumes(t); strings.Join(have, " ") != strings.Join(images, " ") {
		t.Fatalf("the pool holds %v, want %v", have, images)
	}
}

// Report 3: the first attempt failed after the define; every retry then failed with
// "already exists with uuid".
func (l *lab) retries(t *testing.T) {
	a := l.w.P.Create(t, "lost", append(l.guest("guest"), harness.With("networks", []string{"missing"}))...)
	j := l.w.P.Ends(t, a.JobID, 120*time.Second)
	if j.State != hcp.JobFailed {
		t.Fatalf("want a failed create: %s", harness.DescribeJob(j))
	}
	file := filepath.Join(t.TempDir(), "net.xml")
	ok(t, os.WriteFile(file, []byte("<network><name>missing</name></network>"), 0o644))
	l.host.Virsh(t, "net-define", file)
	l.host.Virsh(t, "net-start", "missing")
	again := harness.Accepted(t, l.w.P.Post("/jobs/"+string(a.JobID)+"/retry", "", nil))
	if again.ResourceID != a.ResourceID {
		t.Fatalf("the retry made another VM: %s, then %s", a.ResourceID, again.ResourceID)
	}
	l.w.P.Succeeds(t, again.JobID, 120*time.Second)
	domains, err := l.host.Domains()
	ok(t, err)
	if len(domains) != 1 || domains[0] != a.ResourceID.UUID() {
		t.Fatalf("the domains are %v, want the one of %s", domains, a.ResourceID)
	}
	if v := l.w.P.VM(t, string(a.ResourceID)); v.State != hcp.StateRunning {
		t.Fatalf("the VM is %s", v.State)
	}
	l.delete(t, a.ResourceID, nil)
}

// Report 5: a create waited for an address for ever, or failed without one. A
// network that has no DHCP gives none; HCP says so and nothing fails.
func (l *lab) lacksAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.xml")
	ok(t, os.WriteFile(file, []byte("<network><name>silent</name><bridge name='virbr9'/></network>"), 0o644))
	l.host.Virsh(t, "net-define", file)
	l.host.Virsh(t, "net-start", "silent")
	mute := l.w.P.Made(t, "mute", append(l.guest("guest"), harness.With("networks", []string{"silent"}))...)
	both := l.w.P.Made(t, "both", append(l.guest("guest"), harness.With("networks", []string{"silent", "default"}))...)
	harness.Eventually(t, 120*time.Second, "the address of the second interface is found", func() string {
		if v := l.w.P.VM(t, string(both.ID)); len(v.Addresses) == 0 {
			return fmt.Sprintf("%s has none yet", v.Name)
		}
		return ""
	})
	v := l.w.P.VM(t, string(mute.ID))
	if v.State != hcp.StateRunning {
		t.Fatalf("the VM without an address is %s", v.State)
	}
	for _, a := range v.Addresses {
		if !strings.HasPrefix(a.IP, "fe80") {
			t.Logf("an address on a network without DHCP: %+v", a)
		}
	}
	l.delete(t, mute.ID, nil)
	l.delete(t, both.ID, nil)
}
