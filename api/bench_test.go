package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"syscall"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
)

// BenchmarkCreate measures the API alone: the owner answers at once and the
// store is asked for the key only. cpu-ms/op is of the whole process, the
// client's half included.
func BenchmarkCreate(b *testing.B) {
	w := newWorld(b, quiet)
	vm := hcp.VM{ID: hcp.VMID(w.ids.New(hcp.KindVM)), Name: "x"}
	body, err := hcp.AcceptedBody(hcp.Known{VM: vm}, hcp.Job{ID: hcp.JobID(w.ids.New(hcp.KindJob))})
	must(b, err)
	w.owner.refuse = func(hcp.Command) (hcp.Answer, error, bool) {
		w.owner.mu.Lock()
		w.owner.seen = nil
		w.owner.mu.Unlock()
		return hcp.Answer{Status: 202, Body: body}, nil, true
	}
	send := func(i int) {
		data := []byte(`{"name":"vm-` + strconv.Itoa(i) + `","image":"debian","flavor":"small","labels":{"a":"b"}}`)
		req, _ := http.NewRequest("POST", w.url+"/v1/projects/demo/vms", bytes.NewReader(data))
		req.Header.Set("Authorization", "Bearer "+w.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", fmt.Sprint("k", i))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 202 {
			b.Fatal(resp.StatusCode)
		}
	}
	measure(b, send)
}

// BenchmarkGet is one indexed read.
func BenchmarkGet(b *testing.B) {
	w := newWorld(b, quiet)
	a := w.created("web")
	req, err := http.NewRequestWithContext(context.Background(), "GET", w.url+"/v1/projects/demo/vms/"+string(a.ResourceID), nil)
	must(b, err)
	req.Header.Set("Authorization", "Bearer "+w.token)
	measure(b, func(int) {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	})
}

func quiet(d *api.Deps) {
	d.Log = slog.New(slog.DiscardHandler)
	d.Limits.Rate, d.Limits.Burst = 1e9, 1e9
}

func measure(b *testing.B, send func(int)) {
	send(-1)
	b.ReportAllocs()
	var before, after syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	i := 0
	for b.Loop() {
		send(i)
		i++
	}
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	cpu := float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano()) / 1e6
	b.ReportMetric(cpu/float64(b.N), "cpu-ms/op")
}
