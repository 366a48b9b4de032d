package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) vmExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain VM", Short: "Say why a virtual machine is where it is, and what may be done", Args: a.wantArgs(1, 1, "VM"),
		Example:           examples(example{"what is it waiting for", "vm explain web-1"}, example{"as JSON", "vm explain web-1 -o json"}),
		ValidArgsFunction: a.completeOne(a.vmNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.explanation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			l := listing[hcp.Explanation]{noun: "explanations", name: func(e hcp.Explanation) string { return string(e.VM) }}
			return showDetails(a, l, e, explanationDetails(a, e))
		},
	}
}

func (a *app) explanation(ctx context.Context, name string) (e hcp.Explanation, err error) {
	isOps, err := a.isOps()
	if err != nil {
		return e, err
	}
	if isOps {
		o, err := a.ops()
		if err != nil {
			return e, err
		}
		if e, err = o.ExplainVM(ctx, name); err != nil {
			return e, a.about("vm", name, "explain").failed(err)
		}
		return e, nil
	}
	p, err := a.projectFor(name)
	if err != nil {
		return e, err
	}
	if e, err = p.ExplainVM(ctx, name); err != nil {
		return e, a.about("vm", name, "explain").failed(err)
	}
	return e, nil
}

func explanationDetails(a *app, e hcp.Explanation) [][2]string {
	d := [][2]string{{"Summary", e.Summary}, {"VM", string(e.VM)}, {"State", string(e.State)}}
	if e.Job != nil {
		d = append(d, [2]string{"Job", string(e.Job.ID) + " " + string(e.Job.Kind) + " " + jobText(*e.Job, a.clock.Now())})
	}
	for _, q := range e.Queue {
		d = append(d, [2]string{"Queued", string(q.ID) + " " + string(q.Kind)})
	}
	d = append(d, [2]string{"Step", e.Step}, [2]string{"In flight", callText(a, e.InFlight)}, [2]string{"Last call", callText(a, e.LastCall)},
		[2]string{"Next attempt", rfc3339Ptr(e.NextAttemptAt)})
	if c := e.Cluster; c != nil {
		text := reachText(*c)
		if !c.Reachable {
			text += ", last good " + orDash(rfc3339(c.LastGoodAt))
		}
		d = append(d, [2]string{"Cluster", text})
	}
	return append(d, [2]string{"You may", strings.Join(e.MayDo, "; ")})
}

func callText(a *app, c *hcp.InFlightCall) string {
	if c == nil {
		return ""
	}
	text := c.Op + " since " + rfc3339(c.Since) + " (" + age(a.clock.Now().Sub(c.Since)) + ")"
	if c.EndedAt != nil {
		text = c.Op + " at " + rfc3339(*c.EndedAt)
	}
	if c.Code != "" {
		text += ": " + string(c.Code)
	}
	if c.Answer != "" {
		text += ": " + c.Answer
	}
	return text
}

// eventListing shows events of a history or a stream.
var eventListing = listing[v1.Event]{
	noun: "events",
	name: func(e v1.Event) string { return string(e.ID) },
	columns: []column[v1.Event]{
		{head: "TIME", keep: true, cell: func(_ *app, e v1.Event) string { return rfc3339(e.Time) }},
		{head: "TYPE", keep: true, cell: func(_ *app, e v1.Event) string { return string(e.Type) }},
		{head: "NAME", cell: func(_ *app, e v1.Event) string { return e.Data.Name }},
		{head: "WHAT", cell: func(_ *app, e v1.Event) string { return eventText(e) }},
		{head: "ACTOR", cell: func(_ *app, e v1.Event) string { return e.Actor }},
		{head: "SUBJECT", isWide: true, keep: true, cell: func(_ *app, e v1.Event) string { return e.Subject }},
		{head: "JOB", isWide: true, keep: true, cell: func(_ *app, e v1.Event) string { return string(e.Job) }},
		{head: "SEQ", isWide: true, right: true, cell: func(_ *app, e v1.Event) string { return strconv.FormatInt(e.Seq, 10) }},
		{head: "TRACE", isWide: true, keep: true, cell: func(_ *app, e v1.Event) string { return e.TraceID }},
	},
}

// eventText is what changed, in a few words.
func eventText(e v1.Event) string {
	var parts []string
	d := e.Data
	if d.OldState != d.NewState {
		parts = append(parts, orDash(string(d.OldState))+" -> "+orDash(string(d.NewState)))
	}
	if d.JobKind != "" {
		parts = append(parts, strings.TrimSpace(string(d.JobKind)+" "+string(d.JobState)))
	}
	if d.Step != "" {
		parts = append(parts, "step "+d.Step)
	}
	if d.Code != "" {
		parts = append(parts, string(d.Code))
	}
	return strings.Join(parts, ", ")
}

func (a *app) vmHistory() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history VM", Short: "List what happened to a virtual machine, newest first", Args: a.wantArgs(1, 1, "VM"),
		Example:           examples(example{"the last 50 events", "vm history web-1"}, example{"everything, as JSON lines", "vm history web-1 --limit 0 -o jsonl"}),
		ValidArgsFunction: a.completeOne(a.vmNames),
	}
	limit := cmd.Flags().Int("limit", 50, "at most so many (0: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.projectFor(args[0])
		if err != nil {
			return err
		}
		if *limit < 0 {
			return usage("invalid_flag", "--limit is 0 (all) or more")
		}
		events, err := collect(client.All(func(token string) (v1.Page[v1.Event], error) {
			return p.HistoryVM(cmd.Context(), args[0], pageSize(*limit), token)
		}), *limit)
		if err != nil {
			return a.about("vm", args[0], "").failed(err)
		}
		return showMany(a, eventListing, events)
	}
	return cmd
}
