package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// example is one line of a command's examples: what it is for, and the words
// after hcpctl.
type example struct{ what, line string }

func examples(list ...example) string {
	var b strings.Builder
	for i, e := range list {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("  # " + e.what + "\n  hcpctl " + e.line)
	}
	return b.String()
}

// group is a noun: it only holds verbs.
func (a *app) group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}}
	cmd.AddCommand(verbs...)
	return cmd
}

// unknownCommand names the verb that was perhaps meant.
func (a *app) unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	f := usage("unknown_command", "%s has no command %q", cmd.CommandPath(), word)
	path := strings.Fields(cmd.CommandPath())[1:]
	if near := suggestWord(word, names); near != "" {
		f.Message += fmt.Sprintf("; did you mean %q?", near)
		return f.withTry(a.commandLine(append(path, near, "--help")...))
	}
	return f.withTry(a.commandLine(append(path, "--help")...))
}

// suggestWord is the nearest word, or one that begins alike.
func suggestWord(word string, candidates []string) string {
	if near := nearest(word, candidates, max(1, min(3, len(word)/2))); near != "" {
		return near
	}
	for _, c := range candidates {
		if len(word) >= 2 && strings.HasPrefix(c, word) {
			return c
		}
	}
	return ""
}

// flagError answers what the flag parser did not understand.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	a.flagSet = cmd.Flags()
	text, _, _ := strings.Cut(err.Error(), ": strconv.") // the parser's own words say nothing to a person
	f := usage("invalid_flag", "%s: %s", cmd.CommandPath(), text)
	path := strings.Fields(cmd.CommandPath())[1:]
	f.Try = a.commandLine(append(path, "--help")...)
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		f.Reason = "unknown_flag"
		f.Message = fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), name)
		if near := suggestWord(name, flagNames(cmd)); near != "" {
			f.Message += fmt.Sprintf("; did you mean --%s?", near)
		}
	}
	return f
}

// wantArgs checks the number of names; what is their word for the message. max
// below 0 is any number.
func (a *app) wantArgs(lowest, highest int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		a.flagSet = cmd.Flags()
		path := strings.Fields(cmd.CommandPath())[1:]
		help := a.commandLine(append(path, "--help")...)
		for _, arg := range args {
			if arg == "" {
				return usage("empty_argument", "%s: the %s is empty", cmd.CommandPath(), what).withTry(help)
			}
		}
		switch {
		case len(args) < lowest:
			return usage("missing_argument", "%s needs the %s", cmd.CommandPath(), what).withTry(help)
		case highest == 0 && len(args) > 0:
			return usage("too_many_arguments", "%s takes no argument, but there is %q", cmd.CommandPath(), args[0]).withTry(help)
		case highest >= 0 && len(args) > highest:
			return usage("too_many_arguments", "%s: %q is one argument too many", cmd.CommandPath(), args[highest]).withTry(help)
		}
		return nil
	}
}

// parsePairs parses k=v pairs of a repeated flag.
func parsePairs(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usage("invalid_flag", "--%s takes key=value, not %q", flag, p)
		}
		m[k] = v
	}
	return m, nil
}
