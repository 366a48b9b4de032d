package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) jobCommands() *cobra.Command {
	return a.group("job", "What HCP is doing, and did", a.jobList(), a.jobGet(), a.jobDescribe(), a.jobWait(), a.jobCancel(), a.jobRetry())
}

var opsJobListing = func() listing[v1.OpsJob] {
	l := mapListing(jobListing, func(j v1.OpsJob) hcp.JobView { return j.JobView })
	l.columns = append(l.columns,
		column[v1.OpsJob]{head: "CLUSTER", isWide: true, keep: true, cell: func(_ *app, j v1.OpsJob) string { return string(j.Cluster) }},
		column[v1.OpsJob]{head: "CAUSE", isWide: true, cell: func(_ *app, j v1.OpsJob) string { return j.Cause }})
	return l
}()

func (a *app) jobList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List jobs, newest first", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"the last 100", "job list"}, example{"what failed on one VM", "job list --vm web-1 --state failed"},
			example{"everything that needs a person", "job list --state needs_attention --limit 0"}),
	}
	var vm, state, kind string
	cmd.Flags().StringVar(&vm, "vm", "", "only of this VM")
	cmd.Flags().StringVar(&state, "state", "", "only in this state")
	cmd.Flags().StringVar(&kind, "kind", "", "only of this kind, for example vm.create")
	limit := cmd.Flags().Int("limit", 100, "at most so many (0: all)")
	a.completeFlag(cmd, "vm", a.vmNames)
	a.completeFlag(cmd, "state", jobStateWords)
	a.completeFlag(cmd, "kind", jobKindWords)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if state != "" && !slices.Contains(hcp.JobStates(), hcp.JobState(state)) {
			return usage("unknown_state", "there is no job state %q; the states are %s", state, joinWords(hcp.JobStates()))
		}
		if kind != "" && !slices.Contains(hcp.JobKinds(), hcp.JobKind(kind)) {
			return usage("unknown_kind", "there is no job kind %q; the kinds are %s", kind, joinWords(hcp.JobKinds()))
		}
		if *limit < 0 {
			return usage("invalid_flag", "--limit is 0 (all) or more")
		}
		l := client.ListJobs{VM: vm, State: hcp.JobState(state), Kind: hcp.JobKind(kind), PageSize: pageSize(*limit)}
		return a.listJobs(cmd.Context(), l, *limit)
	}
	return cmd
}

func (a *app) listJobs(ctx context.Context, l client.ListJobs, limit int) error {
	isOps, err := a.isOps()
	if err != nil {
		return err
	}
	noun, name := "job", ""
	if l.VM != "" {
		noun, name = "vm", l.VM
	}
	if isOps {
		o, err := a.ops()
		if err != nil {
			return err
		}
		l.Project = a.known.project
		items, err := collect(client.All(func(token string) (v1.Page[v1.OpsJob], error) {
			l.PageToken = token
			return o.ListJobs(ctx, l)
		}), limit)
		if err != nil {
			return a.about(noun, name, "list").failed(err)
		}
		return showMany(a, opsJobListing, items)
	}
	p, err := a.projectFor(l.VM)
	if err != nil {
		return err
	}
	items, err := collect(client.All(func(token string) (v1.Page[hcp.JobView], error) {
		l.PageToken = token
		return p.ListJobs(ctx, l)
	}), limit)
	if err != nil {
		return a.about(noun, name, "list").failed(err)
	}
	return showMany(a, jobListing, items)
}

func joinWords[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

func (a *app) jobGet() *cobra.Command {
	return &cobra.Command{
		Use: "get JOB...", Short: "Show jobs, one line each", Args: a.wantArgs(1, -1, "job"),
		Example: examples(example{"one job", "job get job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
			example{"the whole record", "job get job_0193a5b2c4d87e0f9a1b2c3d4e5f6071 -o json"}),
		ValidArgsFunction: a.completeMany(a.jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			switch {
			case err != nil:
				return err
			case isOps:
				items, err := forEach(cmd.Context(), a, unique(args), a.getOpsJob)
				return showPartial(a, opsJobListing, items, len(args), err)
			}
			if _, err := a.projectFor(args[0]); err != nil {
				return err
			}
			items, err := forEach(cmd.Context(), a, unique(args), a.getJob)
			return showPartial(a, jobListing, items, len(args), err)
		},
	}
}

func (a *app) getJob(ctx context.Context, id string) (hcp.JobView, error) {
	p, err := a.projectFor(id)
	if err != nil {
		return hcp.JobView{}, err
	}
	j, err := p.GetJob(ctx, id)
	if err != nil {
		return j, a.about("job", id, "get").failed(err)
	}
	return j, nil
}

func (a *app) getOpsJob(ctx context.Context, id string) (v1.OpsJob, error) {
	o, err := a.ops()
	if err != nil {
		return v1.OpsJob{}, err
	}
	j, err := o.GetJob(ctx, id)
	if err != nil {
		return j, a.about("job", id, "get").failed(err)
	}
	return j, nil
}

func (a *app) jobDescribe() *cobra.Command {
	return &cobra.Command{
		Use: "describe JOB", Aliases: []string{"show"}, Short: "Show a job with every step, attempt and error", Args: a.wantArgs(1, 1, "job"),
		Example: examples(example{"why did it fail", "job describe job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
			example{"as YAML", "job describe job_0193a5b2c4d87e0f9a1b2c3d4e5f6071 -o yaml"}),
		ValidArgsFunction: a.completeOne(a.jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			switch {
			case err != nil:
				return err
			case isOps:
				j, err := a.getOpsJob(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				details := append(jobDetails(j.JobView), [2]string{"Cause", j.Cause}, [2]string{"Cluster", string(j.Cluster)})
				for _, t := range j.Trail {
					details = append(details, [2]string{"Trail", rfc3339(t.At) + " " + t.Text})
				}
				return showDetails(a, opsJobListing, j, details)
			}
			j, err := a.getJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showDetails(a, jobListing, j, jobDetails(j))
		},
	}
}

func (a *app) jobWait() *cobra.Command {
	cmd := &cobra.Command{
		Use: "wait JOB...", Short: "Wait until jobs have ended; exits as waiting for the command would have", Args: a.wantArgs(1, -1, "job"),
		Example: examples(example{"go on waiting after Ctrl-C", "job wait job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
			example{"what --no-wait started", "job wait $(hcpctl vm start web-1 --no-wait -o name) --wait-timeout 5m"}),
		ValidArgsFunction: a.completeMany(a.jobIDs),
	}
	w := &waitFlags{}
	a.addWatchFlags(cmd, w)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(); err != nil {
			return err
		}
		if _, err := a.projectFor(args[0]); err != nil {
			return err
		}
		show := a.newProgress(w.progress)
		items, err := forEach(cmd.Context(), a, unique(args), func(ctx context.Context, id string) (hcp.JobView, error) {
			return a.waitJob(ctx, w, show, id)
		})
		show.close()
		return showPartial(a, jobListing, items, len(args), err)
	}
	return cmd
}

func (a *app) waitJob(ctx context.Context, w *waitFlags, show progress, id string) (hcp.JobView, error) {
	p, err := a.projectFor(id)
	if err != nil {
		return hcp.JobView{}, err
	}
	j, err := a.follow(ctx, w, show, hcp.JobID(id), func(ctx context.Context, d time.Duration) (hcp.JobView, error) {
		return p.WaitJobOnce(ctx, id, d)
	})
	if err != nil {
		return j, a.about("job", id, "wait").failed(err)
	}
	if f := a.jobFailure(j); f != nil {
		return j, f
	}
	return j, nil
}

func (a *app) jobCancel() *cobra.Command {
	return a.jobVerb("cancel", "Ask jobs to stop at the next point where they can; what is done is undone", (*client.Project).CancelJob,
		example{"and wait until it has ended", "job cancel job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
		example{"only ask", "job cancel job_0193a5b2c4d87e0f9a1b2c3d4e5f6071 --no-wait"})
}

func (a *app) jobRetry() *cobra.Command {
	return a.jobVerb("retry", "Try a failed create again on the same VM", (*client.Project).RetryJob,
		example{"and wait", "job retry job_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
		example{"as JSON", "job retry job_0193a5b2c4d87e0f9a1b2c3d4e5f6071 -o json"})
}

func (a *app) jobVerb(verb, short string, call func(*client.Project, context.Context, string, ...client.CallOption) (client.Accepted, error), list ...example) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " JOB...", Short: short, Args: a.wantArgs(1, -1, "job"), Example: examples(list...),
		ValidArgsFunction: a.completeMany(a.jobIDs)}
	w := a.addWaitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.mutateAll(cmd.Context(), "job", verb, w, args, func(ctx context.Context, p *client.Project, id string, opts ...client.CallOption) (client.Accepted, error) {
			return call(p, ctx, id, opts...)
		})
	}
	return cmd
}
