package libvirt_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

const bootWithin = 3 * time.Minute // emulated, on a busy machine

const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJw3dZ5VqsPLmyCCHGKUaDlvmXAEBGEEgCWnPCzuGDsY somebody@somewhere"

// console is what the guest wrote to its serial console; none yet reads as empty.
func (p peer) console(spec drivers.Spec) string {
	raw, _ := os.ReadFile(filepath.Join(peers.dir, p.name, "log/qemu", spec.Name+"-serial.log"))
	return string(raw)
}

// A whole life with real firmware, kernel, seed, lease and power button, once
// for each firmware. It holds G06 end to end: the guest hashes its user data.
func TestBootToAnAddressAndDownByThePowerButton(t *testing.T) {
	one, _ := hosts(t)
	for _, firmware := range []hcp.Firmware{hcp.FirmwareBIOS, hcp.FirmwareUEFI} {
		t.Run(string(firmware), func(t *testing.T) {
			l := newLab(t, 0, one)
			s := l.spec(firmware)
			s.SSHKeys = []string{sshKey}
			s.UserData = []byte("#!/bin/sh\n# bytes that must not change: \xff\xfe \xc3\xa4\r\n" +
				"echo \"GUEST-USERDATA $(sha256sum </run/seed/user-data | cut -d' ' -f1) $(cut -d' ' -f3 /root/.ssh/authorized_keys)\"\n")
			ref := l.create(s)
			l.start(s, ref)
			eventually(t, bootWithin, "an address", func() bool { return len(l.get(ref).Addresses) > 0 })
			if a := l.get(ref).Addresses[0]; a.Source != "lease" {
				t.Errorf("the first address is %+v, want one from a lease", a)
			}
			eventually(t, bootWithin, "the guest is ready", func() bool {
				log := one.console(s)
				return strings.Contains(log, "GUEST-READY") && strings.Contains(log, "Hello from "+s.Hostname)
			})
			sum := sha256.Sum256(s.UserData)
			for _, want := range []string{"GUEST-SEED", "GUEST-GA", "GUEST-INSTANCE " + string(s.VM) + " " + s.Hostname,
				"GUEST-USERDATA " + hex.EncodeToString(sum[:]) + " somebody@somewhere"} {
				if !strings.Contains(one.console(s), want) {
					t.Errorf("the console does not show %q", want)
				}
			}

			// the lease of the boot before was shown while the guest was still in its firmware
			l.stop(s, ref)
			l.start(s, ref)
			if a := l.get(ref).Addresses; len(a) > 0 {
				t.Errorf("right after its second start the machine shows %v", a)
			}
			eventually(t, bootWithin, "an address of the second boot", func() bool { return len(l.get(ref).Addresses) > 0 })

			// one request a call: a guest that is not ready loses it without a word
			eventually(t, bootWithin, "the guest obeys its power button", func() bool {
				_, err := l.Stop(t.Context(), tok(s.VM, "stop"), ref, hcp.StopGraceful)
				l.must(err, "graceful stop")
				return l.get(ref).Power == hcp.PowerStopped
			})
			if !strings.Contains(one.console(s), "GUEST-PWRBTN") {
				t.Error("the machine is off, but its guest saw no power button")
			}
			l.remove(s, ref)
		})
	}
}

// The address comes from the guest itself where no network of the host leases one.
func TestReport05_AddressFromTheAgentOrNone(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, 0, one)
	// a network whose leases libvirt does not know, as a bridge of the site: DHCP is
	// served beside it
	file := "/var/lib/libvirt/site.xml"
	one.sh(t, "sh", "-c", `echo "<network><name>site</name><bridge name='brsite'/></network>" >`+file)
	one.virsh(t, "net-define", file)
	one.virsh(t, "net-start", "site")
	one.sh(t, "sh", "-c", `echo "<network><name>idle</name><bridge name='bridle'/></network>" >`+file)
	one.virsh(t, "net-define", file) // the driver starts it
	t.Cleanup(func() {
		one.sh(t, "sh", "-c", "kill $(cat /run/libvirt/site-dnsmasq.pid); virsh -q net-destroy site; virsh -q net-undefine site; virsh -q net-destroy idle; virsh -q net-undefine idle; rm -f "+file)
	})
	one.sh(t, "sh", "-c", "ip addr add 10.77.0.1/24 dev brsite && dnsmasq --conf-file=/dev/null --port=0 --interface=brsite --bind-interfaces "+
		"--dhcp-range=10.77.0.10,10.77.0.99 --dhcp-leasefile=/var/lib/libvirt/site.leases --pid-file=/run/libvirt/site-dnsmasq.pid")
	s := l.spec(hcp.FirmwareBIOS)
	s.Networks = []string{"idle", "site"} // nobody answers on the first card
	ref := l.create(s)
	l.start(s, ref)
	if a := l.get(ref).Addresses; len(a) > 0 {
		t.Errorf("a guest in its firmware shows %v", a)
	}
	eventually(t, bootWithin, "an address from the agent", func() bool {
		a := l.get(ref).Addresses
		return len(a) > 0 && a[0].Source == "agent" && strings.HasPrefix(a[0].IP, "10.77.0.")
	})
	for _, a := range l.get(ref).Addresses {
		if strings.HasPrefix(a.IP, "127.") || strings.HasPrefix(a.IP, "fe80") || a.IP == "::1" {
			t.Errorf("%s is no address to reach a machine by", a.IP)
		}
	}
	l.stop(s, ref)
	l.remove(s, ref)
}
