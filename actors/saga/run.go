package saga

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
)

// StepResult is the result of one step of a run.
type StepResult struct {
	Index     int
	StartedAt time.Time
	EndedAt   time.Time
	Result
}

// Run does the step at which the job stands, and goes on through the steps that
// need no commit between, until one is not Done or the next needs an intent on
// disk. The last result tells how it ended. input builds the Input of step i
// on what the steps before found out.
func Run(ctx context.Context, d Definition, from int, input func(i int, soFar Change) Input) []StepResult {
	var results []StepResult
	var change Change
	for i := from; i < len(d.Steps); i++ {
		if i > from && !d.Steps[i].joined() {
			break
		}
		in := input(i, change)
		r := StepResult{Index: i, StartedAt: in.Now()}
		r.Result = d.Steps[i].Do(ctx, in)
		r.EndedAt = in.Now()
		results = append(results, r)
		change = change.Merge(r.Change)
		if r.Outcome != Done {
			break
		}
	}
	return results
}

// RunUndo undoes step i.
func RunUndo(ctx context.Context, d Definition, i int, input func(i int, soFar Change) Input) StepResult {
	in := input(i, Change{})
	r := StepResult{Index: i, StartedAt: in.Now()}
	r.Result = d.Steps[i].Undo(ctx, in)
	r.EndedAt = in.Now()
	return r
}

// Fail, Finish and Repeat make results.
func Fail(err error) Result { return Result{Outcome: Failed, Err: hcp.AsError(err)} }

func Finish(note string) Result { return Result{Outcome: Done, Note: note} }

func Repeat(after time.Duration) Result { return Result{Outcome: Again, After: after} }

// With adds what was learnt.
func (r Result) With(c Change) Result {
	r.Change = r.Change.Merge(c)
	return r
}
