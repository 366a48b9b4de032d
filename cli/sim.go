package cli

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/simctl"
)

// simCommands drive the simulated hypervisor. They speak to it, not to HCP, and
// need no token.
func (a *app) simCommands() *cobra.Command {
	sim := a.group("sim", "The simulated hypervisor: faults to rehearse an outage",
		a.simDelay(), a.simFail(), a.simHang(), a.simLoseTask(),
		a.simOpFault("drop", "Cut the next calls before they do anything", (*simctl.Client).Drop,
			example{"the request is lost", "sim drop power_on"}, example{"three times", "sim drop power_on --count 3"}),
		a.simOpFault("commit-then-drop", "Let the next calls take effect and cut them instead of an answer", (*simctl.Client).CommitThenDrop,
			example{"the answer is lost", "sim commit-then-drop clone"}, example{"twice", "sim commit-then-drop clone --count 2"}),
		a.simOpFault("commit-noop", "Answer OK to the next calls and do nothing", (*simctl.Client).CommitNoop,
			example{"a delete that is none", "sim commit-noop delete"}, example{"each time until clear", "sim commit-noop delete --count -1"}),
		a.simRelease(), a.simClear(), a.simDown(), a.simUp(), a.simHost(), a.simBoot(), a.simPassword(), a.simExpire(), a.simOmit(),
		a.simOOB(), a.simList(), a.simCount(), a.simResetCounts(), a.simSessions(), a.simStatus())
	sim.Long = "Faults of the simulated hypervisor, to rehearse an outage. The commands speak to it directly: --sim or HCP_SIM is the URL that hcpd sim " +
		"or hcpd --dev printed.\n\nOperations: " + joinWords(simapi.Ops()) + ", or * for all."
	sim.PersistentFlags().StringVar(&a.sim, "sim", "", "URL of the simulated hypervisor (env HCP_SIM)")
	return sim
}

// simDone is what a control without a result answers.
type simDone struct {
	Control string `json:"control"`
	Target  string `json:"target,omitempty"`
}

var simDoneListing = listing[simDone]{
	noun: "controls", name: func(d simDone) string { return d.Control },
	columns: []column[simDone]{
		{head: "CONTROL", keep: true, cell: func(_ *app, d simDone) string { return d.Control }},
		{head: "TARGET", cell: func(_ *app, d simDone) string { return d.Target }},
	},
}

// simClient finds the simulated hypervisor: flag, environment, context.
func (a *app) simClient() (*simctl.Client, error) {
	raw := a.sim
	if raw == "" {
		raw = a.env[envSim]
	}
	if raw == "" {
		x, err := a.chosenContext()
		if err != nil {
			return nil, err
		}
		raw = x.Sim
	}
	if raw == "" {
		return nil, usage("no_sim", "no simulated hypervisor is named: give --sim or set %s to the URL that hcpd printed", envSim).
			withTry(a.commandLine("sim", "status", "--sim", "http://127.0.0.1:8090"))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("invalid_sim", "the address of the simulated hypervisor is not a URL: %q", raw)
	}
	a.simURL = strings.TrimRight(raw, "/")
	return simctl.NewClient(a.simURL), nil
}

// simFailed makes the failure of a control's error.
func (a *app) simFailed(err error) error {
	if err == nil {
		return nil
	}
	if isCancelled(err) {
		return a.about("", "", "").failed(err)
	}
	f := &failure{Code: hcp.CodeUnavailable, Reason: reasonUnreachable, Cause: err,
		Message: "the simulated hypervisor at " + a.simURL + " does not answer (" + firstLine(err.Error()) + ")", Hint: "check --sim and that hcpd sim runs"}
	if e, ok := errors.AsType[*simapi.Error](err); ok {
		f.Reason, f.Message, f.Hint = e.Code, e.Message, ""
		switch {
		case e.Status == 404:
			f.Code, f.Try = hcp.CodeNotFound, a.commandLine("sim", "list")
		case e.Status < 500:
			f.Code, f.Try = hcp.CodeInvalidRequest, a.commandLine("sim", "status")
		default:
			f.Code, f.Try = hcp.CodeInternal, a.commandLine("sim", "status")
		}
	}
	return f
}

// simControl runs a control that has no result but that it was done.
func (a *app) simControl(ctx context.Context, name, target string, do func(context.Context, *simctl.Client) error) error {
	c, err := a.simClient()
	if err != nil {
		return err
	}
	if err := do(ctx, c); err != nil {
		return a.simFailed(err)
	}
	return showOne(a, simDoneListing, simDone{name, target})
}

func parseOp(s string) (simapi.Op, error) {
	op := simapi.Op(strings.ReplaceAll(s, "-", "_"))
	if op == "*" || op.Known() {
		return op, nil
	}
	var names []string
	for _, o := range simapi.Ops() {
		names = append(names, string(o))
	}
	f := usage("unknown_operation", "the simulated hypervisor has no operation %q", s)
	if near := suggestWord(string(op), names); near != "" {
		f.Message += "; did you mean " + near + "?"
	}
	f.Hint = "the operations are " + strings.Join(names, ", ")
	return "", f
}

func opWords(context.Context, string) ([]string, error) {
	return strings.Split(joinWords(simapi.Ops()), ", "), nil
}

func (a *app) simOpFault(name, short string, set func(*simctl.Client, context.Context, simapi.Op, int) error, list ...example) *cobra.Command {
	cmd := &cobra.Command{Use: name + " OP", Short: short, Args: a.wantArgs(1, 1, "operation"), Example: examples(list...),
		ValidArgsFunction: a.completeOne(opWords)}
	count := cmd.Flags().Int("count", 1, "how many calls; -1 until sim clear")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := parseOp(args[0])
		if err != nil {
			return err
		}
		return a.simControl(cmd.Context(), name, string(op), func(ctx context.Context, c *simctl.Client) error { return set(c, ctx, op, *count) })
	}
	return cmd
}

func (a *app) simDelay() *cobra.Command {
	return &cobra.Command{
		Use: "delay OP DURATION", Short: "Make an operation slow; 0s ends it", Args: a.wantArgs(2, 2, "operation and the duration"),
		Example:           examples(example{"a clone takes 20 seconds", "sim delay clone 20s"}, example{"as quick as before", "sim delay clone 0s"}),
		ValidArgsFunction: a.completeOne(opWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := parseOp(args[0])
			if err != nil {
				return err
			}
			d, err := parseDelay(args[1])
			if err != nil {
				return err
			}
			return a.simControl(cmd.Context(), "delay", string(op), func(ctx context.Context, c *simctl.Client) error { return c.Delay(ctx, op, d) })
		},
	}
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usage("invalid_argument", "%q is not a duration; it looks like 20s or 1500ms", s)
	}
	return d, nil
}

func (a *app) simFail() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fail OP CODE", Short: "Make the next calls fail without effect", Args: a.wantArgs(2, 2, "operation and the code"),
		Long: "Make the next calls of an operation fail without effect. CODE is an HTTP status (500) or a word of the hypervisor (locked, no_capacity, " +
			"unauthorized ...); ok ends it.",
		Example:           examples(example{"the next start", "sim fail power_on 500"}, example{"each clone until it is cleared, in its task", "sim fail clone no_capacity --count -1 --in-task"}),
		ValidArgsFunction: a.completeOne(opWords),
	}
	count := cmd.Flags().Int("count", 1, "how many calls; -1 until sim clear")
	inTask := cmd.Flags().Bool("in-task", false, "answer the call with a running task which then fails")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := parseOp(args[0])
		if err != nil {
			return err
		}
		if err := checkFailCode(args[1]); err != nil {
			return err
		}
		return a.simControl(cmd.Context(), "fail", string(op), func(ctx context.Context, c *simctl.Client) error {
			set := c.Fail
			if *inTask {
				set = c.FailInTask
			}
			return set(ctx, op, args[1], *count)
		})
	}
	return cmd
}

// checkFailCode takes what the hypervisor takes: a status or a word.
func checkFailCode(code string) error {
	var parsed simapi.FailCode
	if parsed.UnmarshalJSON([]byte(code)) == nil || parsed.UnmarshalJSON([]byte(strconv.Quote(code))) == nil {
		return nil
	}
	return usage("invalid_argument", "%q is neither an HTTP error status nor a word of the simulated hypervisor", code)
}

func (a *app) simHang() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hang OP", Short: "Leave calls without an answer until sim release; their effect then comes late", Args: a.wantArgs(1, 1, "operation"),
		Example:           examples(example{"every clone", "sim hang clone"}, example{"one, answered with a task that does not end", "sim hang clone --count 1 --answer"}),
		ValidArgsFunction: a.completeOne(opWords),
	}
	count := cmd.Flags().Int("count", 0, "how many calls; 0 until sim release")
	answered := cmd.Flags().Bool("answer", false, "answer with a task that does not end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := parseOp(args[0])
		if err != nil {
			return err
		}
		return a.simControl(cmd.Context(), "hang", string(op), func(ctx context.Context, c *simctl.Client) error {
			if *answered {
				return c.HangTask(ctx, op, *count)
			}
			return c.Hang(ctx, op, *count)
		})
	}
	return cmd
}

func (a *app) simLoseTask() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lose-task OP", Short: "Answer the next calls with a task that nobody knows afterwards", Args: a.wantArgs(1, 1, "operation"),
		Example:           examples(example{"the effect happens", "sim lose-task clone"}, example{"it never does", "sim lose-task clone --when before"}),
		ValidArgsFunction: a.completeOne(opWords),
	}
	count := cmd.Flags().Int("count", 1, "how many calls; -1 until sim clear")
	when := cmd.Flags().String("when", "after", "lose it before or after its effect")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := parseOp(args[0])
		if err != nil {
			return err
		}
		return a.simControl(cmd.Context(), "lose-task", string(op), func(ctx context.Context, c *simctl.Client) error {
			return c.LoseTask(ctx, op, *when, *count)
		})
	}
	return cmd
}
