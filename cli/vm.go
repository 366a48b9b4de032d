package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"

	"github.com/lotuscloud/hcp/api/client"
)

func (a *app) vmCommands() *cobra.Command {
	return a.group("vm", "Virtual machines",
		a.vmCreate(), a.vmList(), a.vmGet(), a.vmDescribe(), a.vmUpdate(), a.vmDelete(),
		a.vmStart(), a.vmStop(), a.vmReboot(), a.vmRefresh(), a.vmWait(), a.vmExplain(), a.vmHistory())
}

// opsVMListing adds what only operators see.
var opsVMListing = func() listing[v1.OpsVM] {
	l := mapListing(vmListing, func(v v1.OpsVM) hcp.VMView { return v.VMView })
	at := slices.IndexFunc(l.columns, func(c column[v1.OpsVM]) bool { return c.isWide })
	l.columns = slices.Insert(l.columns, at,
		column[v1.OpsVM]{head: "PROJECT", cell: func(_ *app, v v1.OpsVM) string { return string(v.Project) }},
		column[v1.OpsVM]{head: "PROVIDER NAME", isWide: true, keep: true, cell: func(_ *app, v v1.OpsVM) string { return v.ProviderName }},
		column[v1.OpsVM]{head: "HOST", isWide: true, cell: func(_ *app, v v1.OpsVM) string { return v.Host }},
		column[v1.OpsVM]{head: "CLUSTER", isWide: true, cell: func(_ *app, v v1.OpsVM) string { return string(v.Cluster) }})
	// A name is a project's: operators paste the id.
	l.columns[0] = column[v1.OpsVM]{head: "ID", keep: true, cell: func(_ *app, v v1.OpsVM) string { return string(v.ID) }}
	l.columns = slices.Insert(l.columns, 1, column[v1.OpsVM]{head: "NAME", cell: func(_ *app, v v1.OpsVM) string { return v.Name }})
	l.columns = slices.DeleteFunc(l.columns, func(c column[v1.OpsVM]) bool { return c.isWide && c.head == "ID" })
	l.name = func(v v1.OpsVM) string { return string(v.ID) }
	return l
}()

func (a *app) vmList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List virtual machines, newest first", Args: a.wantArgs(0, 0, ""),
		Long: "List the virtual machines of a project, newest first. With an operator's token the list is of all projects, or of the one of --project.",
		Example: examples(
			example{"all of the project", "vm list"},
			example{"what runs in one zone with a label", "vm list --state running --zone local -l tier=web"},
			example{"start everything that is stopped", "vm list --state stopped -o name | xargs -d '\\n' hcpctl vm start"}),
	}
	f := &listVMFlags{}
	cmd.Flags().StringVar(&f.state, "state", "", "only in this state")
	cmd.Flags().StringVar(&f.zone, "zone", "", "only in this zone")
	cmd.Flags().StringVar(&f.name, "name", "", "only with exactly this name")
	cmd.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "only with this label, key=value (may be repeated)")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "at most so many (0: all)")
	cmd.Flags().BoolVar(&f.deleted, "deleted", false, "also those whose deletion is done")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on and show each VM that changes")
	a.completeFlag(cmd, "state", stateWords)
	a.completeFlag(cmd, "zone", a.zoneNames)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		selection, err := f.selection()
		if err != nil {
			return err
		}
		isOps, err := a.isOps()
		switch {
		case err != nil:
			return err
		case f.watch:
			return a.watchVMs(cmd.Context(), selection, f.limit)
		case isOps:
			return a.listOpsVMs(cmd.Context(), selection, f.limit)
		}
		p, err := a.project()
		if err != nil {
			return err
		}
		items, err := collect(p.AllVMs(cmd.Context(), selection), f.limit)
		if err != nil {
			return a.about("vm", "", "list").failed(err)
		}
		return showMany(a, vmListing, items)
	}
	return cmd
}

type listVMFlags struct {
	state, zone, name string
	labels            []string
	limit             int
	deleted, watch    bool
}

func (f *listVMFlags) selection() (client.ListVMs, error) {
	labels, err := parsePairs("label", f.labels)
	if err != nil {
		return client.ListVMs{}, err
	}
	if f.state != "" && !slices.Contains(hcp.States(), hcp.State(f.state)) {
		return client.ListVMs{}, unknownState(f.state)
	}
	if f.limit < 0 {
		return client.ListVMs{}, usage("invalid_flag", "--limit is 0 (all) or more")
	}
	return client.ListVMs{Name: f.name, State: hcp.State(f.state), Zone: f.zone, Labels: labels, Deleted: f.deleted, PageSize: pageSize(f.limit)}, nil
}

func unknownState(word string) *failure {
	states := strings.Split(joinWords(hcp.States()), ", ")
	f := usage("unknown_state", "there is no state %q", word)
	if near := suggestWord(word, states); near != "" {
		f.Message += "; did you mean " + near + "?"
	}
	return f
}

func (a *app) listOpsVMs(ctx context.Context, selection client.ListVMs, limit int) error {
	o, err := a.ops()
	if err != nil {
		return err
	}
	selection.Project = a.known.project
	items, err := collect(o.AllVMs(ctx, selection), limit)
	if err != nil {
		return a.about("vm", "", "list").failed(err)
	}
	return showMany(a, opsVMListing, items)
}

func (a *app) vmGet() *cobra.Command {
	return &cobra.Command{
		Use: "get VM...", Short: "Show virtual machines, one line each", Args: a.wantArgs(1, -1, "VM"),
		Example:           examples(example{"by name", "vm get web-1"}, example{"the whole record of two", "vm get web-1 web-2 -o json"}),
		ValidArgsFunction: a.completeMany(a.vmNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			switch {
			case err != nil:
				return err
			case isOps:
				items, err := forEach(cmd.Context(), a, unique(args), a.getOpsVM)
				return showPartial(a, opsVMListing, items, len(args), err)
			}
			if _, err := a.projectFor(args[0]); err != nil {
				return err
			}
			items, err := forEach(cmd.Context(), a, unique(args), a.getVM)
			return showPartial(a, vmListing, items, len(args), err)
		},
	}
}

func (a *app) getVM(ctx context.Context, name string) (hcp.VMView, error) {
	p, err := a.projectFor(name)
	if err != nil {
		return hcp.VMView{}, err
	}
	v, err := p.GetVM(ctx, name)
	if err != nil {
		return v, a.about("vm", name, "get").failed(err)
	}
	return v, nil
}

func (a *app) getOpsVM(ctx context.Context, name string) (v1.OpsVM, error) {
	o, err := a.ops()
	if err != nil {
		return v1.OpsVM{}, err
	}
	v, err := o.GetVM(ctx, name)
	if err != nil {
		return v, a.about("vm", name, "get").failed(err)
	}
	return v, nil
}

func (a *app) vmDescribe() *cobra.Command {
	return &cobra.Command{
		Use: "describe VM", Aliases: []string{"show"}, Short: "Show everything about one virtual machine", Args: a.wantArgs(1, 1, "VM"),
		Example:           examples(example{"with the last job and why it failed", "vm describe web-1"}, example{"as YAML", "vm describe web-1 -o yaml"}),
		ValidArgsFunction: a.completeOne(a.vmNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			switch {
			case err != nil:
				return err
			case isOps:
				v, err := a.getOpsVM(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return showDetails(a, opsVMListing, v, append(vmDetails(v.VMView), opsVMDetails(v)...))
			}
			v, err := a.getVM(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showDetails(a, vmListing, v, vmDetails(v))
		},
	}
}

func opsVMDetails(v v1.OpsVM) [][2]string {
	d := [][2]string{{"Org", string(v.Org)}, {"Cluster", string(v.Cluster)}, {"Pool", v.Pool}, {"Provider name", v.ProviderName}}
	if v.ProviderRef != nil {
		d = append(d, [2]string{"Provider id", v.ProviderRef.ID}, [2]string{"Host", v.ProviderRef.Host})
	}
	return d
}

// showDetails prints name and value lines for people, the whole record otherwise.
func showDetails[T any](a *app, l listing[T], item T, details [][2]string) error {
	if a.global.output == formatTable || a.global.output == formatWide {
		return a.describe(a.io.Out, details)
	}
	return showOne(a, l, item)
}
