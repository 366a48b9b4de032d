package sqlite_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

const crashEnv = "HCP_TEST_CRASH_DATABASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Fprintln(os.Stderr, commitUntilKilled(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m) // a closed store leaves no goroutine
}

// commitUntilKilled prints the id of every acknowledged VM, from several
// submitters, while a publisher numbers the events.
func commitUntilKilled(path string) error {
	ctx, ids := contextBackground(), ident.Random()
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	if err := s.Commit(ctx, roomCommit()); err != nil {
		return err
	}
	out := make(chan string, 64)
	failed := make(chan error, 8)
	for range 6 {
		go func() {
			for {
				c := createCommit(ids)
				if err := s.Commit(ctx, c); err != nil {
					failed <- err
					return
				}
				out <- c.Actor.ID
			}
		}()
	}
	go func() {
		for {
			if _, err := s.Publish(ctx, 50); err != nil {
				failed <- err
				return
			}
		}
	}()
	for {
		select {
		case err := <-failed:
			return err
		case id := <-out:
			if _, err := fmt.Println(id); err != nil {
				return err
			}
		}
	}
}

func TestWhatWasAcknowledgedIsThereAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hcp.db")
	acknowledged := map[string]bool{}
	for round := range 4 {
		for _, id := range killAfter(t, path, 150+100*round) {
			acknowledged[id] = true
		}
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}) // the dead process's lock went with it
		must(t, err)
		for id := range acknowledged {
			st, err := s.LoadVM(t.Context(), hcp.VMID(id))
			if err != nil || st.Seq != 1 || len(st.Jobs) != 1 {
				t.Fatalf("round %d: %s was acknowledged and reads %+v, %v", round, id, st, err)
			}
		}
		checkWhole(t, s)
		must(t, s.Close())
	}
	if len(acknowledged) < 600 {
		t.Fatalf("only %d commits were acknowledged", len(acknowledged))
	}
}

// killAfter kills the child once it has acknowledged that many, and returns all
// that it printed until it died.
func killAfter(t *testing.T, path string, count int) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var ids []string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		ids = append(ids, lines.Text())
		if len(ids) == count {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // killed
	if len(ids) < count {
		t.Fatalf("the child ended after %d: %s", len(ids), stderr.String())
	}
	if last := ids[len(ids)-1]; !hcp.IsID(hcp.KindVM, last) {
		ids = ids[:len(ids)-1] // cut by the kill
	}
	return ids
}

// checkWhole sees that no commit was half applied and no position lost.
func checkWhole(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := t.Context()
	if d, err := s.VerifyQuota(ctx, ""); err != nil || len(d) > 0 {
		t.Fatalf("quota drift %v, %v", d, err)
	}
	if d, err := s.VerifyCapacity(ctx); err != nil || len(d) > 0 {
		t.Fatalf("capacity drift %v, %v", d, err)
	}
	for {
		events, err := s.Publish(ctx, 1000)
		must(t, err)
		if len(events) == 0 {
			break
		}
	}
	seqs := map[hcp.VMID]int64{}
	for pos := int64(0); ; {
		events, searched, err := s.EventsAfter(ctx, persistence.EventFilter{}, pos, 1000)
		must(t, err)
		for _, e := range events {
			if pos++; e.Pos != pos || e.Seq != seqs[e.VM]+1 {
				t.Fatalf("event %d of %s stands at %d, want seq %d at %d", e.Seq, e.VM, e.Pos, seqs[e.VM]+1, pos)
			}
			seqs[e.VM] = e.Seq
		}
		if len(events) == 0 {
			if searched != pos {
				t.Fatal(errors.New("the search did not end"))
			}
			break
		}
	}
	for vm, seq := range seqs {
		if seq != 3 {
			t.Fatalf("%s has %d events", vm, seq)
		}
	}
}
