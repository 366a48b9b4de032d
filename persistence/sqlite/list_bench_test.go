package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
)

// BenchmarkRead reads beside few and many VMs; the figures should hardly differ.
func BenchmarkRead(b *testing.B) {
	for _, rows := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) { benchRead(b, rows) })
	}
}

func benchRead(b *testing.B, rows int) {
	s := open(b, filepath.Join(b.TempDir(), "hcp.db"), true)
	must(b, s.Commit(b.Context(), roomCommit()))
	ids := ident.Random()
	var mid, last hcp.VM
	done := make(chan error, 1000)
	for i := range rows {
		c := createCommit(ids)
		c.VM.CreatedAt = c.VM.CreatedAt.Add(time.Duration(i))
		c.VM.Labels = map[string]string{"env": []string{"prod", "test"}[i%2]}
		if i == rows/2 {
			mid = *c.VM
		}
		last = *c.VM
		if i >= cap(done) {
			must(b, <-done)
		}
		s.Submit(c, func(err error) { done <- err })
	}
	for range min(rows, cap(done)) {
		must(b, <-done)
	}
	ctx, project := b.Context(), last.Project
	after := &persistence.Position{CreatedAt: mid.CreatedAt, ID: string(mid.ID)}
	list := func(f persistence.VMFilter, limit int) func() error {
		f.Project, f.Page.Limit = project, limit
		return func() error { _, err := s.ListVMs(ctx, f); return err }
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"get", func() error { _, err := s.GetVM(ctx, project, string(mid.ID)); return err }},
		{"getByName", func() error { _, err := s.GetVM(ctx, project, mid.Name); return err }},
		{"load", func() error { _, err := s.LoadVM(ctx, mid.ID); return err }},
		{"page100", list(persistence.VMFilter{}, 100)},
		{"page100middle", list(persistence.VMFilter{Page: persistence.Page{After: after}}, 100)},
		{"page1000", list(persistence.VMFilter{}, 1000)},
		{"stateRare", list(persistence.VMFilter{State: hcp.StatePaused}, 100)},
		{"stateUnknown", list(persistence.VMFilter{State: hcp.StateUnknown}, 100)},
		{"label", list(persistence.VMFilter{Labels: map[string]string{"env": "test"}}, 100)},
		{"labelRare", list(persistence.VMFilter{Labels: map[string]string{"env": "none"}}, 100)},
		{"name", list(persistence.VMFilter{Name: mid.Name}, 100)},
		{"due", func() error { _, err := s.DueJobs(ctx, last.CreatedAt.Add(time.Hour), 100); return err }},
		{"fence", func() error {
			return ignoreFenced(s.CheckFence(ctx, persistence.Fence{VM: mid.ID, Turn: persistence.Turn{Job: "j"}}))
		}},
		{"verifyQuota", func() error { _, err := s.VerifyQuota(ctx, project); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				must(b, c.run())
			}
		})
	}
}

func ignoreFenced(err error) error {
	if _, is := persistence.RefusalOf(err); is {
		return nil
	}
	return err
}
