package libvirt_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func TestMachinesSpreadOverHostsAndAreFoundOnAny(t *testing.T) {
	one, two := hosts(t)
	l := newLab(t, time.Minute, one, two)
	specs := make([]drivers.Spec, 4)
	refs := make([]hcp.ProviderRef, 4)
	var wg sync.WaitGroup
	for i := range specs { // at once: what others prepare counts although nothing is defined yet
		specs[i] = l.spec(hcp.FirmwareBIOS)
	}
	for i := range specs {
		wg.Go(func() {
			var err error
			if refs[i], err = l.Prepare(t.Context(), tok(specs[i].VM, "prepare"), specs[i], nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	on := map[string]int{}
	for _, ref := range refs {
		on[ref.Host]++
	}
	if on[one.name] == 0 || on[two.name] == 0 {
		t.Errorf("four machines on two equal hosts are spread as %v", on)
	}
	first, second := specs[0], specs[1]
	refs[0].Host, refs[1].Host = one.name, two.name
	for i := range 2 {
		defer l.remove(specs[i], refs[i])
		_, err := l.Create(t.Context(), tok(specs[i].VM, "create"), refs[i], specs[i])
		l.must(err, "create")
	}
	for i, s := range []drivers.Spec{first, second} {
		found, err := l.Find(t.Context(), s.VM)
		l.must(err, "find")
		if len(found) != 1 || found[0] != refs[i] {
			t.Errorf("find shows %v, want %v", found, refs[i])
		}
	}
	seen := map[hcp.VMID]string{}
	unreached, err := l.Inventory(t.Context(), func(o drivers.Observation) error { seen[o.VM] = o.Ref.Host; return nil })
	l.must(err, "inventory")
	if len(unreached) > 0 || seen[first.VM] != one.name || seen[second.VM] != two.name {
		t.Errorf("the sweep shows %v, unreached %v", seen, unreached)
	}
	// moved by hand: the ref names a host where it is not any more
	moved := hcp.ProviderRef{ID: refs[0].ID, Host: two.name}
	if o := l.get(moved); o.Ref != refs[0] {
		t.Errorf("a machine that is elsewhere shows ref %v, want %v", o.Ref, refs[0])
	}
}

// The same marker on two hosts: both must show, whoever asks then stops.
func TestFindShowsACopyThatWasMadeByHand(t *testing.T) {
	one, two := hosts(t)
	l := newLab(t, time.Minute, one, two)
	s := l.spec(hcp.FirmwareBIOS)
	ref := l.create(s)
	from, to := one, two
	if ref.Host == two.name {
		from, to = two, one
	}
	xml := from.virsh(t, "dumpxml", "--security-info", ref.ID)
	to.sh(t, "sh", "-c", "cat >/var/lib/libvirt/copy.xml <<'XML'\n"+xml+"\nXML")
	to.virsh(t, "define", "/var/lib/libvirt/copy.xml")
	gone := false
	t.Cleanup(func() {
		if !gone {
			to.virsh(t, "undefine", ref.ID)
		}
	})
	found, err := l.Find(t.Context(), s.VM)
	l.must(err, "find")
	if len(found) != 2 {
		t.Errorf("find shows %v, want the machine and its copy", found)
	}
	to.virsh(t, "undefine", ref.ID)
	gone = true
}

// The definition is checked against libvirt's own schema, and by what it must not contain.
func TestDefinitionIsValidAndClosed(t *testing.T) {
	one, _ := hosts(t)
	l := newLab(t, time.Minute, one)
	for _, firmware := range []hcp.Firmware{hcp.FirmwareBIOS, hcp.FirmwareUEFI} {
		s := l.spec(firmware)
		ref := l.create(s)
		xml := one.virsh(t, "dumpxml", "--inactive", "--security-info", ref.ID)
		one.sh(t, "sh", "-c", "cat >/var/lib/libvirt/check.xml <<'XML'\n"+xml+"\nXML\nvirt-xml-validate /var/lib/libvirt/check.xml domain 2>&1 || [ $? = 127 ]")
		for _, want := range []string{"urn:lotuscloud:hcp:1", string(s.VM), "listen='127.0.0.1'", "passwdValidTo='1970-01-01", "org.qemu.guest_agent.0", "/dev/urandom"} {
			if !strings.Contains(xml, want) {
				t.Errorf("%s: the definition does not contain %q", firmware, want)
			}
		}
		if disk := one.virsh(t, "vol-dumpxml", "--pool", "hcp", string(s.VM)+".qcow2"); !strings.Contains(disk, "<backingStore>") || !strings.Contains(disk, "<format type='qcow2'/>") {
			t.Errorf("%s: the disk is no overlay of a stated format: %s", firmware, disk)
		}
	}
}
