package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) clusterCommands() *cobra.Command {
	return a.group("cluster", "Provider clusters: hypervisors (operators)", a.clusterList(),
		getCommand(a, "cluster", "Show clusters", clusterListing, a.clusterNames, a.getCluster,
			example{"by name", "cluster get lab"}, example{"hosts, capacity and capabilities", "cluster get lab -o json"}),
		a.clusterRegister(), a.clusterUpdate(), a.clusterCredentials(),
		changeCommand(a, "cluster", "probe", "Look at clusters now", clusterListing, a.clusterNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) (hcp.ClusterView, error) {
				return o.ProbeCluster(ctx, name, key)
			},
			example{"is it there again", "cluster probe lab"}, example{"with all that was found", "cluster probe lab -o yaml"}),
		a.clusterMaintenance(), a.clusterOrphans(),
		a.deleteCommand("cluster", "Forget clusters; one with VMs is refused", "HCP forgets it and its credentials; nothing is removed on it.", a.clusterNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteCluster(ctx, name, key)
			},
			example{"ask first", "cluster delete lab"}, example{"in a script", "cluster delete lab --yes"}))
}

var clusterListing = listing[hcp.ClusterView]{
	noun: "clusters", name: func(c hcp.ClusterView) string { return c.Name },
	columns: []column[hcp.ClusterView]{
		{head: "NAME", keep: true, cell: func(_ *app, c hcp.ClusterView) string { return c.Name }},
		{head: "DRIVER", cell: func(_ *app, c hcp.ClusterView) string { return c.Driver }},
		{head: "STATE", state: true, cell: func(_ *app, c hcp.ClusterView) string { return clusterState(c) }},
		{head: "HOSTS", right: true, cell: func(_ *app, c hcp.ClusterView) string { return hostCount(c) }},
		{head: "VCPUS", right: true, cell: func(_ *app, c hcp.ClusterView) string {
			return useText(c, func(s hcp.Sizes) int64 { return s.VCPUs })
		}},
		{head: "MEMORY MIB", right: true, cell: func(_ *app, c hcp.ClusterView) string {
			return useText(c, func(s hcp.Sizes) int64 { return s.MemoryMiB })
		}},
		{head: "LAST GOOD", cell: func(a *app, c hcp.ClusterView) string {
			if c.Reachability == nil {
				return ""
			}
			if c.Reachability.Reachable { // what is stored is when that began
				return "now"
			}
			return a.when(c.Reachability.LastGoodAt)
		}},
		{head: "ENDPOINT", isWide: true, cell: func(_ *app, c hcp.ClusterView) string { return c.Endpoint }},
		{head: "VERSION", isWide: true, cell: func(_ *app, c hcp.ClusterView) string {
			if c.Info == nil {
				return ""
			}
			return c.Info.Version
		}},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, c hcp.ClusterView) string { return string(c.ID) }},
	},
}

func clusterState(c hcp.ClusterView) string {
	switch {
	case c.Maintenance:
		return "maintenance"
	case c.Reachability == nil:
		return "unknown"
	}
	return reachText(*c.Reachability)
}

// reachText says why only where the reason adds something.
func reachText(r hcp.Reachability) string {
	switch {
	case r.Reachable:
		return "reachable"
	case r.Reason == "" || r.Reason == "unreachable":
		return "unreachable"
	}
	return "unreachable (" + r.Reason + ")"
}

func hostCount(c hcp.ClusterView) string {
	if c.Info == nil {
		return ""
	}
	return strconv.Itoa(len(c.Info.Hosts))
}

// useText is "claimed/limit".
func useText(c hcp.ClusterView, of func(hcp.Sizes) int64) string {
	if c.Limit == nil || c.Claimed == nil {
		return ""
	}
	return strconv.FormatInt(of(*c.Claimed), 10) + "/" + strconv.FormatInt(of(*c.Limit), 10)
}

func (a *app) getCluster(ctx context.Context, name string) (hcp.ClusterView, error) {
	o, err := a.ops()
	if err != nil {
		return hcp.ClusterView{}, err
	}
	return o.GetCluster(ctx, name)
}

func (a *app) clusterList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List clusters with health and use", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"all", "cluster list"}, example{"with endpoints and versions", "cluster list -o wide"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.ops()
			if err != nil {
				return err
			}
			page, err := o.ListClusters(cmd.Context())
			return listPage(a, "cluster", clusterListing, page, err)
		},
	}
}

// maxCredentials is far above what any driver needs.
const maxCredentials = 1 << 20

func (a *app) clusterRegister() *cobra.Command {
	cmd := &cobra.Command{
		Use: "register NAME", Short: "Make a hypervisor known", Args: a.wantArgs(1, 1, "name of the cluster"),
		Long: "Make a hypervisor known. Credentials are a JSON object, read from a file or standard input, never from the command line; they are " +
			"sealed by the server and never shown again.",
		Example: examples(
			example{"the libvirt of this machine", "cluster register lab --driver libvirt --endpoint qemu:///system"},
			example{"with credentials from a password store", "cluster register pve-a --driver proxmox --endpoint https://pve-a.example.com:8006 --credentials-stdin < pve-a.json"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	in := v1.RegisterCluster{}
	cmd.Flags().StringVar(&in.Driver, "driver", "", "sim, libvirt, proxmox, vsphere or hyperv (needed)")
	cmd.Flags().StringVar(&in.Endpoint, "endpoint", "", "address without credentials; several hosts comma-separated (needed)")
	options := cmd.Flags().StringArray("option", nil, "option of the driver, key=value (may be repeated)")
	file := cmd.Flags().String("credentials-file", "", "file with the credentials")
	stdin := cmd.Flags().Bool("credentials-stdin", false, "credentials come on standard input")
	a.completeFlag(cmd, "driver", func(context.Context, string) ([]string, error) {
		return []string{"sim", "libvirt", "proxmox", "vsphere", "hyperv"}, nil
	})
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in.Name = args[0]
		for _, need := range []struct{ flag, value string }{{"driver", in.Driver}, {"endpoint", in.Endpoint}} {
			if need.value == "" {
				return usage("missing_flag", "hcpctl cluster register needs --%s", need.flag)
			}
		}
		var err error
		if in.Options, err = parsePairs("option", *options); err != nil {
			return err
		}
		if in.Credentials, err = a.readCredentials(*file, *stdin); err != nil {
			return err
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.RegisterCluster(cmd.Context(), in, client.WithKey(key))
		return changed(a, "cluster", in.Name, "register", key, clusterListing, v, err)
	}
	return cmd
}

// readCredentials never shows what it read, not even when it is not JSON.
func (a *app) readCredentials(file string, stdin bool) (json.RawMessage, error) {
	switch {
	case file != "" && stdin:
		return nil, usage("invalid_flag", "--credentials-file and --credentials-stdin exclude each other")
	case stdin:
		file = "-"
	case file == "":
		return nil, nil
	}
	b, err := a.readFile(a.expandHome(file))
	b = bytes.TrimSpace(b)
	switch {
	case err != nil:
		return nil, usage("unreadable", "the credentials cannot be read: %v", err)
	case len(b) > maxCredentials:
		return nil, usage("too_large", "the credentials are larger than %d bytes", maxCredentials)
	case len(b) == 0 || b[0] != '{' || !json.Valid(b):
		return nil, usage("invalid_credentials", "the credentials are not a JSON object")
	}
	return b, nil
}

func (a *app) clusterMaintenance() *cobra.Command {
	cmd := &cobra.Command{
		Use: "maintenance CLUSTER on|off", Short: "No new VM, running jobs finish, no power change; or as before", Args: a.wantArgs(2, 2, "cluster, and on or off"),
		Example: examples(example{"before work on the hosts", "cluster maintenance lab on"}, example{"and after", "cluster maintenance lab off"}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"on", "off"}, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeOne(a.clusterNames)(cmd, args, prefix)
		},
	}
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, word := args[0], strings.ToLower(args[1])
		if name == "on" || name == "off" { // the other order reads as well
			name, word = args[1], args[0]
		}
		if word != "on" && word != "off" {
			return usage("invalid_argument", "maintenance is on or off, not %q", args[1])
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.SetMaintenance(cmd.Context(), name, word == "on", client.WithKey(key))
		return changed(a, "cluster", name, "maintenance", key, clusterListing, v, err)
	}
	return cmd
}

var orphanListing = listing[hcp.Orphan]{
	noun: "orphans", name: func(o hcp.Orphan) string { return o.Ref.ID },
	columns: []column[hcp.Orphan]{
		{head: "PROVIDER ID", keep: true, cell: func(_ *app, o hcp.Orphan) string { return o.Ref.ID }},
		{head: "NAME", cell: func(_ *app, o hcp.Orphan) string { return o.Name }},
		{head: "HOST", cell: func(_ *app, o hcp.Orphan) string { return o.Ref.Host }},
		{head: "POWER", state: true, cell: func(_ *app, o hcp.Orphan) string { return string(o.Power) }},
		{head: "MARKER", keep: true, cell: func(_ *app, o hcp.Orphan) string { return string(o.Marker) }},
		{head: "SEEN", keep: true, cell: func(a *app, o hcp.Orphan) string { return a.when(o.SeenAt) }},
	},
}

func (a *app) clusterOrphans() *cobra.Command {
	return &cobra.Command{
		Use: "orphans CLUSTER", Short: "List machines of a cluster that HCP has no record of; they are never touched", Args: a.wantArgs(1, 1, "cluster"),
		Example:           examples(example{"what is there beside HCP", "cluster orphans lab"}, example{"as JSON", "cluster orphans lab -o json"}),
		ValidArgsFunction: a.completeOne(a.clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.ops()
			if err != nil {
				return err
			}
			list, err := o.ListOrphans(cmd.Context(), args[0])
			if err != nil {
				return a.about("cluster", args[0], "").failed(err)
			}
			if len(list.Unreached) > 0 {
				a.warn("these hosts did not answer, so the list may lack theirs: " + strings.Join(list.Unreached, ", "))
			}
			switch a.global.output {
			case formatJSON:
				return a.printJSON(list)
			case formatYAML:
				return a.printYAML(list)
			}
			return showMany(a, orphanListing, list.Items)
		},
	}
}
