package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

type createFlags struct {
	image, flavor, zone, description string
	sshKeys, labels, networks        []string
	userData                         string
	stopped, protect, dryRun         bool
}

func (a *app) vmCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a virtual machine", Args: a.wantArgs(1, 1, "name of the VM"),
		Long: "Create a virtual machine and wait until it runs. A repeated call with the same --idempotency-key makes no second one.",
		Example: examples(
			example{"and wait until it runs", "vm create web-1 --image tiny --flavor small --ssh-key ~/.ssh/id_ed25519.pub"},
			example{"what would happen; nothing is made", "vm create web-1 --image tiny --flavor small --dry-run"},
			example{"with cloud-init data, labels, and no power yet", "vm create db-1 --image tiny --flavor small --user-data init.yaml -l tier=db --stopped"},
			example{"from a script: the job to wait for later", "vm create web-2 --image tiny --flavor small --no-wait -o name"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &createFlags{}
	cmd.Flags().StringVar(&f.image, "image", "", "image, by name, id or LRN (needed)")
	cmd.Flags().StringVar(&f.flavor, "flavor", "", "size, by name, id or LRN (needed)")
	cmd.Flags().StringVar(&f.zone, "zone", "", "zone (default: HCP chooses)")
	cmd.Flags().StringArrayVar(&f.sshKeys, "ssh-key", nil, "public key: a file, or the key itself (may be repeated)")
	cmd.Flags().StringVar(&f.userData, "user-data", "", "file for cloud-init, byte for byte; - is standard input")
	cmd.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "label, key=value (may be repeated)")
	cmd.Flags().StringArrayVar(&f.networks, "network", nil, "network (may be repeated)")
	cmd.Flags().StringVar(&f.description, "description", "", "a remark")
	cmd.Flags().BoolVar(&f.stopped, "stopped", false, "do not switch it on")
	cmd.Flags().BoolVar(&f.protect, "protect", false, "deletion protection")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would happen and do nothing")
	a.completeFlag(cmd, "image", a.imageNames)
	a.completeFlag(cmd, "flavor", a.flavorNames)
	a.completeFlag(cmd, "zone", a.zoneNames)
	w := a.addWaitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := a.createRequest(args[0], f)
		if err != nil {
			return err
		}
		if f.dryRun {
			return a.dryRun(cmd.Context(), in)
		}
		return a.mutateAll(cmd.Context(), "vm", "create", w, args, func(ctx context.Context, p *client.Project, _ string, opts ...client.CallOption) (client.Accepted, error) {
			return p.CreateVM(ctx, in, opts...)
		})
	}
	return cmd
}

func (a *app) createRequest(name string, f *createFlags) (v1.CreateVM, error) {
	in := v1.CreateVM{Name: name, Image: f.image, Flavor: f.flavor, Zone: f.zone, Networks: f.networks, Description: f.description,
		DeletionProtection: f.protect, Power: hcp.PowerRunning}
	if f.stopped {
		in.Power = hcp.PowerStopped
	}
	for _, need := range []struct{ flag, value string }{{"image", f.image}, {"flavor", f.flavor}} {
		if need.value == "" {
			return in, usage("missing_flag", "hcpctl vm create needs --%s", need.flag).withTry(a.commandLine(need.flag, "list"))
		}
	}
	var err error
	if in.Labels, err = parsePairs("label", f.labels); err != nil {
		return in, err
	}
	if in.SSHKeys, err = a.readSSHKeys(f.sshKeys); err != nil {
		return in, err
	}
	if f.userData == "" {
		return in, nil
	}
	data, err := a.readFile(a.expandHome(f.userData))
	if err != nil {
		return in, usage("unreadable", "the user data cannot be read: %v", err)
	}
	if utf8.Valid(data) {
		in.UserData = string(data)
	} else {
		in.UserDataBase64 = base64.StdEncoding.EncodeToString(data)
	}
	return in, nil
}

// readSSHKeys takes keys as they are and files of keys, one a line.
func (a *app) readSSHKeys(values []string) ([]string, error) {
	var keys []string
	for _, v := range values {
		text := v
		if !looksLikePublicKey(v) {
			b, err := a.readFile(a.expandHome(v))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, usage("unreadable", "--ssh-key is neither a public key nor a file that exists: %s", shorten(v, 60))
			case err != nil:
				return nil, usage("unreadable", "the key file cannot be read: %v", err)
			}
			text = string(b)
		}
		if strings.Contains(text, "PRIVATE KEY") {
			return nil, usage("private_key", "%s is a private key; it was not sent. Give the public one, mostly the same name with .pub", filepath.Base(v))
		}
		found := 0
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				keys = append(keys, line)
				found++
			}
		}
		if found == 0 {
			return nil, usage("no_key", "there is no key in %s", v)
		}
	}
	return keys, nil
}

func looksLikePublicKey(s string) bool {
	kind, rest, ok := strings.Cut(s, " ")
	return ok && rest != "" && (strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-") || strings.HasPrefix(kind, "sk-"))
}

// expandHome does what the shell leaves undone in --flag=~/file.
func (a *app) expandHome(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && a.env["HOME"] != "" {
		return filepath.Join(a.env["HOME"], rest)
	}
	return name
}

func (a *app) dryRun(ctx context.Context, in v1.CreateVM) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	plan, err := p.DryRunVM(ctx, in)
	if err != nil {
		return a.about("vm", in.Name, "create").failed(err)
	}
	l := listing[v1.DryRun]{noun: "plans", name: func(d v1.DryRun) string { return d.Hostname }}
	details := [][2]string{
		{"Name", in.Name}, {"Hostname", plan.Hostname}, {"Zone", plan.Zone}, {"Region", plan.Region},
		{"Image", strings.TrimSpace(plan.Image.Name + " " + plan.Image.Version)},
		{"Flavor", plan.Flavor.Name + " (" + sizeText(plan.Flavor.VCPUs, plan.Flavor.MemoryMiB, plan.Flavor.DiskGiB) + ")"},
		{"Power", string(in.Power)},
	}
	for _, s := range plan.Quota {
		for _, line := range s.Lines {
			details = append(details, [2]string{"Quota of the " + string(s.Scope),
				string(line.Resource) + " " + strconv.FormatInt(line.Used, 10) + " of " + line.Limit.String()})
		}
	}
	if err := showDetails(a, l, plan, details); err != nil {
		return err
	}
	a.note("This is what would happen. Nothing was made.")
	return nil
}
