package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) vmStart() *cobra.Command {
	return a.powerVerb("start", "Start virtual machines", (*client.Project).StartVM,
		example{"and wait until it runs", "vm start web-1"}, example{"several; the result is told for each", "vm start web-1 web-2"})
}

func (a *app) vmReboot() *cobra.Command {
	return a.powerVerb("reboot", "Restart virtual machines", (*client.Project).RebootVM,
		example{"and wait until it runs again", "vm reboot web-1"}, example{"return at once with the job", "vm reboot web-1 --no-wait -o name"})
}

func (a *app) vmRefresh() *cobra.Command {
	return a.powerVerb("refresh", "Read the hypervisor now and correct what HCP shows", (*client.Project).RefreshVM,
		example{"after an unknown outcome", "vm refresh web-1"}, example{"as JSON", "vm refresh web-1 -o json"})
}

// powerVerb is a verb that takes nothing but the VM.
func (a *app) powerVerb(verb, short string, call func(*client.Project, context.Context, string, ...client.CallOption) (client.Accepted, error), list ...example) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " VM...", Short: short, Args: a.wantArgs(1, -1, "VM"), Example: examples(list...),
		ValidArgsFunction: a.completeMany(a.vmNames),
	}
	w := a.addWaitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.mutateAll(cmd.Context(), "vm", verb, w, args, func(ctx context.Context, p *client.Project, name string, opts ...client.CallOption) (client.Accepted, error) {
			return call(p, ctx, name, opts...)
		})
	}
	return cmd
}

func (a *app) vmStop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop VM...", Short: "Stop virtual machines", Args: a.wantArgs(1, -1, "VM"),
		Long: "Ask the guest to shut down and wait until it is off. --force cuts the power instead: what the guest has not written is lost, so it asks first.",
		Example: examples(
			example{"give the guest two minutes", "vm stop web-1 --timeout 2m"},
			example{"cut the power, in a script", "vm stop web-1 --force --yes"}),
		ValidArgsFunction: a.completeMany(a.vmNames),
	}
	w := a.addWaitFlags(cmd)
	force := cmd.Flags().Bool("force", false, "cut the power")
	timeout := cmd.Flags().Duration("timeout", 0, "how long the guest may take, 1s to 1h (default: the server's, 60s)")
	yes := confirmFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := v1.StopVM{Mode: hcp.StopGraceful}
		if a.given("timeout") {
			n, err := seconds("timeout", *timeout)
			if err != nil {
				return err
			}
			in.TimeoutS = n
		}
		if *force {
			if in.TimeoutS != 0 {
				return usage("invalid_flag", "--force does not wait for the guest: --timeout makes no sense with it")
			}
			in.Mode = hcp.StopForce
			if _, err := a.projectFor(args[0]); err != nil {
				return err
			}
			if err := a.confirm(*yes, "vm stop --force", args, "VM", "The power is cut; what the guest has not written to disk is lost."); err != nil {
				return err
			}
		}
		return a.mutateAll(cmd.Context(), "vm", "stop", w, args, func(ctx context.Context, p *client.Project, name string, opts ...client.CallOption) (client.Accepted, error) {
			return p.StopVM(ctx, name, in, opts...)
		})
	}
	return cmd
}

func (a *app) vmDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete VM...", Aliases: []string{"rm"}, Short: "Delete virtual machines and their disks", Args: a.wantArgs(1, -1, "VM"),
		Long:              "Delete virtual machines and their disks for good. A VM with deletion protection is refused by the server.",
		Example:           examples(example{"ask first", "vm delete web-1"}, example{"in a script, several", "vm delete web-1 web-2 --yes"}),
		ValidArgsFunction: a.completeMany(a.vmNames),
	}
	w := a.addWaitFlags(cmd)
	yes := confirmFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := a.projectFor(args[0]); err != nil {
			return err
		}
		if err := a.confirm(*yes, "vm delete", args, "VM", "The disks go too; there is no way back."); err != nil {
			return err
		}
		return a.mutateAll(cmd.Context(), "vm", "delete", w, args, func(ctx context.Context, p *client.Project, name string, opts ...client.CallOption) (client.Accepted, error) {
			return p.DeleteVM(ctx, name, opts...)
		})
	}
	return cmd
}

func (a *app) vmWait() *cobra.Command {
	cmd := &cobra.Command{
		Use: "wait VM", Short: "Wait until a virtual machine is in a state, has an address, or is gone", Args: a.wantArgs(1, 1, "VM"),
		Long: "Wait until one of the conditions holds. It ends early where none can come true any more: a VM that is deleted, or in error.",
		Example: examples(
			example{"until it runs or is off", "vm wait web-1 --for state=running,stopped"},
			example{"until the guest has an address", "vm wait web-1 --for address --timeout 2m"},
			example{"until somebody made it", "vm wait web-1 --for state=running --allow-missing"}),
		ValidArgsFunction: a.completeOne(a.vmNames),
	}
	condition := cmd.Flags().String("for", "state=running", "state=STATE[,STATE], address, or deleted")
	timeout := cmd.Flags().Duration("timeout", 10*time.Minute, "how long to wait")
	allowMissing := cmd.Flags().Bool("allow-missing", false, "wait for a VM that does not exist yet")
	a.completeFlag(cmd, "for", waitWords)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want, err := parseCondition(*condition)
		if err != nil {
			return err
		}
		if *timeout <= 0 {
			return usage("invalid_flag", "--timeout must be more than 0")
		}
		return a.waitVM(cmd.Context(), args[0], want, *timeout, *allowMissing)
	}
	return cmd
}
