package cli

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// The catalogue nouns (image, flavor, zone, cluster, org, project) are alike:
// list, get, delete and the like need no job. Their commands are made here.

// getFunc reads one thing by name, id or LRN.
type getFunc[T any] func(ctx context.Context, name string) (T, error)

func getCommand[T any](a *app, noun, short string, l listing[T], complete wordsFunc, get getFunc[T], list ...example) *cobra.Command {
	return &cobra.Command{
		Use: "get " + upper(noun) + "...", Aliases: []string{"show"}, Short: short, Args: a.wantArgs(1, -1, noun), Example: examples(list...),
		ValidArgsFunction: a.completeMany(complete),
		RunE: func(cmd *cobra.Command, args []string) error {
			return getAll(cmd.Context(), a, noun, l, args, get)
		},
	}
}

func getAll[T any](ctx context.Context, a *app, noun string, l listing[T], names []string, get getFunc[T]) error {
	if _, err := a.signedIn(); err != nil {
		return err
	}
	items, err := forEach(ctx, a, unique(names), func(ctx context.Context, name string) (T, error) {
		v, err := get(ctx, name)
		if err != nil {
			return v, a.about(noun, name, "get").failed(err)
		}
		return v, nil
	})
	return showPartial(a, l, items, len(names), err)
}

// listPage prints a list that is one page.
func listPage[T any](a *app, noun string, l listing[T], page v1.Page[T], err error) error {
	if err != nil {
		return a.about(noun, "", "list").failed(err)
	}
	return showMany(a, l, page.Items)
}

// key is the idempotency key of a mutation without a job.
func (a *app) key(flag *string) string {
	if *flag == "" {
		*flag = uuid.NewString()
	}
	return *flag
}

func keyFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("idempotency-key", "", "the same key and request is the same effect (default: random)")
}

// changed is what a change without a job answers: the thing, or why not.
func changed[T any](a *app, noun, name, verb, key string, l listing[T], v T, err error) error {
	if err != nil {
		return a.about(noun, name, verb).withKey(key).failed(err)
	}
	return showOne(a, l, v)
}

// changeFunc changes one thing and returns it.
type changeFunc[T any] func(ctx context.Context, o *client.Ops, name string, key client.CallOption) (T, error)

// changeCommand is a verb of operators that takes nothing but names.
func changeCommand[T any](a *app, noun, verb, short string, l listing[T], complete wordsFunc, change changeFunc[T], list ...example) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " " + upper(noun) + "...", Short: short, Args: a.wantArgs(1, -1, noun), Example: examples(list...),
		ValidArgsFunction: a.completeMany(complete),
	}
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		items, err := forEach(cmd.Context(), a, unique(args), func(ctx context.Context, name string) (T, error) {
			v, err := change(ctx, o, name, client.WithKey(key))
			if err != nil {
				return v, a.about(noun, name, verb).withKey(key).failed(err)
			}
			return v, nil
		})
		return showPartial(a, l, items, len(args), err)
	}
	return cmd
}

// removed is what a delete without a job answers.
type removed struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

var removedListing = listing[removed]{noun: "things", name: func(r removed) string { return r.Name }, columns: []column[removed]{
	{head: "NAME", keep: true, cell: func(_ *app, r removed) string { return r.Name }},
	{head: "STATE", state: true, cell: func(*app, removed) string { return "deleted" }},
}}

type deleteFunc func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error

func (a *app) deleteCommand(noun, short, consequence string, complete wordsFunc, remove deleteFunc, list ...example) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete " + upper(noun) + "...", Aliases: []string{"rm"}, Short: short, Args: a.wantArgs(1, -1, noun), Example: examples(list...),
		ValidArgsFunction: a.completeMany(complete),
	}
	flag := keyFlag(cmd)
	yes := confirmFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := a.ops()
		if err != nil {
			return err
		}
		if err := a.confirm(*yes, noun+" delete", args, noun, consequence); err != nil {
			return err
		}
		key := a.key(flag)
		items, err := forEach(cmd.Context(), a, unique(args), func(ctx context.Context, name string) (removed, error) {
			if err := remove(ctx, o, name, client.WithKey(key)); err != nil {
				return removed{}, a.about(noun, name, "delete").withKey(key).failed(err)
			}
			return removed{name, true}, nil
		})
		return showPartial(a, removedListing, items, len(args), err)
	}
	return cmd
}
