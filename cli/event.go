package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) eventCommands() *cobra.Command {
	return a.group("event", "What happens, as it happens", a.eventWatch(), a.eventList())
}

// watchFunc streams events of the project, or of all with an operator's token.
type watchFunc func(ctx context.Context, w client.WatchEvents, yield func(client.Received) error) error

func (a *app) eventStream() (watchFunc, error) {
	isOps, err := a.isOps()
	if err != nil {
		return nil, err
	}
	if isOps {
		o, err := a.ops()
		if err != nil {
			return nil, err
		}
		return o.WatchEvents, nil
	}
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	return p.WatchEvents, nil
}

// enough ends a stream that has given what was wanted.
var errEnough = errors.New("enough")

func (a *app) eventWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch", Short: "Show events as they happen, until Ctrl-C", Args: a.wantArgs(0, 0, ""),
		Long: "Show events as they happen. A connection that breaks is taken up again where it was: no event is lost, none comes twice. With -o json " +
			"each event is one line.",
		Example: examples(example{"everything of the project", "event watch"},
			example{"what fails, for a script", "event watch --type job.failed --type job.needs_attention -o json"},
			example{"the next ten of one VM", "event watch --vm web-1 --count 10"}),
	}
	var w client.WatchEvents
	types := cmd.Flags().StringArray("type", nil, "only of this type, for example vm.started (may be repeated)")
	cmd.Flags().StringVar(&w.VM, "vm", "", "only of this VM")
	cmd.Flags().StringVar(&w.Cursor, "cursor", "", "go on behind this cursor")
	count := cmd.Flags().Int("count", 0, "end after so many (0: never)")
	a.completeFlag(cmd, "vm", a.vmNames)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, t := range *types {
			w.Types = append(w.Types, hcp.EventType(t))
		}
		stream, err := a.eventStream()
		if err != nil {
			return err
		}
		seen := 0
		err = stream(cmd.Context(), w, func(r client.Received) error {
			if err := a.printEvent(r.Event); err != nil {
				return err
			}
			if seen++; *count > 0 && seen >= *count {
				return errEnough
			}
			return nil
		})
		return a.streamEnded(cmd.Context(), err)
	}
	return cmd
}

// printEvent writes one event at once: nobody waits for a table to be complete.
func (a *app) printEvent(e v1.Event) error {
	switch a.global.output {
	case formatJSON, formatJSONLines:
		return printLines(a, []v1.Event{e})
	case formatYAML:
		if err := a.write([]byte("---\n")); err != nil {
			return err
		}
		return a.printYAML(e)
	case formatName:
		return a.write([]byte(string(e.ID) + "\n"))
	}
	name := e.Data.Name
	if name == "" {
		name = e.Subject
	}
	line := rfc3339(e.Time) + "  " + string(e.Type) + "  " + name
	if text := eventText(e); text != "" {
		line += "  " + text
	}
	return a.write([]byte(printable(line) + "\n"))
}

// streamEnded tells an end that was asked for from one that was not.
func (a *app) streamEnded(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return &failure{Code: codeInterrupted, Message: "the watch ended; nothing else did"}
	}
	return a.about("event", "", "watch").failed(err)
}

func (a *app) eventList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the events of a virtual machine, newest first", Args: a.wantArgs(0, 0, ""),
		Long:    "List the events of a virtual machine, newest first. For the events of a whole project as they happen, see event watch.",
		Example: examples(example{"of one VM", "event list --vm web-1"}, example{"everything of it, as JSON lines", "event list --vm web-1 --limit 0 -o jsonl"}),
	}
	vm := cmd.Flags().String("vm", "", "the VM (needed)")
	types := cmd.Flags().StringArray("type", nil, "only of this type (may be repeated)")
	limit := cmd.Flags().Int("limit", 50, "at most so many (0: all)")
	a.completeFlag(cmd, "vm", a.vmNames)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *vm == "" {
			return usage("missing_flag", "hcpctl event list needs --vm; the events of a project are watched").withTry(a.commandLine("event", "watch"))
		}
		p, err := a.projectFor(*vm)
		if err != nil {
			return err
		}
		all := client.All(func(token string) (v1.Page[v1.Event], error) {
			return p.HistoryVM(cmd.Context(), *vm, pageSize(*limit), token)
		})
		var events []v1.Event
		for e, err := range all {
			if err != nil {
				return a.about("vm", *vm, "").failed(err)
			}
			if len(*types) > 0 && !slices.Contains(*types, string(e.Type)) {
				continue
			}
			if events = append(events, e); *limit > 0 && len(events) >= *limit {
				break
			}
		}
		return showMany(a, eventListing, events)
	}
	return cmd
}

// watchVMs shows the list, then each VM again when an event names it.
func (a *app) watchVMs(ctx context.Context, selection client.ListVMs, limit int) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	headless := a.global.noHeaders
	show := func(kind string, v hcp.VMView) error {
		if a.global.output == formatJSON || a.global.output == formatJSONLines {
			return printLines(a, []watched{{kind, v}})
		}
		a.global.noHeaders = headless || kind != "initial"
		return showOne(a, vmListing, v)
	}
	items, err := collect(p.AllVMs(ctx, selection), limit)
	if err != nil {
		return a.about("vm", "", "list").failed(err)
	}
	for i, v := range items {
		kind := "initial"
		if i > 0 && a.global.output != formatJSON && a.global.output != formatJSONLines {
			kind = "row"
		}
		if err := show(kind, v); err != nil {
			return err
		}
	}
	err = p.WatchEvents(ctx, client.WatchEvents{}, func(r client.Received) error {
		if r.Event.VM == "" {
			return nil
		}
		v, err := p.GetVM(ctx, string(r.Event.VM))
		switch {
		case isMissing(err):
			return show("deleted", hcp.VMView{ID: r.Event.VM, Name: r.Event.Data.Name, State: hcp.StateDeleted, Lifecycle: hcp.LifecycleDeleted, CreatedAt: r.Event.Time})
		case err != nil:
			return err
		case !selects(selection, v):
			return nil
		}
		return show("changed", v)
	})
	return a.streamEnded(ctx, err)
}

// watched is one line of `vm list --watch -o json`.
type watched struct {
	Type   string     `json:"type"` // initial, changed, deleted
	Object hcp.VMView `json:"object"`
}

// selects repeats the server's filter for VMs that come by events.
func selects(l client.ListVMs, v hcp.VMView) bool {
	for k, want := range l.Labels {
		if got, ok := v.Labels[k]; !ok || got != want {
			return false
		}
	}
	return (l.Name == "" || v.Name == l.Name) && (l.State == "" || v.State == l.State) && (l.Zone == "" || v.Zone == l.Zone)
}
