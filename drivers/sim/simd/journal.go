package simd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/lotuscloud/hcp/drivers/sim/world"
)

// compactAt is how large a journal may grow beside a smaller snapshot.
const compactAt = 16 << 20

// journal keeps the world in a folder: snapshot.jsonl is the world at the start
// of generation N, journal-N.jsonl what changed since. Each line is one record.
// The first line of the snapshot is its header.
type journal struct {
	dir      string
	lock     *os.File
	gen      int64
	file     *os.File
	size     int64
	snapshot int64 // size of the snapshot
	buf      bytes.Buffer
}

type header struct {
	Sim int   `json:"sim"` // format
	Gen int64 `json:"gen"`
}

const format = 1

// openJournal locks the folder and reads its world, or starts a new one there.
func openJournal(dir string, fresh world.Config) (_ *journal, _ *world.World, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("the data folder of the sim cannot be made: %w", err)
	}
	j := &journal{dir: dir}
	j.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("the data folder of the sim cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = j.close()
		}
	}()
	if err := syscall.Flock(int(j.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, nil, fmt.Errorf("the data folder %s is in use by another sim; stop it or choose another folder", dir)
	}
	w, err := j.load()
	if err != nil {
		return nil, nil, err
	}
	if w == nil {
		w = world.New(fresh)
		if err := j.compact(w); err != nil {
			return nil, nil, err
		}
	}
	return j, w, nil
}

func (j *journal) snapshotPath() string { return filepath.Join(j.dir, "snapshot.jsonl") }
func (j *journal) journalPath(gen int64) string {
	return filepath.Join(j.dir, fmt.Sprintf("journal-%d.jsonl", gen))
}

// load reads snapshot and journal; nil without error when there is none yet.
func (j *journal) load() (*world.World, error) {
	f, err := os.Open(j.snapshotPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the world of the sim cannot be read: %w", err)
	}
	defer f.Close()
	w := world.Restore()
	first := true
	// A snapshot was renamed into place when it was whole: a torn one is damage.
	j.snapshot, err = lines(f, func(line []byte) error {
		if first {
			first = false
			var h header
			if err := json.Unmarshal(line, &h); err != nil || h.Sim != format {
				return fmt.Errorf("its first line is no header of format %d", format)
			}
			j.gen = h.Gen
			return nil
		}
		return apply(w, line)
	})
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", j.snapshotPath(), err)
	}
	if err := j.replay(w); err != nil {
		return nil, err
	}
	return w, nil
}

// replay applies the journal and cuts off a last line that a kill tore.
func (j *journal) replay(w *world.World) error {
	var err error
	path := j.journalPath(j.gen)
	j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the journal of the sim cannot be opened: %w", err)
	}
	j.size, err = lines(j.file, func(line []byte) error { return apply(w, line) })
	if err != nil && !errors.Is(err, errTorn) {
		return fmt.Errorf("%s is damaged after byte %d: %w", path, j.size, err)
	}
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("the journal of the sim cannot be cut to its last whole line: %w", err)
	}
	if _, err := j.file.Seek(j.size, io.SeekStart); err != nil {
		return fmt.Errorf("the journal of the sim cannot be continued: %w", err)
	}
	// A kill between a compaction's rename and its clean-up leaves the older journal.
	_ = os.Remove(j.journalPath(j.gen - 1))
	return nil
}

func apply(w *world.World, line []byte) error {
	var r world.Record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	return w.Apply(&r)
}

var errTorn = errors.New("the last line is not whole")

// lines calls f with each line and returns the length of what f took; errTorn
// when the last one has no end.
func lines(r io.Reader, f func([]byte) error) (good int64, err error) {
	br := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := br.ReadBytes('\n')
		if err == io.EOF {
			if len(line) > 0 {
				return good, errTorn
			}
			return good, nil
		}
		if err != nil {
			return good, err
		}
		if err := f(line); err != nil {
			return good, err
		}
		good += int64(len(line))
	}
}

// append writes one record in a single write; a large journal is compacted after it.
func (j *journal) append(r *world.Record, w *world.World) error {
	j.buf.Reset()
	if err := json.NewEncoder(&j.buf).Encode(r); err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	n, err := j.file.Write(j.buf.Bytes())
	j.size += int64(n)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if j.size > max(compactAt, 2*j.snapshot) {
		return j.compact(w)
	}
	return nil
}

// compact writes the world as a snapshot of the next generation and starts its
// journal. Until the rename the old pair counts, after it the new one.
func (j *journal) compact(w *world.World) error {
	next := j.gen + 1
	tmp, err := os.OpenFile(j.snapshotPath()+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	defer tmp.Close()
	counted := &counter{w: bufio.NewWriterSize(tmp, 1<<16)}
	enc := json.NewEncoder(counted)
	if err := enc.Encode(header{format, next}); err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	if err := w.Snapshot(func(r *world.Record) error { return enc.Encode(r) }); err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	if err := counted.w.Flush(); err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	fresh, err := os.OpenFile(j.journalPath(next), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("start a journal: %w", err)
	}
	if err := os.Rename(tmp.Name(), j.snapshotPath()); err != nil {
		_ = fresh.Close()
		return fmt.Errorf("put a snapshot in place: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close()
		_ = os.Remove(j.journalPath(j.gen))
	}
	j.file, j.gen, j.size, j.snapshot = fresh, next, 0, counted.n
	return nil
}

func (j *journal) close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close()) // closing lets go of the lock
}

type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.w.Write(p)
}
