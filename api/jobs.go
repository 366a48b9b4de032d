package api

import (
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// maxWait is the longest that /wait holds a call.
const maxWait = 60 * time.Second

func (c *call) theJob() (hcp.Job, error) {
	ref, err := c.paramRef("job", "job")
	if err != nil {
		return hcp.Job{}, err
	}
	j, err := c.s.Store.GetJob(c.ctx, c.project.ID, hcp.JobID(ref))
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return j, hcp.NotFound("job")
	case err != nil:
		return j, err
	}
	c.target = hcp.LRNOfJob(j.Region, j.Project, j.ID)
	return j, nil
}

func (s *Server) getJob(c *call) (answer, error) {
	j, err := c.theJob()
	if err != nil {
		return answer{}, err
	}
	return ok(j.View())
}

func (s *Server) listJobs(c *call) (answer, error) {
	filter := c.filter()
	page, err := c.page(filter)
	if err != nil {
		return answer{}, err
	}
	f := persistence.JobFilter{Project: c.project.ID, Kind: hcp.JobKind(c.query.Get("kind")), State: hcp.JobState(c.query.Get("state")), Page: page}
	if v := c.query.Get("vm"); v != "" {
		ref, err := c.ref(v, "vm")
		if err != nil {
			return answer{}, err
		}
		k, err := c.findVM(ref)
		if err != nil {
			return answer{}, err
		}
		f.VM = k.VM.ID
	}
	rows, err := s.Store.ListJobs(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, rows, page.Limit, jobPosition, hcp.Job.View)
}

func jobPosition(j hcp.Job) persistence.Position {
	return persistence.Position{CreatedAt: j.CreatedAt, ID: string(j.ID)}
}

func jobVerb(v hcp.Verb) func(*Server, *call) (answer, error) {
	return func(s *Server, c *call) (answer, error) {
		j, err := c.theJob()
		if err != nil {
			return answer{}, err
		}
		return s.accept(c, hcp.Command{Verb: v, Cluster: j.Cluster, VM: j.VM, Job: j.ID})
	}
}

// waitJob costs nothing while it waits: it reads when it is woken, and every
// Reread in case the hint was lost.
func (s *Server) waitJob(c *call) (answer, error) {
	timeout, err := c.duration("timeout", 30*time.Second, 0, maxWait)
	if err != nil {
		return answer{}, err
	}
	j, err := c.theJob()
	if err != nil || j.State.Final() || timeout == 0 {
		return jobAnswer(j, err)
	}
	woken, stop := s.Wakes.WaitJob(j.ID)
	defer stop()
	ticks, stopTicks := s.Clock.NewTicker(s.Limits.Reread)
	defer stopTicks()
	over := make(chan struct{})
	defer s.Clock.AfterFunc(timeout, func() { close(over) })()
	for {
		// Read after WaitJob: what was committed before it has no hint any more.
		if j, err = c.theJob(); err != nil || j.State.Final() {
			return jobAnswer(j, err)
		}
		select {
		case <-woken:
		case <-ticks:
		case <-over:
			return jobAnswer(j, nil)
		case <-s.draining:
			return jobAnswer(j, nil)
		case <-c.ctx.Done():
			return answer{}, c.ctx.Err()
		}
	}
}

func jobAnswer(j hcp.Job, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return ok(j.View())
}
