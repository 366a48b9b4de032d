package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlite"
)

func contextBackground() context.Context { return context.Background() }

func roomCommit() persistence.Commit {
	limit := hcp.Sizes{VCPUs: 1 << 40, MemoryMiB: 1 << 40, DiskGiB: 1 << 40}
	return persistence.Commit{Capacity: []persistence.CapacityLimit{{Cluster: "cl_1", Limit: limit}}}
}

func TestASecondProcessIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hcp.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	must(t, err)
	e := openError(t, path, "database_in_use")
	if !strings.Contains(e.Message, path) || !strings.Contains(e.Message, fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the message does not name file and holder: %s", e.Message)
	}
	must(t, s.Close())
	open(t, path, true) // the lock went with the holder
}

func openError(t *testing.T, path, reason string) *hcp.Error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	if err == nil {
		_ = s.Close()
	}
	var e *hcp.Error
	if !errors.As(err, &e) || e.Code != hcp.CodeUnavailable || e.Reason != reason || e.Hint == "" {
		t.Fatalf("%s: got %v, want %s with a hint", path, err, reason)
	}
	return e
}

func TestAWrongFileIsExplainedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	openError(t, dir, "unwritable")
	openError(t, filepath.Join(dir, "no", "such", "hcp.db"), "unwritable")
	openError(t, "/proc/hcp.db", "unwritable")
	text := filepath.Join(dir, "text")
	header := filepath.Join(dir, "header")
	for path, content := range map[string]string{text: "this is no database\n", header: "SQLite format 3\x00" + strings.Repeat("rubbish ", 1000)} {
		must(t, os.WriteFile(path, []byte(content), 0o600))
		openError(t, path, "not_a_database")
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%s was changed", path)
		}
	}
	if s, err := sqlite.Open(t.Context(), sqlite.Config{}); err == nil {
		_ = s.Close()
		t.Error("an empty path was opened")
	}
	empty := filepath.Join(dir, "empty")
	must(t, os.WriteFile(empty, nil, 0o600))
	open(t, empty, true) // as left by a disk that was full at the first start
	odd := filepath.Join(dir, "a b?c#d%e&f=é.db")
	open(t, odd, true)
	if _, err := os.Stat(odd); err != nil {
		t.Errorf("an odd path went elsewhere: %v", err)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hcp.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	must(t, err)
	must(t, s.Close())
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.Exec(`insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	must(t, err)
	must(t, db.Close())
	if e := openError(t, path, "schema_newer"); !strings.Contains(e.Message, "99999") {
		t.Errorf("the message does not name the schema: %s", e.Message)
	}
}

func TestACopyAndARestoreAreNewHistories(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "hcp.db"), filepath.Join(dir, "backup.db")
	use := func(path string, publish bool) string {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
		must(t, err)
		defer func() { must(t, s.Close()) }()
		if publish {
			must(t, s.Commit(t.Context(), persistence.Commit{Events: []hcp.Event{{ID: "evt_1", Type: hcp.EventSecurityAlert}}}))
			_, err := s.Publish(t.Context(), 10)
			must(t, err)
		}
		g, err := s.Generation(t.Context())
		must(t, err)
		return g
	}
	first := use(path, true)
	if again := use(path, false); again != first {
		t.Error("a restart changed the generation")
	}
	copyFile(t, path, backup)
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("a closed database left its log beside it")
	}
	if other := use(backup, false); other == first {
		t.Error("a copy has the generation of its original")
	}
	use(path, true) // goes on, two positions further
	copyFile(t, backup, path)
	restored := use(path, false)
	if restored == first {
		t.Error("a database restored in place kept its generation: old cursors would skip events")
	}
	if again := use(path, true); again != restored {
		t.Error("a restart after the restore changed the generation")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600)) // over the same file: what cp does
}
