package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

func TestWhatWasAcknowledgedSurvivesACutLog(t *testing.T) {
	// A power cut leaves what was flushed, and anything or nothing of the rest. For
	// random cuts, with and without rubbish behind them, every commit that was
	// acknowledged while the log was that long must be there, and none by half.
	path := filepath.Join(t.TempDir(), "hcp.db")
	s := open(t, path, false)
	must(t, s.Commit(t.Context(), roomCommit()))
	type ack struct {
		id   hcp.VMID
		size int
	}
	var acks []ack
	ids := ident.Random()
	for range 40 {
		c := createCommit(ids)
		must(t, s.Commit(t.Context(), c))
		info, err := os.Stat(path + "-wal")
		must(t, err)
		acks = append(acks, ack{c.VM.ID, int(info.Size())})
	}
	db, err := os.ReadFile(path)
	must(t, err)
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	if acks[0].size >= acks[39].size || acks[39].size != len(wal) {
		t.Fatal("the log did not grow with the commits: the test proves nothing")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 40 {
		cut := rng.IntN(len(wal) + 1)
		if trial%4 == 0 {
			cut = acks[rng.IntN(len(acks))].size // right at the end of a commit
		}
		torn := append([]byte(nil), wal[:cut]...)
		for range rng.IntN(20000) * (trial % 2) {
			torn = append(torn, byte(rng.Uint32()))
		}
		copied := filepath.Join(t.TempDir(), fmt.Sprintf("cut%d.db", trial))
		must(t, os.WriteFile(copied, db, 0o600))
		must(t, os.WriteFile(copied+"-wal", torn, 0o600))
		after, err := sqlite.Open(t.Context(), sqlite.Config{Path: copied, NoSync: true})
		must(t, err)
		for i, a := range acks {
			_, err := after.LoadVM(t.Context(), a.id)
			if a.size <= cut && err != nil {
				t.Fatalf("trial %d: commit %d was acknowledged with %d bytes of log and is lost at %d: %v", trial, i, a.size, cut, err)
			}
		}
		checkWhole(t, after)
		must(t, after.Close())
	}
}
