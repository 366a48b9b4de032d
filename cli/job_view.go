package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
)

var jobListing = listing[hcp.JobView]{
	noun: "jobs",
	name: func(j hcp.JobView) string { return string(j.ID) },
	columns: []column[hcp.JobView]{
		{head: "ID", keep: true, cell: func(_ *app, j hcp.JobView) string { return string(j.ID) }},
		{head: "KIND", cell: func(_ *app, j hcp.JobView) string { return string(j.Kind) }},
		{head: "STATE", state: true, keep: true, cell: func(_ *app, j hcp.JobView) string { return string(j.State) }},
		{head: "VM", cell: func(_ *app, j hcp.JobView) string { return subject(j) }},
		{head: "STEP", cell: func(_ *app, j hcp.JobView) string { s, _ := currentStep(j); return s.Name }},
		{head: "ERROR", cell: func(_ *app, j hcp.JobView) string {
			if j.Error == nil {
				return ""
			}
			return string(j.Error.Code)
		}},
		{head: "AGE", keep: true, cell: func(a *app, j hcp.JobView) string { return a.when(j.CreatedAt) }},
		{head: "TOOK", isWide: true, cell: func(_ *app, j hcp.JobView) string { return tookText(j) }},
		{head: "REQUESTED BY", isWide: true, cell: func(_ *app, j hcp.JobView) string { return j.RequestedBy }},
		{head: "RESIDUE", isWide: true, cell: func(_ *app, j hcp.JobView) string { return residueText(j.Residue) }},
		{head: "TRACE", isWide: true, keep: true, cell: func(_ *app, j hcp.JobView) string { return j.TraceID }},
	},
}

func tookText(j hcp.JobView) string {
	if j.FinishedAt == nil {
		return ""
	}
	return j.FinishedAt.Sub(j.CreatedAt).Round(time.Millisecond).String()
}

// jobDetails tells a job's whole story: each step with its attempts and times.
func jobDetails(j hcp.JobView) [][2]string {
	d := [][2]string{
		{"ID", string(j.ID)}, {"Kind", string(j.Kind)}, {"State", string(j.State)}, {"VM", strings.TrimSpace(j.Target.Name + " " + string(j.Target.ID))},
		{"Phase", string(j.Phase)}, {"Progress", strconv.Itoa(j.Progress) + "%"}, {"Requested by", j.RequestedBy}, {"Cancelling", j.Cancelling},
		{"Created", rfc3339(j.CreatedAt)}, {"Started", rfc3339Ptr(j.StartedAt)}, {"Finished", rfc3339Ptr(j.FinishedAt)}, {"Took", tookText(j)},
		{"Next attempt", rfc3339Ptr(j.NextAttemptAt)}, {"Deadline", rfc3339(j.Deadline)},
	}
	for _, s := range j.Steps {
		text := s.Name + " " + stepText(s)
		if s.StartedAt != nil && s.FinishedAt != nil {
			text += " in " + s.FinishedAt.Sub(*s.StartedAt).Round(time.Millisecond).String()
		}
		d = append(d, [2]string{"Step", text})
	}
	if e := j.Error; e != nil {
		d = append(d, [2]string{"Error", e.Message}, [2]string{"Code", faultText(e)}, [2]string{"Hint", e.Hint})
	}
	d = append(d, [2]string{"Left over", residueText(j.Residue)}, [2]string{"Trace", j.TraceID})
	return d
}

func rfc3339Ptr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return rfc3339(*t)
}
