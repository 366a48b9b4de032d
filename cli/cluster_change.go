package cli

import (
	"maps"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) clusterUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update CLUSTER", Short: "Change name, endpoint or options of a cluster", Args: a.wantArgs(1, 1, "cluster"),
		Example: examples(example{"it moved", "cluster update lab --endpoint qemu+ssh://root@host/system"},
			example{"one option more; the others stay", "cluster update lab --option pool=fast"}),
		ValidArgsFunction: a.completeOne(a.clusterNames),
	}
	name := cmd.Flags().String("name", "", "new name")
	endpoint := cmd.Flags().String("endpoint", "", "new endpoint")
	options := cmd.Flags().StringArray("option", nil, "set an option, key=value (may be repeated)")
	drop := cmd.Flags().StringArray("remove-option", nil, "remove the option with this key (may be repeated)")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var in v1.UpdateCluster
		if a.given("name") {
			in.Name = name
		}
		if a.given("endpoint") {
			in.Endpoint = endpoint
		}
		set, err := parsePairs("option", *options)
		if err != nil {
			return err
		}
		changesOptions := len(set)+len(*drop) > 0
		if in.Name == nil && in.Endpoint == nil && !changesOptions {
			return usage("nothing_to_change", "nothing to change: give --name, --endpoint, --option or --remove-option")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		if changesOptions {
			now, err := o.GetCluster(cmd.Context(), args[0])
			if err != nil {
				return a.about("cluster", args[0], "update").failed(err)
			}
			merged := maps.Clone(now.Options)
			if merged == nil {
				merged = map[string]string{}
			}
			maps.Copy(merged, set)
			for _, k := range *drop {
				delete(merged, k)
			}
			in.Options = &merged
		}
		key := a.key(flag)
		v, err := o.UpdateCluster(cmd.Context(), args[0], in, client.WithKey(key))
		return changed(a, "cluster", args[0], "update", key, clusterListing, v, err)
	}
	return cmd
}

func (a *app) clusterCredentials() *cobra.Command {
	cmd := &cobra.Command{
		Use: "credentials CLUSTER", Short: "Replace the credentials of a cluster", Args: a.wantArgs(1, 1, "cluster"),
		Example: examples(example{"from a password store", "cluster credentials pve-a --credentials-stdin < pve-a.json"},
			example{"from a file", "cluster credentials pve-a --credentials-file pve-a.json"}),
		ValidArgsFunction: a.completeOne(a.clusterNames),
	}
	file := cmd.Flags().String("credentials-file", "", "file with the credentials, a JSON object")
	stdin := cmd.Flags().Bool("credentials-stdin", false, "credentials come on standard input")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		credentials, err := a.readCredentials(*file, *stdin)
		switch {
		case err != nil:
			return err
		case credentials == nil:
			return usage("missing_flag", "hcpctl cluster credentials needs --credentials-file or --credentials-stdin")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.SetCredentials(cmd.Context(), args[0], v1.SetCredentials{Credentials: credentials}, client.WithKey(key))
		return changed(a, "cluster", args[0], "update", key, clusterListing, v, err)
	}
	return cmd
}

func (a *app) zoneUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update ZONE", Short: "Change name, region or members of a zone (operators)", Args: a.wantArgs(1, 1, "zone"),
		Long: "Change name, region or members of a zone. --cluster, when given, replaces all members.",
		Example: examples(example{"other members", "zone update prod --cluster pve-a --cluster pve-c=2"},
			example{"another name", "zone update prod --name production"}),
		ValidArgsFunction: a.completeOne(a.zoneNames),
	}
	name := cmd.Flags().String("name", "", "new name")
	region := cmd.Flags().String("region", "", "new region")
	clusters := cmd.Flags().StringArray("cluster", nil, "member: name[:pool][=weight] (may be repeated)")
	a.completeFlag(cmd, "cluster", a.clusterNames)
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *name == "" && *region == "" && len(*clusters) == 0 {
			return usage("nothing_to_change", "nothing to change: give --name, --region or --cluster")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		now, err := o.GetZone(cmd.Context(), args[0])
		if err != nil {
			return a.about("zone", args[0], "update").failed(err)
		}
		in := v1.PutZone{Name: now.Name, Region: now.Region}
		for _, m := range now.Members {
			in.Members = append(in.Members, v1.ZoneMember{Cluster: string(m.Cluster), Pool: m.Pool, Weight: m.Weight, CPURatio: m.CPURatio, MemoryRatio: m.MemoryRatio})
		}
		if *name != "" {
			in.Name = *name
		}
		if *region != "" {
			in.Region = *region
		}
		if len(*clusters) > 0 {
			if in.Members, err = parseMembers(*clusters); err != nil {
				return err
			}
		}
		key := a.key(flag)
		v, err := o.PutZone(cmd.Context(), string(now.ID), in, client.WithKey(key))
		return changed(a, "zone", args[0], "update", key, opsZoneListing, v, err)
	}
	return cmd
}

func (a *app) imageUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update IMAGE", Short: "Change the least disk or memory of an image (operators)", Args: a.wantArgs(1, 1, "image"),
		Example:           examples(example{"it needs more disk", "image update tiny --min-disk-gib 2"}, example{"and memory", "image update tiny --min-memory-mib 256"}),
		ValidArgsFunction: a.completeOne(a.imageNames),
	}
	disk := cmd.Flags().Int("min-disk-gib", 0, "least disk")
	memory := cmd.Flags().Int("min-memory-mib", 0, "least memory")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var in v1.UpdateImage
		if a.given("min-disk-gib") {
			in.MinDiskGiB = disk
		}
		if a.given("min-memory-mib") {
			in.MinMemoryMiB = memory
		}
		if in.MinDiskGiB == nil && in.MinMemoryMiB == nil {
			return usage("nothing_to_change", "nothing to change: give --min-disk-gib or --min-memory-mib")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.UpdateImage(cmd.Context(), args[0], in, client.WithKey(key))
		return changed(a, "image", args[0], "update", key, opsImageListing, v, err)
	}
	return cmd
}
