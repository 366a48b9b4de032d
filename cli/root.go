package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `hcpctl works with HCP, the compute control plane of LotusCloud.

A command is a noun and a verb: hcpctl vm create. Names, ids and LRNs are
accepted everywhere. The result goes to stdout, everything else to stderr.

Where to: --server, --project and --token-file, or HCP_SERVER, HCP_PROJECT and
HCP_TOKEN, or a context of the configuration file (hcpctl context add); a flag
goes before the environment, the environment before the context.`

// root is the whole command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "hcpctl", Short: "Virtual machines on any hypervisor", Long: rootLong,
		Example: examples(
			example{"a machine, and wait until it runs", "vm create web-1 --image tiny --flavor small --ssh-key ~/.ssh/id_ed25519.pub"},
			example{"what is there", "vm list -o wide"}),
		SilenceUsage: true, SilenceErrors: true, Version: Version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(a.flagError)
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("{{.Version}}\n")
	a.addGlobalFlags(root.PersistentFlags())
	a.completeGlobalFlags(root)
	root.AddGroup(&cobra.Group{ID: "work", Title: "Machines:"}, &cobra.Group{ID: "offer", Title: "What is on offer, and who may:"},
		&cobra.Group{ID: "watch", Title: "What happened:"}, &cobra.Group{ID: "client", Title: "hcpctl itself:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
		}
		root.AddCommand(cmds...)
	}
	add("work", a.vmCommands(), a.jobCommands())
	add("offer", a.imageCommands(), a.flavorCommands(), a.zoneCommands(), a.clusterCommands(), a.orgCommands(), a.projectCommands(), a.quotaCommands(), a.roleCommands(), a.bindingCommands())
	add("watch", a.eventCommands(), a.auditCommands(), a.systemCommands(), a.simCommands())
	add("client", a.contextCommands(), a.loginCommand(), a.whoamiCommand(), a.versionCommand(), a.explainCommands(), a.queryCommand(), a.completionCommand(root))
	root.AddCommand(a.exitCodesTopic())
	root.SetHelpCommand(a.helpCommand(root))
	return root
}

// helpCommand is cobra's, but a topic that does not exist is an error.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command or a topic", Hidden: true,
		Example: examples(example{"of one command", "help vm create"}, example{"the exit codes", "help exit-codes"}),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range at.Commands() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 && at.HasSubCommands() || at == nil {
				word := args[len(args)-1]
				if len(rest) > 0 {
					word = rest[0]
				}
				if at == nil {
					at = root
				}
				return a.unknownCommand(at, word)
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// Commands lists every command that does something, as it is typed: "vm create".
// An alias is listed beside its command.
func Commands() []string {
	var paths []string
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		for _, c := range cmd.Commands() {
			for _, name := range append([]string{c.Name()}, c.Aliases...) {
				at := strings.TrimSpace(path + " " + name)
				if c.HasSubCommands() {
					walk(c, at)
				} else if c.Runnable() {
					paths = append(paths, at)
				}
			}
		}
	}
	walk(docRoot(), "")
	slices.Sort(paths)
	return paths
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	slices.Sort(names)
	return names
}

// usageTemplate leaves out what a noun cannot do: run by itself.
const usageTemplate = `Usage:
{{- if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND [flags]
{{- else}}
  {{.UseLine}}
{{- end}}
{{- if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}
{{- end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}
{{- $cmds := .Commands}}
{{- if eq (len .Groups) 0}}

Commands:
{{- range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}
{{- end}}{{end}}
{{- else}}
{{- range $group := .Groups}}

{{.Title}}
{{- range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasHelpSubCommands}}

Topics:
{{- range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}
{{- end}}{{end}}
{{- end}}
`
