package vm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/provider"
)

// explain answers why the VM is where it is, from memory: it writes nothing and
// waits for nothing. The provider's own words are in it; the API takes them out
// for tenants.
func (a *Actor) explain(now time.Time) hcp.Answer {
	if !a.state.exists() {
		return refuse(hcp.NotFound("VM"))
	}
	inFlight, last := a.calls.Snapshot()
	e := hcp.Explanation{VM: a.state.VM.ID, State: a.state.VM.State(), Queue: []hcp.JobView{}, MayDo: []string{},
		InFlight: shown(inFlight), LastCall: shown(last)}
	for i, j := range a.state.Jobs {
		view := j.View()
		if i == 0 {
			e.Job = &view
			e.NextAttemptAt = view.NextAttemptAt
			if s := j.Current(); s != nil {
				e.Step = s.Name
			}
			continue
		}
		e.Queue = append(e.Queue, view)
	}
	e.Summary, e.MayDo = a.summary(now, inFlight)
	body, err := json.Marshal(e)
	if err != nil {
		return refuse(err)
	}
	return hcp.Answer{Status: http.StatusOK, Body: body, VM: a.state.VM.ID}
}

func shown(c *provider.Call) *hcp.InFlightCall {
	if c == nil {
		return nil
	}
	s := &hcp.InFlightCall{Op: c.Op, Since: c.Since}
	if !c.EndedAt.IsZero() {
		ended := c.EndedAt
		s.EndedAt = &ended
	}
	if c.Err != nil {
		s.Code = c.Err.Code
		if c.Err.Err != nil {
			s.Answer = c.Err.Err.Error()
		}
	}
	return s
}

// summary is the one sentence, and what a person may do.
func (a *Actor) summary(now time.Time, inFlight *provider.Call) (string, []string) {
	st := a.state
	if len(st.Jobs) == 0 {
		return a.atRest()
	}
	job := st.Jobs[0]
	step := job.Current()
	way := "is at step"
	if job.Phase == hcp.PhaseUndo {
		way = "is undoing step"
	}
	text := fmt.Sprintf("%s %s %s (attempt %d)", job.Kind, way, step.Name, max(step.Attempts, step.UndoTries))
	may := []string{}
	switch {
	case job.State == hcp.JobWaiting && step.Error != nil:
		text += fmt.Sprintf("; the last attempt ended with %s (%s); the next is in %s", step.Error.Code, step.Error.Message,
			max(job.NextAttemptAt.Sub(now), 0).Round(time.Second))
	case inFlight != nil:
		text += fmt.Sprintf("; the call %s to the hypervisor is in flight since %s", inFlight.Op, now.Sub(inFlight.Since).Round(time.Millisecond))
	case st.Running != nil:
		text += "; it waits for the hypervisor to finish, or for its turn there"
	}
	if job.Cancel != nil {
		text += fmt.Sprintf("; it was asked to cancel (%s)", job.Cancel.Reason)
	} else if step.Cancellable && job.Phase == hcp.PhaseForward {
		may = append(may, "cancel the job")
	}
	if n := len(st.Jobs) - 1; n > 0 {
		text += fmt.Sprintf("; %d more wait behind it", n)
	}
	if job.Kind != hcp.JobDelete {
		may = append(may, "delete the VM")
	}
	return text, may
}

func (a *Actor) atRest() (string, []string) {
	st := a.state
	state := st.VM.State()
	text := fmt.Sprintf("the VM is %s and has nothing to do", state)
	may := []string{}
	if last := st.Last; last != nil && last.State != hcp.JobSucceeded && last.Error != nil {
		text = fmt.Sprintf("the VM is %s; its last job %s ended %s with %s: %s", state, last.Kind, last.State, last.Error.Code, last.Error.Message)
		if since, ok := last.Error.Details["call_started_at"]; ok {
			text += fmt.Sprintf(" (step %v, call begun at %v)", last.Error.Details["step"], since)
		}
	}
	if st.mayRetry() {
		may = append(may, "retry the create")
	}
	for _, kind := range []hcp.JobKind{hcp.JobStart, hcp.JobStop, hcp.JobReboot} {
		if hcp.JudgeVerb(kind, st.VM.Lifecycle, st.VM.Power) == nil {
			may = append(may, kind.Word()+" the VM")
		}
	}
	if st.VM.Lifecycle != hcp.LifecycleDeleted {
		may = append(may, "delete the VM")
	}
	return text, may
}
