package api

import (
	"net/http"

	"github.com/lotuscloud/hcp"
)

// do sends the command to its owner and turns what came back into the answer.
// Accepted, the audit row is in the actor's commit; a replay or a refusal leaves
// it to us.
func (s *Server) do(c *call, cmd hcp.Command) (hcp.Answer, error) {
	cmd.ID = id[hcp.CommandID](s, hcp.KindCommand)
	cmd.Call = c.hcpCall()
	cmd.Key = c.key
	if d, has := c.ctx.Deadline(); has {
		cmd.Deadline = d.UTC()
	}
	a, err := s.Commander.Do(c.ctx, cmd)
	if err != nil {
		if c.ctx.Err() != nil {
			return a, hcp.Errorf(hcp.CodeUnavailable, "timeout", "HCP did not answer in time").
				WithHint("repeat the call with the same Idempotency-Key: it has one effect").WithCause(err)
		}
		return a, err
	}
	if a.Fault != nil {
		e := a.Fault.Error()
		if a.Fault.Job != "" {
			e = e.WithDetail("job_id", string(a.Fault.Job))
		}
		return a, e
	}
	return a, nil
}

// accepted passes the owner's answer on.
func (c *call) accepted(a hcp.Answer) answer {
	c.audited = c.route.Audit == AuditActor && !a.Replayed
	out := answer{status: a.Status, raw: a.Body, replayed: a.Replayed}
	if a.Status == http.StatusAccepted {
		out.location = c.jobPath(a.Job)
	}
	return out
}
