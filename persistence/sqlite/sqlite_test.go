package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/sqlite"
	"github.com/lotuscloud/hcp/persistence/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) persistence.Store { return open(t, filepath.Join(t.TempDir(), "hcp.db"), true) })
}

func open(t testing.TB, path string, noSync bool) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: noSync})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
