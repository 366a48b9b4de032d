package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
)

// The ways of progress.
const (
	progressAuto  = "auto"
	progressPlain = "plain"
	progressJSON  = "json"
	progressNone  = "none"
)

// progress shows how jobs go on, on stderr. It is called from many goroutines.
type progress interface {
	// update takes the newest sight of a job.
	update(j hcp.JobView)
	// notice says something beside the jobs: the server does not answer.
	notice(text string)
	close()
}

// newProgress chooses by --progress: a live line per job on a terminal, else a
// line per change. Machine-readable output gets none unless it is asked for.
func (a *app) newProgress(mode string) progress {
	if mode == progressAuto {
		switch {
		case a.global.output != formatTable && a.global.output != formatWide:
			mode = progressNone
		case a.term.err && !a.term.dumb:
			return &liveProgress{w: a.io.Err, now: a.clock.Now, width: a.term.width, paint: a.paints(a.term.err)}
		default:
			mode = progressPlain
		}
	}
	switch mode {
	case progressJSON:
		return &jsonProgress{w: a.io.Err}
	case progressNone:
		return silentProgress{}
	}
	return &plainProgress{w: a.io.Err, now: a.clock.Now, seen: map[string]string{}}
}

type silentProgress struct{}

func (silentProgress) update(hcp.JobView) {}
func (silentProgress) notice(string)      {}
func (silentProgress) close()             {}

// jsonProgress writes one JSON line per change of a job.
type jsonProgress struct {
	mu   sync.Mutex
	w    io.Writer
	last map[hcp.JobID]string
}

type progressLine struct {
	Type string       `json:"type"` // "progress" or "notice"
	Job  *hcp.JobView `json:"job,omitempty"`
	Text string       `json:"text,omitempty"`
}

func (p *jsonProgress) update(j hcp.JobView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := json.Marshal(progressLine{Type: "progress", Job: &j})
	if err != nil || p.last[j.ID] == string(b) {
		return
	}
	if p.last == nil {
		p.last = map[hcp.JobID]string{}
	}
	p.last[j.ID] = string(b)
	fmt.Fprintf(p.w, "%s\n", b)
}

func (p *jsonProgress) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, err := json.Marshal(progressLine{Type: "notice", Text: text}); err == nil {
		fmt.Fprintf(p.w, "%s\n", b)
	}
}

func (p *jsonProgress) close() {}

// plainProgress writes one line per change of a step: what a log should keep.
// Steps that came and went between two looks are written as well.
type plainProgress struct {
	mu   sync.Mutex
	w    io.Writer
	now  func() time.Time
	seen map[string]string
}

func (p *plainProgress) update(j hcp.JobView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range j.Steps {
		if s.State == hcp.StepPending {
			continue
		}
		p.line(string(j.ID)+"/"+s.Name, fmt.Sprintf("%s: %s: %s", subject(j), s.Name, stepText(s)))
	}
	state := jobText(j, p.now())
	p.line(string(j.ID), fmt.Sprintf("%s: %s: %s", subject(j), j.Kind, state))
}

func (p *plainProgress) line(key, text string) {
	if p.seen[key] != text {
		p.seen[key] = text
		fmt.Fprintln(p.w, printable(text))
	}
}

func (p *plainProgress) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("notice", text)
}

func (p *plainProgress) close() {}

// subject is what a person calls the job's VM.
func subject(j hcp.JobView) string {
	if j.Target.Name != "" {
		return j.Target.Name
	}
	return string(j.Target.ID)
}

func stepText(s hcp.StepView) string {
	text := string(s.State)
	if s.Attempts > 1 {
		text += fmt.Sprintf(" (attempt %d)", s.Attempts)
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	if s.Error != nil {
		text += ": " + faultText(s.Error)
	}
	return text
}

func faultText(f *hcp.Fault) string {
	if f.Reason != "" {
		return string(f.Code) + " (" + f.Reason + ")"
	}
	return string(f.Code)
}

// jobText is the job's state; of a waiting job also until when.
func jobText(j hcp.JobView, now time.Time) string {
	text := string(j.State)
	if j.Phase == hcp.PhaseUndo && !j.State.Final() {
		text += ", undoing"
	}
	if j.State == hcp.JobWaiting && j.NextAttemptAt != nil {
		text += ", next attempt at " + j.NextAttemptAt.UTC().Format(time.TimeOnly)
	}
	if j.State.Final() && j.Error != nil {
		text += ": " + faultText(j.Error)
	}
	if j.State.Final() && j.FinishedAt != nil {
		text += " after " + j.FinishedAt.Sub(j.CreatedAt).Round(10*time.Millisecond).String()
	}
	return text
}

// liveProgress keeps one line per job and repaints them. It is used on
// terminals only.
type liveProgress struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	width int
	paint bool
	order []hcp.JobID
	jobs  map[hcp.JobID]hcp.JobView
	text  string
	lines int // painted
}

func (p *liveProgress) update(j hcp.JobView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[hcp.JobID]hcp.JobView{}
	}
	if _, known := p.jobs[j.ID]; !known {
		p.order = append(p.order, j.ID)
	}
	p.jobs[j.ID] = j
	p.text = ""
	p.repaint()
}

func (p *liveProgress) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	p.repaint()
}

func (p *liveProgress) repaint() {
	var b strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.lines)
	}
	lines := 0
	write := func(text string, c colour) {
		b.WriteString("\r\x1b[2K" + c.paint(shorten(printable(text), max(p.width-1, 20)), p.paint) + "\n")
		lines++
	}
	for _, id := range p.order {
		j := p.jobs[id]
		write(p.jobLine(j), wordColour(string(j.State)))
	}
	if p.text != "" {
		write(p.text, yellow)
	}
	for ; lines < p.lines; lines++ { // a notice that went away leaves an empty line, never a stale one
		b.WriteString("\r\x1b[2K\n")
	}
	p.lines = lines
	io.WriteString(p.w, b.String())
}

func (p *liveProgress) jobLine(j hcp.JobView) string {
	end := p.now()
	if j.FinishedAt != nil {
		end = *j.FinishedAt
	}
	parts := []string{subject(j), string(j.Kind), jobText(j, end)}
	if !j.State.Final() {
		if s, ok := currentStep(j); ok {
			parts = append(parts, s.Name+": "+stepText(s))
		}
		parts = append(parts, fmt.Sprintf("%d%%", j.Progress), age(end.Sub(j.CreatedAt)))
	}
	return strings.Join(parts, "  ")
}

// currentStep is the step at work: the last that is neither pending nor done.
func currentStep(j hcp.JobView) (hcp.StepView, bool) {
	for i := len(j.Steps) - 1; i >= 0; i-- {
		switch j.Steps[i].State {
		case hcp.StepRunning, hcp.StepWaiting, hcp.StepUndoing, hcp.StepFailed, hcp.StepUndoFailed:
			return j.Steps[i], true
		}
	}
	return hcp.StepView{}, false
}

func (p *liveProgress) close() {}
