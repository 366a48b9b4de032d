package libvirt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/drivertest"
)

var conformanceNames = []string{"conf-host-one", "conf-host-two"}

// settledLooks is how many counts in a row must agree: half a second without a change.
const settledLooks = 5

func TestDriverKeepsTheContract(t *testing.T) {
	one, two := hosts(t)
	artefact := image(t)
	list := []peer{one, two}
	gates := map[string]*gate{}
	var uris []string
	peerOf := map[string]peer{}
	for i, p := range list {
		g := newGate(t, p.socket())
		name := conformanceNames[i]
		gates[name], peerOf[name] = g, p
		uris = append(uris, socketURI(name, g.path))
	}
	all := func(f func(*gate)) {
		for _, g := range gates {
			f(g)
		}
	}
	procs := map[drivertest.Call]uint32{drivertest.CallCreate: procDefine, drivertest.CallStart: procCreate,
		drivertest.CallStop: procDestroy, drivertest.CallDelete: procUndefine}
	domains := func(t testing.TB, match string) (n int) {
		for _, p := range list {
			for _, id := range strings.Fields(p.virsh(t, "list", "--all", "--uuid")) {
				if id == match || strings.Contains(p.virsh(t, "dumpxml", id), fmt.Sprintf("id='%s'", match)) ||
					strings.Contains(p.virsh(t, "dumpxml", id), fmt.Sprintf("id=%q", match)) {
					n++
				}
			}
		}
		return n
	}
	// The rule that cuts a delete after the domain is gone leaves its volumes; as a
	// job does, ask again: the delete goes on where it stopped.
	t.Cleanup(func() {
		l := newLab(t, time.Minute, list...)
		for _, p := range list {
			for _, name := range p.volumes(t) {
				if id, disk := strings.CutSuffix(name, ".qcow2"); disk && hcp.IsID(hcp.KindVM, id) {
					_, err := l.Delete(context.Background(), tok(hcp.VMID(id), "delete"), hcp.ProviderRef{ID: hcp.VMID(id).UUID(), Host: p.name})
					l.must(err, "delete of what a cut delete left")
				}
			}
			assertOnlyImages(t, p)
		}
	})
	drivertest.Run(t, drivertest.Env{
		Open: func(t testing.TB) drivers.Driver {
			return openAt(t, 30*time.Second, strings.Join(uris, ","), nil)
		},
		Image:   func(hcp.Firmware) string { return artefact },
		Sizes:   hcp.Sizes{VCPUs: 1, MemoryMiB: 256, DiskGiB: 1},
		Wait:    30 * time.Second,
		Boot:    2 * time.Minute,
		Poll:    200 * time.Millisecond,
		Creates: 4,
		Require: []string{drivertest.All},
		Hooks: drivertest.Hooks{
			CutBefore: func(_ testing.TB, c drivertest.Call) {
				all(func(g *gate) { g.set(func() { g.cutBefore, g.cutAfter = procs[c], 0 }) })
			},
			CutAfter: func(_ testing.TB, c drivertest.Call) {
				all(func(g *gate) { g.set(func() { g.cutAfter, g.cutBefore = procs[c], 0 }) })
			},
			Stranger: func(t testing.TB, ref hcp.ProviderRef) {
				p := peerOf[ref.Host]
				file := fmt.Sprintf("/var/lib/libvirt/stranger-%s.xml", ref.ID)
				p.sh(t, "sh", "-c", fmt.Sprintf(`echo "<domain type='qemu'><name>stranger-%s</name><uuid>%s</uuid><memory unit='MiB'>64</memory>
					<os><type arch='x86_64'>hvm</type></os></domain>" >%s`, ref.ID, ref.ID, file))
				p.virsh(t, "define", file)
				t.Cleanup(func() { p.virsh(t, "undefine", ref.ID); p.sh(t, "rm", file) })
			},
			Exists: func(t testing.TB, ref hcp.ProviderRef) bool { return domains(t, ref.ID) > 0 },
			Count:  func(t testing.TB, vm hcp.VMID) int { return domains(t, string(vm)) },
			Down:   func(testing.TB) { all((*gate).close) },
			// the driver does not dial again for a while after it failed
			Up: func(t testing.TB) { all((*gate).open); pause(t.Context(), 5*time.Second) },
			HostDown: func(t testing.TB, ref hcp.ProviderRef) string {
				gates[ref.Host].close()
				return ref.Host
			},
			HostUp: func(t testing.TB, host string) { gates[host].open() },
			// What closed a moment ago is still on its way through the gate: looks in
			// a row must agree. The rule counted sessions of the rule before it.
			Sessions: func(testing.TB) int {
				count := func() (n int) {
					for _, g := range gates {
						n += g.sessions()
					}
					return n
				}
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				n, agreed := count(), 1
				for agreed < settledLooks {
					<-tick.C
					if again := count(); again != n {
						n, agreed = again, 0
					}
					agreed++
				}
				return n
			},
			Slow:    func(testing.TB) { all((*gate).delay) },
			Fast:    func(testing.TB) { all((*gate).fast) },
			Secrets: []string{"/var/lib/libvirt", "lv-one", "lv-two", "libvirt-sock"},
		},
	})
}
