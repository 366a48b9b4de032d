package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
)

const (
	// lookEvery is how long one look at a job lasts while progress is shown. The
	// server answers at once when the job ends.
	lookEvery = time.Second
	// lookLong is the same when nobody watches.
	lookLong = 20 * time.Second
	// patience is how long a server that does not answer is waited for: longer than
	// a restart of hcpd takes.
	patience = time.Minute
)

// waitFlags are the flags of every mutation that makes a job.
type waitFlags struct {
	noWait   bool
	timeout  time.Duration
	progress string
	key      string
}

func (a *app) addWaitFlags(cmd *cobra.Command) *waitFlags {
	w := &waitFlags{}
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "do not wait: print the job and return")
	a.addWatchFlags(cmd, w)
	cmd.Flags().StringVar(&w.key, "idempotency-key", "", "the same key and request is the same effect (default: random)")
	return w
}

// addWatchFlags are the flags of whoever waits for a job that exists.
func (a *app) addWatchFlags(cmd *cobra.Command, w *waitFlags) {
	auto := a.env[envProgress]
	if auto == "" {
		auto = progressAuto
	}
	cmd.Flags().DurationVar(&w.timeout, "wait-timeout", 30*time.Minute, "how long to wait for the job; it goes on afterwards")
	cmd.Flags().StringVar(&w.progress, "progress", auto, "progress on stderr: auto, plain, json, none (env HCP_PROGRESS)")
}

func (w *waitFlags) check() error {
	switch w.progress {
	case progressAuto, progressPlain, progressJSON, progressNone:
	default:
		return usage("invalid_flag", "--progress is auto, plain, json or none, not %q", w.progress)
	}
	if w.timeout <= 0 {
		return usage("invalid_flag", "--wait-timeout must be more than 0; to not wait at all give --no-wait")
	}
	return nil
}

// lookFunc reads a job and blocks until it is final, or for the given time.
type lookFunc func(ctx context.Context, timeout time.Duration) (hcp.JobView, error)

// follow waits until the job is final and shows how it goes on. A server that
// does not answer is waited for: the job goes on without hcpctl.
func (a *app) follow(ctx context.Context, w *waitFlags, show progress, job hcp.JobID, look lookFunc) (hcp.JobView, error) {
	started := a.clock.Now()
	timed, cancel := context.WithCancelCause(ctx)
	stop := a.clock.AfterFunc(w.timeout, func() { cancel(errWaitTimedOut) })
	defer func() { stop(); cancel(nil) }()
	each := lookEvery
	if _, silent := show.(silentProgress); silent {
		each = lookLong
	}
	var last hcp.JobView
	var silentSince time.Time
	for {
		j, err := look(timed, each)
		switch {
		case err == nil:
			last, silentSince = j, time.Time{}
			show.update(j)
			if j.State.Final() {
				return j, nil
			}
		case ctx.Err() != nil:
			return last, a.detached(job, last)
		case errors.Is(context.Cause(timed), errWaitTimedOut):
			return last, a.waitTimedOut(job, last, a.clock.Now().Sub(started))
		case !isPassing(err):
			return last, err
		default:
			if silentSince.IsZero() {
				silentSince = a.clock.Now()
			}
			if a.clock.Now().Sub(silentSince) > patience {
				f := a.about("job", string(job), "watch").failed(err)
				f.Job, f.Try = job, a.commandLine("job", "wait", string(job))
				return last, f
			}
			show.notice("the server does not answer, trying again: " + a.about("", "", "").failed(err).Message)
			a.pause(timed, time.Second)
		}
		if ctx.Err() == nil && timed.Err() != nil {
			return last, a.waitTimedOut(job, last, a.clock.Now().Sub(started))
		}
	}
}

var errWaitTimedOut = errors.New("the wait timed out")

// pause waits for d or the end of ctx.
func (a *app) pause(ctx context.Context, d time.Duration) {
	done := make(chan struct{})
	stop := a.clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (a *app) detached(job hcp.JobID, last hcp.JobView) *failure {
	try := a.commandLine("job", "wait", string(job))
	return &failure{Code: codeInterrupted, Message: "the job goes on: " + try, Job: job, Trace: last.TraceID, Try: try}
}

func (a *app) waitTimedOut(job hcp.JobID, last hcp.JobView, waited time.Duration) *failure {
	state := ""
	if last.State != "" {
		state = ", it is " + jobText(last, a.clock.Now())
	}
	return &failure{Code: codeWaitTimeout, Job: job, Trace: last.TraceID,
		Message: fmt.Sprintf("waited %s and the job has not ended%s; it goes on", waited.Round(time.Second/10), state),
		Try:     a.commandLine("job", "wait", string(job))}
}

// jobFailure is what a final job means for whoever waited; nil when it succeeded.
func (a *app) jobFailure(j hcp.JobView) *failure {
	if j.State == hcp.JobSucceeded {
		return nil
	}
	f := &failure{Code: hcp.CodeInternal, Job: j.ID, Trace: j.TraceID, Exit: hcp.ExitJobFailed, answered: true}
	why := "the job ended as " + string(j.State)
	if e := j.Error; e != nil {
		f.Code, f.Reason, f.Hint, f.Details = e.Code, e.Reason, e.Hint, e.Details
		why = e.Message
	} else if j.State == hcp.JobCancelled {
		f.Code, why = hcp.CodeCancelled, "the job was cancelled"
	}
	what := "did not " + j.Kind.Word()
	if verb, ok := notDone[j.Kind]; ok {
		what = verb
	}
	f.Message = fmt.Sprintf("%s %s: %s", subject(j), what, why)
	if s, ok := currentStep(j); ok {
		f.Message += fmt.Sprintf(" (in step %s)", s.Name)
	}
	f.Try = a.commandLine("job", "describe", string(j.ID))
	if j.State == hcp.JobNeedsAttention {
		f.Exit = hcp.ExitNeedsAttention
		if names := residueText(j.Residue); names != "" {
			f.Message += "; left over: " + names
		}
		f.Try = a.commandLine("vm", "explain", string(j.Target.ID))
	}
	return f
}

var notDone = map[hcp.JobKind]string{
	hcp.JobCreate: "was not created", hcp.JobStart: "was not started", hcp.JobStop: "was not stopped",
	hcp.JobReboot: "was not rebooted", hcp.JobDelete: "was not deleted", hcp.JobRefresh: "was not refreshed",
	hcp.JobCleanup: "was not cleaned up",
}

func residueText(residue []hcp.ResidueView) string {
	var names []string
	for _, r := range residue {
		names = append(names, r.Kind+" "+r.Name)
	}
	return strings.Join(names, ", ")
}
