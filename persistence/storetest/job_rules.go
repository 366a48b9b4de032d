package storetest

import (
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestJobsAreReplacedByIDAndWakeByTheCommit(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	a := w.job(v, hcp.JobCreate, 1, func(j *hcp.Job) { j.State = hcp.JobRunning })
	b := w.job(v, hcp.JobStart, 2)
	w.must(persistence.Commit{Actor: vmActor(v.ID), VM: &v, Jobs: []hcp.Job{b, a}, Wake: map[hcp.JobID]time.Time{a.ID: w.at(10), b.ID: w.at(5)}})
	w.same("by queue", []hcp.Job{a, b}, ok(w.store.LoadVM(w.ctx, v.ID))(w).Jobs)
	w.same("not due", 0, len(ok(w.store.DueJobs(w.ctx, w.at(4), 10))(w)))
	due := ok(w.store.DueJobs(w.ctx, w.at(10), 10))(w)
	w.same("due, oldest first", []persistence.DueJob{{Job: b.ID, VM: v.ID, Cluster: v.Cluster, WakeAt: w.at(5)}, {Job: a.ID, VM: v.ID, Cluster: v.Cluster, WakeAt: w.at(10)}}, due)
	w.same("limited", due[:1], ok(w.store.DueJobs(w.ctx, w.at(10), 1))(w))

	a.State, a.NextAttemptAt = hcp.JobWaiting, w.at(99)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 1, Jobs: []hcp.Job{a}, Wake: map[hcp.JobID]time.Time{a.ID: w.at(99)}})
	w.same("woken later", []persistence.DueJob{due[0]}, ok(w.store.DueJobs(w.ctx, w.at(98), 10))(w))
	w.same("count", map[hcp.JobKind]map[hcp.JobState]int{hcp.JobCreate: {hcp.JobWaiting: 1}, hcp.JobStart: {hcp.JobQueued: 1}}, ok(w.store.CountJobs(w.ctx))(w))

	b.State = hcp.JobRunning // says nothing of its wake-up: it keeps the one it has
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 2, Jobs: []hcp.Job{b}})
	w.same("kept", []persistence.DueJob{due[0]}, ok(w.store.DueJobs(w.ctx, w.at(98), 10))(w))

	a.State, a.FinishedAt = hcp.JobSucceeded, w.at(20)
	b.State, b.FinishedAt = hcp.JobFailed, w.at(21)
	w.must(persistence.Commit{Actor: vmActor(v.ID), Epoch: 1, Seq: 3, Jobs: []hcp.Job{b, a}})
	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if len(st.Jobs) != 0 || st.Last == nil {
		t.Fatalf("%d live jobs, last %v", len(st.Jobs), st.Last)
	}
	w.same("the newest final", b, *st.Last)
	w.same("none due", 0, len(ok(w.store.DueJobs(w.ctx, w.at(1<<20), 10))(w)))
	w.same("none counted", 0, len(ok(w.store.CountJobs(w.ctx))(w)))
}

func (s *suite) TestANewJobWithoutAWakeTimeIsDueAtOnce(t *testing.T) {
	w := s.world(t)
	v := w.vm()
	w.must(persistence.Commit{Actor: vmActor(v.ID), VM: &v, Jobs: []hcp.Job{w.job(v, hcp.JobCreate, 1)}})
	if due := ok(w.store.DueJobs(w.ctx, w.at(0), 10))(w); len(due) != 1 {
		t.Errorf("%d due", len(due))
	}
}
