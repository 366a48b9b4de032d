package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
)

// app is one run of hcpctl: what every command shares.
type app struct {
	clock    clock.Clock
	term     terminal
	env      environment
	io       Stdio
	global   globalFlags
	flagSet  *pflag.FlagSet // of the command that runs: tells which flags were given
	warnings []string
	// known is filled by the first call of target.
	known *target
	args  []string // as typed
	path  []string // words of the command that runs, without hcpctl
	// sim is --sim; simURL what was chosen.
	sim, simURL string
}

// globalFlags are accepted in any position of every command.
type globalFlags struct {
	server    string
	tokenFile string
	project   string
	context   string
	config    string
	output    string
	color     string
	noHeaders bool
	verbose   bool
}

func newApp(p program) *app {
	a := &app{clock: p.clock, term: p.term, env: p.env, io: p.io}
	a.global.output = p.env[envOutput]
	return a
}

// prescan finds -o before the command line is parsed, so that a wrong command
// line is answered in the form it asked for.
func (a *app) prescan(args []string) {
	a.args = args
	for i, arg := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case arg == "--":
			return
		case arg == "-o" || arg == "--output":
			a.global.output = next
		case strings.HasPrefix(arg, "--output="):
			a.global.output = strings.TrimPrefix(arg, "--output=")
		case strings.HasPrefix(arg, "-o"):
			a.global.output = strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")
		}
	}
}

func (a *app) addGlobalFlags(f *pflag.FlagSet) {
	g := &a.global
	f.StringVar(&g.server, "server", "", "URL of the server (env HCP_SERVER; default "+defaultServer+")")
	f.StringVar(&g.tokenFile, "token-file", "", "file that holds the token (env HCP_TOKEN_FILE; HCP_TOKEN holds the token itself)")
	f.StringVarP(&g.project, "project", "p", "", "project, by name, id or LRN (env HCP_PROJECT)")
	f.StringVar(&g.context, "context", "", "context of the configuration file (env HCP_CONTEXT)")
	f.StringVar(&g.config, "config", "", "configuration file (env HCP_CONFIG)")
	f.StringVarP(&g.output, "output", "o", g.output, "form of the result: "+strings.Join(formats, ", ")+" (env HCP_OUTPUT; default table)")
	f.StringVar(&g.color, "color", "auto", "colour: auto, always, never")
	f.BoolVar(&g.noHeaders, "no-headers", false, "tables without the line of headings")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "show every request on stderr")
}

// prepare checks what is common to all commands, before one runs.
func (a *app) prepare(cmd *cobra.Command) error {
	a.flagSet, a.path = cmd.Flags(), strings.Fields(cmd.CommandPath())[1:]
	if a.global.output == "" {
		a.global.output = formatTable
	}
	if !slices.Contains(formats, a.global.output) {
		wrong := a.global.output
		a.global.output = formatTable
		return usage("unknown_output", "there is no output form %q; the forms are %s", wrong, strings.Join(formats, ", "))
	}
	switch a.global.color {
	case "auto", "always", "never":
	default:
		return usage("invalid_flag", "--color is auto, always or never, not %q", a.global.color)
	}
	for _, w := range a.env.misspelt() {
		a.warn(w)
	}
	return nil
}

// finish turns the end of a command into what is printed and the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	if err == nil {
		a.flushWarnings()
		return 0
	}
	f := a.explainFailure(ctx, err)
	if f.Try == "" && f.Hint == "" && !f.answered && f.Code == hcp.CodeInvalidRequest {
		f.Try = a.commandLine(append(slices.Clone(a.path), "--help")...)
	}
	if a.global.output == formatJSON || a.global.output == formatJSONLines {
		f.printJSON(a.io.Err, a.warnings)
		return f.exitCode()
	}
	a.flushWarnings()
	for _, item := range f.Items {
		item.Err.print(a.io.Err, a.paints(a.term.err))
		fmt.Fprintln(a.io.Err)
	}
	f.print(a.io.Err, a.paints(a.term.err))
	return f.exitCode()
}

// explainFailure makes a failure of any error.
func (a *app) explainFailure(ctx context.Context, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if ctx.Err() != nil {
		return &failure{Code: codeInterrupted, Message: "interrupted before the server answered", Cause: err}
	}
	return a.about("", "", "").failed(err)
}

// warn keeps a remark for stderr; with -o json it travels inside a problem
// document, so that stderr stays one document.
func (a *app) warn(text string) {
	if !slices.Contains(a.warnings, text) {
		a.warnings = append(a.warnings, text)
	}
}

func (a *app) flushWarnings() {
	for _, w := range a.warnings {
		fmt.Fprintf(a.io.Err, "%s %s\n", yellow.paint("Warning:", a.paints(a.term.err)), printable(w))
	}
	a.warnings = nil
}

// note writes a remark that no script needs; JSON output does without.
func (a *app) note(format string, args ...any) {
	if a.global.output != formatJSON && a.global.output != formatJSONLines {
		fmt.Fprintln(a.io.Err, printable(fmt.Sprintf(format, args...)))
	}
}

// paints reports whether a stream gets colour.
func (a *app) paints(isTTY bool) bool {
	switch a.global.color {
	case "always":
		return true
	case "never":
		return false
	}
	return !a.term.noColor && (a.term.forceColor || isTTY && !a.term.dumb)
}

// given reports whether the flag stood on the command line.
func (a *app) given(flag string) bool { return a.flagSet != nil && a.flagSet.Changed(flag) }

// commandLine is a hcpctl command that can be pasted and reaches the same place:
// it keeps the flags of this run that chose context, server, project and token.
func (a *app) commandLine(words ...string) string {
	parts := []string{"hcpctl"}
	for _, w := range words {
		parts = append(parts, shellQuote(w))
	}
	add := func(flag, value string) {
		if value != "" && !slices.Contains(words, "--"+flag) {
			parts = append(parts, "--"+flag, shellQuote(value))
		}
	}
	add("config", a.global.config)
	add("context", a.global.context)
	add("server", a.global.server)
	add("token-file", a.global.tokenFile)
	project := a.global.project
	if project == "" && a.known != nil && len(words) > 0 && !slices.Contains(words, "--help") && slices.Contains(projectNouns, words[0]) {
		project = a.known.project
	}
	add("project", project)
	return strings.Join(parts, " ")
}

// projectNouns are the nouns whose commands act in a project.
var projectNouns = []string{"vm", "job", "event", "audit", "quota", "image", "flavor", "zone"}
