package e2e

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/lotuscloud/hcp/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// system skips what needs processes when only the quick tests are wanted.
func system(t *testing.T, opt harness.Options) *harness.World {
	t.Helper()
	if testing.Short() {
		t.Skip("the whole system is not started with -short")
	}
	return harness.Start(t, opt)
}

// parallel runs f n times at once and waits for all.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// ok fails the test on an error of the fault controls.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// machines counts what carries our marker.
func machines(t *testing.T, w *harness.World) int {
	t.Helper()
	list, err := w.Sim.List(t.Context())
	ok(t, err)
	n := 0
	for _, m := range list.Machines {
		if m.Ours {
			n++
		}
	}
	return n
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
