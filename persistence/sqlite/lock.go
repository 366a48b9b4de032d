package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileLock keeps a second process off the database. SQLite would let it in, and
// then two lanes would each believe that theirs are the only counters. The file
// holds the holder's pid and, apart, the last event position: by that a database
// that was overwritten with an older copy is recognised.
type fileLock struct {
	f    *os.File
	mark atomic.Int64
}

const (
	pidWidth = 32 // bytes at the start of the file, padded with spaces
	markAt   = pidWidth
)

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable("unwritable", fmt.Sprintf("the folder of the database cannot be written: %s cannot be made", path), err).
			WithHint("give the user that runs hcpd the right to write the folder, or choose another with --data")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, inUse(f, path)
		}
		return nil, unavailable("unwritable", fmt.Sprintf("the lock %s cannot be taken", path), err).
			WithHint("the data folder must be on a file system with locks")
	}
	l := &fileLock{f: f}
	l.mark.Store(readMark(f))
	if _, err := f.WriteAt([]byte(fmt.Sprintf("%-*d\n", pidWidth-1, os.Getpid())), 0); err != nil {
		l.release()
		return nil, unavailable("unwritable", fmt.Sprintf("the lock %s cannot be written", path), err)
	}
	return l, nil
}

func inUse(f *os.File, path string) error {
	holder := "another process"
	head := make([]byte, pidWidth)
	if n, _ := f.ReadAt(head, 0); n > 0 {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(head[:n]))); err == nil {
			holder = "process " + strconv.Itoa(pid)
		}
	}
	return unavailable("database_in_use", fmt.Sprintf("the database %s is in use by %s", strings.TrimSuffix(path, ".lock"), holder), nil).
		WithHint("stop the other hcpd, or choose another folder with --data")
}

func readMark(f *os.File) int64 {
	var b [8]byte
	if n, _ := f.ReadAt(b[:], markAt); n != len(b) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// watermark is the last position that this folder's database was known to have.
func (l *fileLock) watermark() int64 { return l.mark.Load() }

// advance notes a position whose commit is on disk; it may be lost, never early.
func (l *fileLock) advance(pos int64) {
	l.mark.Store(pos)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(pos))
	_, _ = l.f.WriteAt(b[:], markAt) // a lost note only makes a restore harder to notice
}

// release gives the lock back; the file stays, or a third process could lock a
// file that is no longer there.
func (l *fileLock) release() { _ = l.f.Close() }

// identityOf tells a file from its copy.
func identityOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fs.ErrInvalid
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(st.Ino, 16), nil
}
