package simd

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/world"
)

func put(t *testing.T, j *journal, w *world.World, id int) {
	t.Helper()
	w.At(time.UnixMilli(1))
	out := w.Do(simapi.OpClone, fmt.Appendf(nil, `{"id":"%d","name":"n","image":"debian-12","vcpus":1,"memory_mib":1,"disk_gib":1}`, id))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if err := j.append(w.Drain(), w); err != nil {
		t.Fatal(err)
	}
}

func machines(w *world.World) (ids []string) {
	for _, m := range w.All().Machines {
		ids = append(ids, m.ID)
	}
	return ids
}

// A kill at any point of a compaction leaves files of both generations in some
// mixture; each must give the same world.
func TestCompactionSurvivesAKillAtEachOfItsSteps(t *testing.T) {
	base := t.TempDir()
	j, w, err := openJournal(base, world.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range 20 {
		put(t, j, w, 100+id)
	}
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	if err := j.compact(w); err != nil {
		t.Fatal(err)
	}
	want := machines(w)
	read := func(dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	}
	oldSnap, oldJournal := read(old, "snapshot.jsonl"), read(old, "journal-1.jsonl")
	newSnap := read(base, "snapshot.jsonl")
	if len(oldJournal) == 0 || read(base, "journal-1.jsonl") != nil {
		t.Fatal("the journal of the first generation is empty, or still there after the compaction")
	}
	for step, files := range map[string]map[string][]byte{
		"snapshot half written": {"snapshot.jsonl": oldSnap, "journal-1.jsonl": oldJournal, "snapshot.jsonl.new": newSnap[:len(newSnap)/2]},
		"next journal made":     {"snapshot.jsonl": oldSnap, "journal-1.jsonl": oldJournal, "snapshot.jsonl.new": newSnap, "journal-2.jsonl": {}},
		"snapshot renamed":      {"snapshot.jsonl": newSnap, "journal-1.jsonl": oldJournal, "journal-2.jsonl": {}},
		"old journal removed":   {"snapshot.jsonl": newSnap, "journal-2.jsonl": {}},
		"journal not yet made":  {"snapshot.jsonl": newSnap},
	} {
		dir := t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // it goes on from there, through another compaction
			k, w2, err := openJournal(dir, world.Config{})
			if err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			if got := machines(w2); !slices.Equal(got, want) {
				t.Errorf("%s: machines are %v, want %v", step, got, want)
			}
			if err := k.compact(w2); err != nil {
				t.Fatal(err)
			}
			if err := k.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

func TestLargeJournalIsCompacted(t *testing.T) {
	j, w, err := openJournal(t.TempDir(), world.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	put(t, j, w, 100)
	j.size = compactAt
	put(t, j, w, 101)
	if j.gen != 2 || j.size != 0 {
		t.Errorf("after %d bytes the journal is generation %d with %d bytes", compactAt, j.gen, j.size)
	}
}

// What could not be written must not be answered, now or later: the caller would
// build on a world that the next start does not have.
func TestNothingIsAnsweredOnceTheJournalFails(t *testing.T) {
	s, err := NewServer(Config{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	defer hs.Close()
	post := func(path, body string) error {
		res, err := hs.Client().Post(hs.URL+path, "application/json", strings.NewReader(body))
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	if err := post("/control/boot", `{"ms":1}`); err != nil {
		t.Fatal(err)
	}
	if err := s.journal.file.Close(); err != nil { // as a full disk would
		t.Fatal(err)
	}
	for _, path := range []string{"/control/boot", "/control/list", "/api/login"} {
		if post(path, `{}`) == nil {
			t.Errorf("%s is answered although the world cannot be written", path)
		}
	}
	if err := s.Close(); err == nil {
		t.Error("close says nothing of the journal that could not be written")
	}
}
