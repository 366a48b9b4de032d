package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"
	vendor "modernc.org/sqlite"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/migrations"
	"github.com/lotuscloud/hcp/persistence/sqlstore"
)

// Config says where the database is.
type Config struct {
	Path string           // of the database file; its folder must exist
	Now  func() time.Time // tells how long a flush took, for the log; nil: flushes are not timed
	Log  *slog.Logger     // nil: silent
	// NoSync skips flushing to disk. For tests of logic only: a crash of the machine
	// loses what was acknowledged.
	NoSync bool
}

// Store is an open database. It implements persistence.Store.
type Store struct {
	sqlstore.Reads
	lane *lane
	pool *pool
	lock *fileLock

	closing  sync.Once
	closeErr error
}

var _ persistence.Store = (*Store)(nil)

// Open opens or creates the database, brings its schema up to date, and takes the
// lock that keeps other processes out. The error is *hcp.Error UNAVAILABLE and
// says what to do: reason database_in_use, unwritable, not_a_database,
// schema_newer or store_unavailable.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil || cfg.Path == "" {
		return nil, unavailable("unwritable", "the path of the database is not valid", err)
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, path, cfg, lock)
	if err != nil {
		lock.release()
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, path string, cfg Config, lock *fileLock) (*Store, error) {
	// fdatasync is as durable for a file whose size the log knows, and spares the
	// file system's journal.
	if _, err := vendor.Fdatasync(true); err != nil && !errors.Is(err, vendor.ErrFdatasyncUnavailable) {
		return nil, unavailable("store_unavailable", "the database cannot be flushed to disk", err)
	}
	if err := migrate(ctx, path, cfg.NoSync); err != nil {
		return nil, err
	}
	w, err := connect(ctx, dsn(path, false, cfg.NoSync))
	if err != nil {
		return nil, err
	}
	nextEvent, err := settle(ctx, w, path, lock)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	p := newPool(dsn(path, true, cfg.NoSync))
	s := &Store{Reads: sqlstore.Reads{DB: p}, pool: p, lock: lock}
	s.lane = startLane(w, nextEvent, cfg)
	return s, nil
}

// checkPath refuses early what SQLite would answer with riddles.
func checkPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return unavailable("unwritable", fmt.Sprintf("the folder of the database %s does not exist", path), err).
				WithHint("create the folder, or choose another with --data")
		}
		return nil
	case err != nil:
		return unavailable("unwritable", fmt.Sprintf("the database %s cannot be reached", path), err)
	case info.IsDir():
		return unavailable("unwritable", fmt.Sprintf("the database %s is a folder", path), nil).WithHint("name a file, or choose another folder with --data")
	case info.Size() == 0:
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return unavailable("unwritable", fmt.Sprintf("the database %s cannot be written", path), err).
			WithHint("give the user that runs hcpd the right to write the file and its folder")
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	if n, _ := f.Read(head); string(head[:n]) != magic {
		return notADatabase(path, nil)
	}
	return nil
}

func notADatabase(path string, err error) *hcp.Error {
	return unavailable("not_a_database", fmt.Sprintf("the file %s is not a database of HCP", path), err).
		WithHint("move the file away, or choose another folder with --data")
}

// dsn names the file and the settings every connection needs.
func dsn(path string, readOnly, noSync bool) string {
	q := url.Values{}
	sync := "FULL"
	if noSync {
		sync = "OFF"
	}
	pragmas := []string{"busy_timeout(5000)", "synchronous(" + sync + ")", "foreign_keys(0)", "temp_store(2)"}
	if readOnly {
		q.Set("mode", "ro")
		pragmas = append(pragmas, "query_only(1)", "cache_size(-4000)")
	} else {
		pragmas = append(pragmas, "journal_mode(WAL)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-16000)")
	}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// migrate brings the schema up to date; the caller holds the lock.
func migrate(ctx context.Context, path string, noSync bool) (err error) {
	db, err := sql.Open("sqlite", dsn(path, false, noSync))
	if err != nil {
		return engineError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return engineError(err)
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return schemaError(path, err)
	}
	if have > want {
		return unavailable("schema_newer", fmt.Sprintf("the database %s was written by a newer release of HCP (schema %d, this release knows %d)", path, have, want), nil).
			WithHint("run the newer release, or restore a backup made by this one")
	}
	if _, err := provider.Up(ctx); err != nil {
		return schemaError(path, err)
	}
	return nil
}

func schemaError(path string, err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) && coded.Code()&0xff == codeNotADatabase {
		return notADatabase(path, err)
	}
	return unavailable("store_unavailable", fmt.Sprintf("the schema of the database %s cannot be brought up to date", path), err).
		WithHint("see the cause in the log; the database was left as it was")
}

// settle gives the database its generation and finds the next event number. A
// copy, or a file that went back in time, is another history: cursors into the
// old one must not read on as if nothing had happened.
func settle(ctx context.Context, w *conn, path string, lock *fileLock) (nextEvent int64, err error) {
	identity, err := identityOf(path)
	if err != nil {
		return 0, unavailable("store_unavailable", "the database file cannot be examined", err)
	}
	if err := w.begin(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			w.rollback()
		}
	}()
	last, err := sqlstore.LastPositionOf(ctx, w)
	if err != nil {
		return 0, err
	}
	if err := sqlstore.SettleGeneration(ctx, w, identity, uuid.NewString(), last < lock.watermark()); err != nil {
		return 0, err
	}
	if nextEvent, err = sqlstore.FirstFreeEvent(ctx, w); err != nil {
		return 0, err
	}
	if err := w.commit(ctx); err != nil {
		return 0, engineError(err)
	}
	lock.advance(last)
	return nextEvent, nil
}

// Stats counts what the lane did.
func (s *Store) Stats() persistence.Stats { return s.lane.stats() }

// Close refuses what is new, finishes what was queued, and gives the lock back.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.lane.drain()
		// The writing connection goes last: only it can fold the log into the file.
		s.closeErr = errors.Join(s.pool.close(), s.lane.conn.Close())
		s.lock.release()
	})
	return s.closeErr
}
