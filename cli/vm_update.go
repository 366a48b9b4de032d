package cli

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

type updateFlags struct {
	name, description  string
	labels, dropLabels []string
	protect, noProtect bool
	ifMatch, key       string
}

func (a *app) vmUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update VM", Short: "Change name, description, labels or protection", Args: a.wantArgs(1, 1, "VM"),
		Long: "Change name, description, labels or protection of a virtual machine. The change is made on what was just read, so that nobody else's " +
			"change is lost; --if-match names the generation that you saw.",
		Example: examples(
			example{"a label more, another away", "vm update web-1 --label tier=web --remove-label old"},
			example{"protect it from deletion", "vm update web-1 --protect"},
			example{"only if nobody changed it since", "vm update web-1 --name www-1 --if-match 7"}),
		ValidArgsFunction: a.completeOne(a.vmNames),
	}
	f := &updateFlags{}
	cmd.Flags().StringVar(&f.name, "name", "", "new name")
	cmd.Flags().StringVar(&f.description, "description", "", "new remark; empty removes it")
	cmd.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "set a label, key=value (may be repeated)")
	cmd.Flags().StringArrayVar(&f.dropLabels, "remove-label", nil, "remove the label with this key (may be repeated)")
	cmd.Flags().BoolVar(&f.protect, "protect", false, "refuse deletion from now on")
	cmd.Flags().BoolVar(&f.noProtect, "no-protect", false, "allow deletion again")
	cmd.Flags().StringVar(&f.ifMatch, "if-match", "", "generation the VM must have (default: the one just read)")
	cmd.Flags().StringVar(&f.key, "idempotency-key", "", "the same key and request is the same effect (default: random)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.updateVM(cmd.Context(), args[0], f) }
	return cmd
}

func (a *app) updateVM(ctx context.Context, name string, f *updateFlags) error {
	changesLabels := len(f.labels) > 0 || len(f.dropLabels) > 0
	switch {
	case f.protect && f.noProtect:
		return usage("invalid_flag", "--protect and --no-protect exclude each other")
	case !a.given("name") && !a.given("description") && !changesLabels && !f.protect && !f.noProtect:
		return usage("nothing_to_change", "nothing to change: give --name, --description, --label, --remove-label, --protect or --no-protect").
			withTry(a.commandLine("vm", "update", "--help"))
	}
	labels, err := parsePairs("label", f.labels)
	if err != nil {
		return err
	}
	p, err := a.projectFor(name)
	if err != nil {
		return err
	}
	// The read gives the generation, and the labels that the change keeps.
	now, err := p.GetVM(ctx, name)
	if err != nil {
		return a.about("vm", name, "update").failed(err)
	}
	condition := client.IfGeneration(now.Generation)
	if f.ifMatch != "" {
		if condition, err = parseGeneration(f.ifMatch); err != nil {
			return err
		}
	}
	key := f.key
	if key == "" {
		key = uuid.NewString()
	}
	changed, _, err := p.UpdateVM(ctx, string(now.ID), f.change(a, now, labels, changesLabels), condition, client.WithKey(key))
	if err != nil {
		return a.about("vm", name, "update").withKey(key).failed(err)
	}
	return showOne(a, vmListing, changed)
}

func (f *updateFlags) change(a *app, now hcp.VMView, labels map[string]string, changesLabels bool) v1.UpdateVM {
	var in v1.UpdateVM
	if a.given("name") {
		in.Name = &f.name
	}
	if a.given("description") {
		in.Description = &f.description
	}
	if f.protect || f.noProtect {
		in.DeletionProtection = &f.protect
	}
	if changesLabels {
		merged := maps.Clone(now.Labels)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, labels)
		for _, k := range f.dropLabels {
			delete(merged, k)
		}
		in.Labels = &merged
	}
	return in
}

// parseGeneration takes the generation as a number or as the ETag has it.
func parseGeneration(s string) (client.CallOption, error) {
	if s == "*" {
		return client.IfAny(), nil
	}
	n, err := strconv.ParseInt(strings.Trim(s, `"`), 10, 64)
	if err != nil || n < 0 {
		return nil, usage("invalid_flag", "--if-match is the generation that `vm get -o json` shows, or *, not %q", s)
	}
	return client.IfGeneration(n), nil
}
