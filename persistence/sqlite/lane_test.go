package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// failingConn makes COMMIT fail while told to.
type failingConn struct {
	driver.Conn
	fail atomic.Pointer[error]
}

func (c *failingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err == nil && query == "commit" {
		return &failingStmt{Stmt: s, fail: &c.fail}, nil
	}
	return s, err
}

type failingStmt struct {
	driver.Stmt
	fail *atomic.Pointer[error]
}

func (s *failingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.fail.Load(); err != nil {
		return nil, *err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

type codedError int

func (e codedError) Error() string { return fmt.Sprintf("engine error %d", int(e)) }
func (e codedError) Code() int     { return int(e) }

// failing opens a store whose COMMIT can be made to fail.
func failing(t *testing.T) (*Store, *failingConn) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "hcp.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := &failingConn{Conn: s.lane.conn.raw}
	// In the lane, so that its goroutine sees it.
	if err := s.lane.exec(t.Context(), func(context.Context, querier) error {
		s.lane.conn.raw = f
		delete(s.lane.conn.stmts, "commit")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s, f
}

func insert(id hcp.VMID) persistence.Commit {
	return persistence.Commit{Actor: persistence.ActorRef{Kind: persistence.ActorVM, ID: string(id)}, VM: &hcp.VM{ID: id, Name: string(id)}}
}

func TestAFailedFlushIsAnUnknownOutcomeAndTheLast(t *testing.T) {
	// After a failed fsync the kernel may have dropped the pages and the next fsync
	// succeeds without them: whoever goes on acknowledges what is not on disk.
	s, conn := failing(t)
	ioError := error(codedError(10 | 4<<8))
	conn.fail.Store(&ioError)
	results := make(chan error, 3)
	for _, id := range []hcp.VMID{"vm_a", "vm_b", "vm_c"} {
		s.Submit(insert(id), func(err error) { results <- err })
	}
	unknown := 0
	for range 3 {
		err := <-results
		if errors.Is(err, persistence.ErrUnknownOutcome) {
			unknown++
		} else if e := hcp.AsError(err); e.Reason != "store_broken" {
			t.Errorf("got %v", err)
		}
	}
	if unknown == 0 {
		t.Error("nobody heard that the outcome is unknown")
	}
	conn.fail.Store(nil)
	for what, err := range map[string]error{"commit": s.Commit(t.Context(), insert("vm_d")), "put": s.PutReachability(t.Context(), "c", hcp.Reachability{})} {
		if e := hcp.AsError(err); err == nil || e.Code != hcp.CodeUnavailable || e.Reason != "store_broken" || e.Hint == "" {
			t.Errorf("%s after a failed flush: %v", what, err)
		}
	}
	if _, err := s.ListMembers(t.Context()); err != nil {
		t.Errorf("reads still serve: %v", err)
	}
}

func TestAFullDiskRefusesAndTheStoreGoesOn(t *testing.T) {
	s, conn := failing(t)
	full := error(codedError(codeFull))
	conn.fail.Store(&full)
	err := s.Commit(t.Context(), insert("vm_a"))
	if e := hcp.AsError(err); err == nil || e.Code != hcp.CodeUnavailable || e.Reason != "disk_full" {
		t.Fatalf("got %v", err)
	}
	conn.fail.Store(nil)
	if _, err := s.LoadVM(t.Context(), "vm_a"); !hcp.IsCode(err, hcp.CodeNotFound) {
		t.Errorf("a refused commit was applied: %v", err)
	}
	if err := s.Commit(t.Context(), insert("vm_a")); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
}

func TestACallerThatGivesUpLeavesTheCommitAlone(t *testing.T) {
	s, _ := failing(t)
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.lane.exec(context.Background(), func(context.Context, querier) error { close(held); <-hold; return nil })
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Commit(ctx, insert("vm_a")) }()
	queued := func() bool {
		s.lane.mu.Lock()
		defer s.lane.mu.Unlock()
		return len(s.lane.queue) == 1
	}
	for !queued() {
		runtime.Gosched()
	}
	cancel()
	if err := <-result; !errors.Is(err, persistence.ErrUnknownOutcome) {
		t.Errorf("got %v", err)
	}
	close(hold)
	if err := s.Commit(t.Context(), insert("vm_b")); err != nil { // behind it in the lane
		t.Fatal(err)
	}
	if _, err := s.LoadVM(t.Context(), "vm_a"); err != nil {
		t.Errorf("the commit was given up with its caller: %v", err)
	}
}

func TestReadsThatAreCutShortLeaveThePoolWhole(t *testing.T) {
	s, _ := failing(t)
	for i := range 300 {
		if err := s.Commit(t.Context(), insert(hcp.VMID(fmt.Sprintf("vm_%d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	page := persistence.VMFilter{Page: persistence.Page{Limit: 300}}
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel() // somewhere in the middle
				_, _ = s.ListVMs(ctx, page)
				_, _, _ = s.EventsAfter(ctx, persistence.EventFilter{}, 0, 10)
			}
		}()
	}
	for range 8 {
		<-done
	}
	if n := len(s.pool.idle); n != readers {
		t.Errorf("%d of %d connections came back", n, readers)
	}
	for range 2 * readers {
		if vms, err := s.ListVMs(t.Context(), page); err != nil || len(vms) != 300 {
			t.Fatalf("%d VMs, %v", len(vms), err)
		}
		if _, _, err := s.EventsAfter(t.Context(), persistence.EventFilter{}, 0, 10); err != nil {
			t.Fatal(err)
		}
	}
}
