package sim_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/internal/ident"
)

func newSpec(image string) drivers.Spec {
	id := hcp.VMID(ident.Random().New(hcp.KindVM))
	return drivers.Spec{VM: id, Name: "hcp-" + id.Short(), VCPUs: 1, MemoryMiB: 512, DiskGiB: 10, Image: image, Firmware: hcp.FirmwareBIOS}
}

// The time is that of driver and hypervisor together, over a socket, with the journal on.
func BenchmarkCreateStartStopDelete(b *testing.B) {
	url, _ := peer(b, sim.ServerConfig{Data: b.TempDir()})
	d := open(b, url, nil)
	defer d.Close()
	ctx := context.Background()
	b.ReportAllocs()
	var ops atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			spec := newSpec("tiny-bios")
			tok := drivers.Token{VM: spec.VM, Attempt: 1}
			ref, _ := d.Prepare(ctx, tok, spec, nil)
			_, err := d.Create(ctx, tok, ref, spec)
			for i, f := range []func() (drivers.Task, error){
				func() (drivers.Task, error) { return d.Start(ctx, tok, ref) },
				func() (drivers.Task, error) { return d.Stop(ctx, tok, ref, hcp.StopGraceful) },
				func() (drivers.Task, error) { return d.Delete(ctx, tok, ref) },
			} {
				if err == nil {
					_, err = f()
				}
				if err != nil {
					b.Error(i, err)
				}
			}
			ops.Add(5) // a delete looks once more
		}
	})
	b.ReportMetric(float64(ops.Load())/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkInventory(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			url, ctl := peer(b, sim.ServerConfig{})
			if _, err := ctl.OOB(context.Background(), oobMany(n)); err != nil {
				b.Fatal(err)
			}
			d := open(b, url, nil)
			defer d.Close()
			for b.Loop() {
				if _, err := d.Inventory(context.Background(), func(drivers.Observation) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
