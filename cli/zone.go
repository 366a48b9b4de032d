package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) zoneCommands() *cobra.Command {
	return a.group("zone", "Where virtual machines may live", a.zoneList(), a.zoneGet(), a.zoneCreate(), a.zoneUpdate(),
		a.deleteCommand("zone", "Delete zones (operators)", "No new VM can name it; the VMs in it stay.", a.zoneNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteZone(ctx, name, key)
			},
			example{"ask first", "zone delete lab"}, example{"in a script", "zone delete lab --yes"}))
}

func (a *app) zoneList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List zones", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"where a VM may go", "zone list"}, example{"with what each can do", "zone list -o wide"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			isOps, err := a.isOps()
			if err != nil {
				return err
			}
			if isOps {
				o, err := a.ops()
				if err != nil {
					return err
				}
				page, err := o.ListZones(cmd.Context())
				return listPage(a, "zone", opsZoneListing, page, err)
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			page, err := p.ListZones(cmd.Context())
			return listPage(a, "zone", zoneListing, page, err)
		},
	}
}

func (a *app) zoneGet() *cobra.Command {
	return &cobra.Command{
		Use: "get ZONE...", Aliases: []string{"show"}, Short: "Show zones", Args: a.wantArgs(1, -1, "zone"),
		Example:           examples(example{"by name", "zone get local"}, example{"capabilities with reasons", "zone get local -o json"}),
		ValidArgsFunction: a.completeMany(a.zoneNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			if err != nil {
				return err
			}
			if isOps {
				o, err := a.ops()
				if err != nil {
					return err
				}
				return getAll(cmd.Context(), a, "zone", opsZoneListing, args, o.GetZone)
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			return getAll(cmd.Context(), a, "zone", zoneListing, args, p.GetZone)
		},
	}
}

func (a *app) zoneCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a zone of clusters or of pools of them (operators)", Args: a.wantArgs(1, 1, "name of the zone"),
		Example: examples(example{"one cluster", "zone create lab --region home --cluster lab"},
			example{"a pool of one and twice as much of another", "zone create prod --region west --cluster pve-a:fast --cluster pve-b=2"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	region := cmd.Flags().String("region", "", "region (needed)")
	clusters := cmd.Flags().StringArray("cluster", nil, "member: name[:pool][=weight] (may be repeated)")
	a.completeFlag(cmd, "cluster", a.clusterNames)
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := v1.PutZone{Name: args[0], Region: *region}
		if in.Region == "" {
			return usage("missing_flag", "hcpctl zone create needs --region")
		}
		var err error
		if in.Members, err = parseMembers(*clusters); err != nil {
			return err
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.CreateZone(cmd.Context(), in, client.WithKey(key))
		return changed(a, "zone", in.Name, "create", key, opsZoneListing, v, err)
	}
	return cmd
}

func parseMembers(values []string) (members []v1.ZoneMember, err error) {
	for _, v := range values {
		m, err := parseMember(v)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// parseMember reads name[:pool][=weight]; an LRN, which holds colons, has no pool.
func parseMember(s string) (m v1.ZoneMember, err error) {
	rest, weight, hasWeight := strings.Cut(s, "=")
	if hasWeight {
		if m.Weight, err = strconv.Atoi(weight); err != nil || m.Weight < 1 {
			return m, usage("invalid_flag", "the weight of --cluster %q is not a whole number above 0", s)
		}
	}
	m.Cluster = rest
	if !strings.HasPrefix(rest, "lrn:") {
		m.Cluster, m.Pool, _ = strings.Cut(rest, ":")
	}
	if m.Cluster == "" {
		return m, usage("invalid_flag", "--cluster is name[:pool][=weight], not %q", s)
	}
	return m, nil
}
