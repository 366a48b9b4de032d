package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lotuscloud/hcp"
)

// Codes that only hcpctl gives; they name how a run ended, not what a server said.
const (
	codeWaitTimeout hcp.Code = "WAIT_TIMEOUT"
	codeInterrupted hcp.Code = "INTERRUPTED"
	codePartial     hcp.Code = "PARTIAL_FAILURE"
)

// localCatalogue has the same columns as the catalogue of the domain.
var localCatalogue = []hcp.CatalogueEntry{
	{Code: codeWaitTimeout, Retryable: true, Audience: hcp.AudienceCaller, Exit: hcp.ExitWaitTimeout,
		Title: "The wait timed out", Hint: "the job goes on: wait again, or look at it"},
	{Code: codeInterrupted, Retryable: true, Audience: hcp.AudienceCaller, Exit: hcp.ExitInterrupted,
		Title: "Interrupted", Hint: "a job that was accepted goes on; only job cancel cancels it"},
	{Code: codePartial, Audience: hcp.AudienceCaller, Exit: hcp.ExitPartial,
		Title: "Some of many failed", Hint: "see the error of each item"},
}

func entryOf(code hcp.Code) hcp.CatalogueEntry {
	for _, e := range localCatalogue {
		if e.Code == code {
			return e
		}
	}
	return code.Entry()
}

// failure is why a command did not do what it was asked: all that the four
// lines, or the one problem document, say.
type failure struct {
	Code    hcp.Code
	Reason  string
	Message string // one sentence: what failed
	Hint    string
	Try     string // a command that can be pasted
	Exit    int    // 0: as the catalogue says
	Status  int
	Type    string
	Details map[string]any
	Fields  []hcp.FieldError
	Trace   string
	Request string
	Job     hcp.JobID
	Items   []itemFailure // for several names: every one that failed
	Cause   error
	// answered is true when the code came from a server.
	answered bool
}

// itemFailure is one of several names that failed.
type itemFailure struct {
	Name string
	Err  *failure
}

func (f *failure) Error() string { return string(f.Code) + ": " + f.Message }
func (f *failure) Unwrap() error { return f.Cause }

// exitCode is what the process ends with.
func (f *failure) exitCode() int {
	if f.Exit != 0 {
		return f.Exit
	}
	return entryOf(f.Code).Exit
}

// usage is a failure of the command line itself: nothing was sent.
func usage(reason, format string, args ...any) *failure {
	return &failure{Code: hcp.CodeInvalidRequest, Reason: reason, Message: fmt.Sprintf(format, args...), Exit: hcp.ExitUsage}
}

func (f *failure) withTry(command string) *failure { f.Try = command; return f }

func (f *failure) hint() string {
	if f.Hint != "" {
		return f.Hint
	}
	return entryOf(f.Code).Hint
}

// print writes the four lines: what failed, the code, what to do, where to look.
func (f *failure) print(w io.Writer, paint bool) {
	label, c := "Error:", red
	if f.Code == codeInterrupted { // the reader did it
		label, c = "Stop: ", yellow
	}
	fmt.Fprintf(w, "%s %s\n", c.paint(label, paint), printable(f.Message))
	for _, fe := range f.Fields {
		fmt.Fprintf(w, "       %s: %s\n", printable(fe.Pointer), printable(fe.Detail))
	}
	reason := ""
	if f.Reason != "" {
		reason = " (" + f.Reason + ")"
	}
	fmt.Fprintf(w, "Code:  %s%s\n", f.Code, reason)
	switch {
	case f.Try != "":
		fmt.Fprintf(w, "Try:   %s\n", printable(f.Try))
	default:
		fmt.Fprintf(w, "Hint:  %s\n", printable(f.hint()))
	}
	fmt.Fprintln(w, printable(strings.Join(f.whereToLook(), "   ")))
}

func (f *failure) whereToLook() (parts []string) {
	if f.Trace != "" {
		parts = append(parts, "Trace: "+f.Trace)
	}
	if f.Request != "" {
		parts = append(parts, "request: "+f.Request)
	}
	if f.Job != "" {
		label := "job: "
		if len(parts) == 0 {
			label = "Job:   "
		}
		parts = append(parts, label+string(f.Job))
	}
	more := "hcpctl explain error " + string(f.Code)
	if len(parts) == 0 {
		return []string{"More:  " + more}
	}
	return append(parts, "more: "+more)
}

// problem is the failure as RFC 9457 has it, with the API's field names.
type problem struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Status    int              `json:"status,omitempty"`
	Detail    string           `json:"detail"`
	Code      hcp.Code         `json:"code"`
	Reason    string           `json:"reason,omitempty"`
	Hint      string           `json:"hint,omitempty"`
	Retryable bool             `json:"retryable"`
	TraceID   string           `json:"trace_id,omitempty"`
	RequestID string           `json:"request_id,omitempty"`
	JobID     hcp.JobID        `json:"job_id,omitempty"`
	Details   map[string]any   `json:"details,omitempty"`
	Errors    []hcp.FieldError `json:"errors,omitempty"`
	Try       string           `json:"try,omitempty"`
	ExitCode  int              `json:"exit_code"`
	Items     []problemItem    `json:"items,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"`
}

type problemItem struct {
	Name  string  `json:"name"`
	Error problem `json:"error"`
}

func (f *failure) problem() problem {
	entry := entryOf(f.Code)
	p := problem{Type: f.Type, Title: entry.Title, Status: f.Status, Detail: f.Message, Code: f.Code, Reason: f.Reason, Hint: f.hint(),
		Retryable: entry.Retryable, TraceID: f.Trace, RequestID: f.Request, JobID: f.Job, Details: f.Details, Errors: f.Fields,
		Try: f.Try, ExitCode: f.exitCode()}
	if p.Type == "" {
		p.Type = "about:blank"
	}
	for _, it := range f.Items {
		p.Items = append(p.Items, problemItem{it.Name, it.Err.problem()})
	}
	return p
}

// printJSON writes the failure as one line.
func (f *failure) printJSON(w io.Writer, warnings []string) {
	p := f.problem()
	p.Warnings = warnings
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil { // details of a server are JSON already; this cannot be reached by input
		fmt.Fprintf(w, `{"type":"about:blank","code":%q,"exit_code":%d}`+"\n", f.Code, f.exitCode())
	}
}
