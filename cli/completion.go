package cli

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
)

// completionPatience bounds what a press of Tab may take.
const completionPatience = 2 * time.Second

// completionMost is how many names are offered.
const completionMost = 200

// wordsFunc lists words for completion, each perhaps with a tab and a remark.
type wordsFunc func(ctx context.Context, prefix string) ([]string, error)

func (a *app) completionCommand(root *cobra.Command) *cobra.Command {
	shells := map[string]func(*bytes.Buffer) error{
		"bash":       func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh":        func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish":       func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		"powershell": func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
	}
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print the completion script of a shell", Args: a.wantArgs(1, 1, "shell"),
		Long:      "Print the completion script of a shell. It completes commands, flags and the names that the server knows.",
		Example:   examples(example{"for this session", "completion bash > /tmp/hcpctl.bash && . /tmp/hcpctl.bash"}, example{"for good, fish", "completion fish > ~/.config/fish/completions/hcpctl.fish"}),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(_ *cobra.Command, args []string) error {
			generate, ok := shells[args[0]]
			if !ok {
				return usage("unknown_shell", "there is no completion for %q; the shells are bash, zsh, fish and powershell", args[0])
			}
			var b bytes.Buffer
			if err := generate(&b); err != nil {
				return err
			}
			return a.write(b.Bytes())
		},
	}
}

// complete asks for words; trouble of any kind offers nothing and says nothing.
func (a *app) complete(cmd *cobra.Command, words wordsFunc, taken []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := a.clock.AfterFunc(completionPatience, cancel)
	defer stop()
	if words == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := words(ctx, prefix)
	a.warnings = nil
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, w := range found {
		name, _, _ := strings.Cut(w, "\t")
		if !strings.HasPrefix(name, prefix) || name == "" || contains(taken, name) {
			continue
		}
		if out = append(out, printableTab(w)); len(out) >= completionMost {
			break
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// printableTab keeps the one tab that divides word and remark.
func printableTab(w string) string {
	name, remark, ok := strings.Cut(w, "\t")
	if !ok {
		return printable(name)
	}
	return printable(name) + "\t" + printable(remark)
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

func (a *app) completeOne(words wordsFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(cmd, words, nil, prefix)
	}
}

func (a *app) completeMany(words wordsFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, words, args, prefix)
	}
}

// completeFlag registers completion of a flag's value. It fails only for a flag
// that does not exist, which every test of the tree would show.
func (a *app) completeFlag(cmd *cobra.Command, flag string, words wordsFunc) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, words, nil, prefix)
	})
	if err != nil {
		panic(err)
	}
}

func (a *app) completeGlobalFlags(root *cobra.Command) {
	a.completeFlag(root, "output", func(context.Context, string) ([]string, error) { return formats, nil })
	a.completeFlag(root, "color", func(context.Context, string) ([]string, error) { return []string{"auto", "always", "never"}, nil })
	a.completeFlag(root, "context", a.contextNames)
	a.completeFlag(root, "project", a.projectNames)
}

func (a *app) completeContexts(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeOne(a.contextNames)(cmd, args, prefix)
}

func (a *app) contextNames(context.Context, string) ([]string, error) {
	c, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	return c.names(), nil
}

func (a *app) vmNames(ctx context.Context, _ string) ([]string, error) {
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	page, err := p.ListVMs(ctx, client.ListVMs{PageSize: completionMost})
	return wordsOf(page.Items, err, func(v hcp.VMView) (string, string) { return vmName(v), stateText(v) })
}

func (a *app) jobIDs(ctx context.Context, _ string) ([]string, error) {
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	page, err := p.ListJobs(ctx, client.ListJobs{PageSize: 50})
	return wordsOf(page.Items, err, func(j hcp.JobView) (string, string) {
		return string(j.ID), string(j.Kind) + " " + subject(j) + " " + string(j.State)
	})
}

func (a *app) imageNames(ctx context.Context, _ string) ([]string, error) {
	if isOps, err := a.isOps(); err != nil || isOps {
		return opsWords(ctx, a, (*client.Ops).ListImages, opsImageListing)
	}
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	page, err := p.ListImages(ctx)
	return listingWords(page.Items, err, imageListing)
}

func (a *app) flavorNames(ctx context.Context, _ string) ([]string, error) {
	page, err := a.listFlavors(ctx)
	return listingWords(page.Items, err, flavorListing)
}

func (a *app) zoneNames(ctx context.Context, _ string) ([]string, error) {
	if isOps, err := a.isOps(); err != nil || isOps {
		return opsWords(ctx, a, (*client.Ops).ListZones, opsZoneListing)
	}
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	page, err := p.ListZones(ctx)
	return listingWords(page.Items, err, zoneListing)
}

func (a *app) clusterNames(ctx context.Context, _ string) ([]string, error) {
	return opsWords(ctx, a, (*client.Ops).ListClusters, clusterListing)
}

func (a *app) orgNames(ctx context.Context, _ string) ([]string, error) {
	return opsWords(ctx, a, (*client.Ops).ListOrgs, orgListing)
}

// projectNames are those the token reaches.
func (a *app) projectNames(ctx context.Context, _ string) ([]string, error) {
	if isOps, err := a.isOps(); err != nil || isOps {
		o, err := a.ops()
		if err != nil {
			return nil, err
		}
		page, err := o.ListProjects(ctx, "")
		return listingWords(page.Items, err, projectListing)
	}
	me, err := a.me(ctx)
	return listingWords(me.Projects, err, accessListing)
}

func stateWords(context.Context, string) ([]string, error) {
	return strings.Split(joinWords(hcp.States()), ", "), nil
}
func jobStateWords(context.Context, string) ([]string, error) {
	return strings.Split(joinWords(hcp.JobStates()), ", "), nil
}
func jobKindWords(context.Context, string) ([]string, error) {
	return strings.Split(joinWords(hcp.JobKinds()), ", "), nil
}

func waitWords(context.Context, string) ([]string, error) {
	return []string{"state=running", "state=stopped", "state=running,stopped", "address", "deleted"}, nil
}
