package chaos

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/tests/harness"
)

// The same on a real libvirt: 8 kills in the life of two guests, of which each verb
// is hit twice.
func TestKillsOnLibvirt(t *testing.T) {
	host := harness.LibvirtHost(t)
	content := harness.GuestImage(t)
	random := rand.New(rand.NewPCG(seed(t), 2))
	w := harness.Start(t, harness.Options{Libvirt: host})
	w.ImportImage("guest", hcp.FirmwareBIOS, content)
	images := host.Volumes(t)
	for _, name := range []string{"web-1", "web-2"} {
		v := &victim{w: w, name: name, bound: 120 * time.Second, zone: harness.With("zone", "libvirt"), image: harness.With("image", "guest")}
		v.life(t, random, 3*time.Second)
	}
	if domains, err := host.Domains(); err != nil || len(domains) > 0 {
		t.Fatalf("domains are left: %v %v", domains, err)
	}
	if left := host.Volumes(t); !slices.Equal(left, images) {
		t.Fatalf("the pool holds %v, want the images %v", left, images)
	}
}
