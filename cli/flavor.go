package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) flavorCommands() *cobra.Command {
	return a.group("flavor", "Sizes of virtual machines", a.flavorList(),
		getCommand(a, "flavor", "Show flavors", flavorListing, a.flavorNames, a.getFlavor,
			example{"by name", "flavor get small"}, example{"as JSON", "flavor get small -o json"}),
		a.flavorCreate(), a.flavorUpdate(),
		a.flavorRetire("retire", "Take no new virtual machine of flavors (operators)", true),
		a.flavorRetire("activate", "Offer retired flavors again (operators)", false),
		a.deleteCommand("flavor", "Delete flavors (operators); existing VMs keep their sizes", "Existing VMs keep their sizes.", a.flavorNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteFlavor(ctx, name, key)
			},
			example{"ask first", "flavor delete tiny"}, example{"in a script", "flavor delete tiny --yes"}))
}

func (a *app) getFlavor(ctx context.Context, name string) (v1.Flavor, error) {
	if isOps, err := a.isOps(); err != nil || isOps {
		o, err := a.ops()
		if err != nil {
			return v1.Flavor{}, err
		}
		return o.GetFlavor(ctx, name)
	}
	p, err := a.project()
	if err != nil {
		return v1.Flavor{}, err
	}
	return p.GetFlavor(ctx, name)
}

func (a *app) listFlavors(ctx context.Context) (v1.Page[v1.Flavor], error) {
	if isOps, err := a.isOps(); err != nil || isOps {
		o, err := a.ops()
		if err != nil {
			return v1.Page[v1.Flavor]{}, err
		}
		return o.ListFlavors(ctx)
	}
	p, err := a.project()
	if err != nil {
		return v1.Page[v1.Flavor]{}, err
	}
	return p.ListFlavors(ctx)
}

func (a *app) flavorList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List flavors", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"what is on offer", "flavor list"}, example{"the names alone", "flavor list -o name"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			page, err := a.listFlavors(cmd.Context())
			return listPage(a, "flavor", flavorListing, page, err)
		},
	}
}

func (a *app) flavorCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Offer a size (operators)", Args: a.wantArgs(1, 1, "name of the flavor"),
		Long: "Offer a size. Sizes never change afterwards: retire a flavor and make another.",
		Example: examples(example{"a small one", "flavor create small --vcpus 1 --memory-mib 512 --disk-gib 5"},
			example{"as JSON", "flavor create large --vcpus 8 --memory-mib 32768 --disk-gib 100 -o json"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	in := v1.CreateFlavor{}
	cmd.Flags().IntVar(&in.VCPUs, "vcpus", 0, "virtual processors (needed)")
	cmd.Flags().IntVar(&in.MemoryMiB, "memory-mib", 0, "memory in MiB (needed)")
	cmd.Flags().IntVar(&in.DiskGiB, "disk-gib", 0, "disk in GiB (needed)")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, need := range []string{"vcpus", "memory-mib", "disk-gib"} {
			if !a.given(need) {
				return usage("missing_flag", "hcpctl flavor create needs --%s", need)
			}
		}
		in.Name = args[0]
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.CreateFlavor(cmd.Context(), in, client.WithKey(key))
		return changed(a, "flavor", in.Name, "create", key, flavorListing, v, err)
	}
	return cmd
}

// flavorUpdate changes what can change of a flavor: whether it is offered.
func (a *app) flavorUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update FLAVOR", Short: "Offer a flavor, or no longer (operators)", Args: a.wantArgs(1, 1, "flavor"),
		Long:              "Offer a flavor, or no longer. Its sizes never change; retire and activate are the same in one word.",
		Example:           examples(example{"no longer", "flavor update tiny --retired"}, example{"again", "flavor update tiny --retired=false"}),
		ValidArgsFunction: a.completeOne(a.flavorNames),
	}
	retired := cmd.Flags().Bool("retired", false, "take no new virtual machine")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !a.given("retired") {
			return usage("nothing_to_change", "nothing to change: give --retired or --retired=false")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.UpdateFlavor(cmd.Context(), args[0], v1.UpdateFlavor{Retired: retired}, client.WithKey(key))
		return changed(a, "flavor", args[0], "update", key, flavorListing, v, err)
	}
	return cmd
}

func (a *app) flavorRetire(verb, short string, retired bool) *cobra.Command {
	return changeCommand(a, "flavor", verb, short, flavorListing, a.flavorNames,
		func(ctx context.Context, o *client.Ops, name string, key client.CallOption) (v1.Flavor, error) {
			return o.UpdateFlavor(ctx, name, v1.UpdateFlavor{Retired: &retired}, key)
		},
		example{"one flavor", "flavor " + verb + " tiny"}, example{"several", "flavor " + verb + " tiny small"})
}
