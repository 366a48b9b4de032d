package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lotuscloud/hcp"
)

// bulkParallel is how many of several names are at work at a time.
const bulkParallel = 5

// forEach runs do for every name, a few at a time, and collects the results in
// the order of the names. The error is nil when all went well; with one name it
// is that name's; else it says how many failed and carries each one's.
func forEach[T any](ctx context.Context, a *app, names []string, do func(ctx context.Context, name string) (T, error)) ([]T, error) {
	results := make([]*T, len(names))
	failures := make([]*failure, len(names))
	slots := make(chan struct{}, bulkParallel)
	var all sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			v, err := do(ctx, name)
			if err != nil {
				failures[i] = a.explainFailure(ctx, err)
				return
			}
			results[i] = &v
		})
	}
	all.Wait()
	var done []T
	for _, r := range results {
		if r != nil {
			done = append(done, *r)
		}
	}
	return done, joinFailures(names, failures)
}

func joinFailures(names []string, failures []*failure) error {
	var items []itemFailure
	for i, f := range failures {
		if f != nil {
			items = append(items, itemFailure{names[i], f})
		}
	}
	switch {
	case len(items) == 0:
		return nil
	case len(names) == 1:
		return items[0].Err
	}
	f := &failure{Code: codePartial, Exit: hcp.ExitPartial, Items: items, answered: true,
		Message: fmt.Sprintf("%d of %d failed", len(items), len(names)),
		Hint:    "see the error of each item above"}
	if len(items) == len(names) && sameExit(items) {
		f.Code, f.Reason, f.Exit = items[0].Err.Code, "all_failed", items[0].Err.exitCode()
		f.Message = fmt.Sprintf("all %d failed", len(names))
	}
	return f
}

func sameExit(items []itemFailure) bool {
	for _, it := range items[1:] {
		if it.Err.exitCode() != items[0].Err.exitCode() {
			return false
		}
	}
	return true
}

// showPartial prints what went well before the failure of the rest is told. In
// machine-readable forms a failed command leaves stdout empty.
func showPartial[T any](a *app, l listing[T], done []T, names int, err error) error {
	if err != nil && (a.global.output == formatJSON || a.global.output == formatJSONLines || a.global.output == formatYAML) {
		if f, ok := errors.AsType[*failure](err); ok && len(done) > 0 {
			f.Details = map[string]any{"succeeded": namesOf(l, done)}
		}
		return err
	}
	if showErr := showResults(a, l, done, names); showErr != nil {
		return showErr
	}
	return err
}

func namesOf[T any](l listing[T], items []T) []string {
	var names []string
	for _, it := range items {
		names = append(names, l.name(it))
	}
	return names
}
