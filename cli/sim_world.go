package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/simctl"
)

// simPlain is a control without arguments and without a result.
func (a *app) simPlain(name, short string, do func(*simctl.Client, context.Context) error, list ...example) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: a.wantArgs(0, 0, ""), Example: examples(list...),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.simControl(cmd.Context(), name, "", func(ctx context.Context, c *simctl.Client) error { return do(c, ctx) })
		}}
}

func (a *app) simClear() *cobra.Command {
	return a.simPlain("clear", "End every fault; hosts and API are up again", (*simctl.Client).Clear,
		example{"back to normal; what hangs needs release", "sim clear"}, example{"as JSON", "sim clear -o json"})
}

func (a *app) simUp() *cobra.Command {
	return a.simPlain("up", "Let the hypervisor answer again", (*simctl.Client).Up, example{"the end of an outage", "sim up"}, example{"as JSON", "sim up -o json"})
}

func (a *app) simExpire() *cobra.Command {
	return a.simPlain("expire-sessions", "End every session of the hypervisor at once", (*simctl.Client).ExpireSessions,
		example{"HCP must sign in again", "sim expire-sessions"}, example{"as JSON", "sim expire-sessions -o json"})
}

func (a *app) simResetCounts() *cobra.Command {
	return a.simPlain("reset-counts", "Start every counter anew", (*simctl.Client).ResetCounts,
		example{"before a measurement", "sim reset-counts"}, example{"as JSON", "sim reset-counts -o json"})
}

func (a *app) simDown() *cobra.Command {
	cmd := &cobra.Command{
		Use: "down", Short: "Let the hypervisor refuse every call; its machines run on", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"an outage", "sim down"}, example{"cut connections in place of 503", "sim down --cut"}),
	}
	cutting := cmd.Flags().Bool("cut", false, "cut the connection of each call")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		mode := "refuse"
		if *cutting {
			mode = "cut"
		}
		return a.simControl(cmd.Context(), "down", mode, func(ctx context.Context, c *simctl.Client) error { return c.Down(ctx, mode) })
	}
	return cmd
}

func (a *app) simHost() *cobra.Command {
	cmd := &cobra.Command{
		Use: "host NAME", Short: "Cut a host off, bring it back, resize it, or add one", Args: a.wantArgs(1, 1, "host"),
		Example:           examples(example{"a host nobody can see", "sim host host-1 --down"}, example{"a small new host", "sim host host-9 --vcpus 2 --memory-mib 2048 --disk-gib 20"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var r simapi.HostRequest
	down := cmd.Flags().Bool("down", false, "cut it off")
	up := cmd.Flags().Bool("up", false, "bring it back")
	cmd.Flags().Int64Var(&r.VCPUs, "vcpus", 0, "virtual processors")
	cmd.Flags().Int64Var(&r.MemoryMiB, "memory-mib", 0, "memory in MiB")
	cmd.Flags().Int64Var(&r.DiskGiB, "disk-gib", 0, "disk in GiB")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.Name = args[0]
		switch {
		case *down && *up:
			return usage("invalid_flag", "--down and --up exclude each other")
		case *down || *up:
			r.Down = down
		}
		return a.simControl(cmd.Context(), "host", r.Name, func(ctx context.Context, c *simctl.Client) error { return c.Host(ctx, r) })
	}
	return cmd
}

func (a *app) simBoot() *cobra.Command {
	return &cobra.Command{
		Use: "boot DURATION", Short: "Set how long a machine takes from power on to its address", Args: a.wantArgs(1, 1, "duration"),
		Example:           examples(example{"like a real guest", "sim boot 20s"}, example{"at once", "sim boot 0s"}),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseDelay(args[0])
			if err != nil {
				return err
			}
			return a.simControl(cmd.Context(), "boot", d.String(), func(ctx context.Context, c *simctl.Client) error { return c.Boot(ctx, d) })
		},
	}
}

func (a *app) simPassword() *cobra.Command {
	cmd := &cobra.Command{
		Use: "password", Short: "Set the password that the hypervisor demands, from standard input; empty takes any", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"credentials that no longer work", "sim password < new-password"}, example{"any will do", "sim password < /dev/null"}),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b, err := readLimited(a.io.In, maxToken, "password")
		if err != nil {
			return err
		}
		password := strings.TrimRight(string(b), "\r\n")
		return a.simControl(cmd.Context(), "password", "", func(ctx context.Context, c *simctl.Client) error { return c.Password(ctx, password) })
	}
	return cmd
}

func (a *app) simOmit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "omit VM", Short: "Leave a machine out of the next lists, as a stale inventory does", Args: a.wantArgs(1, 1, "VM id or provider id"),
		Example:           examples(example{"from the next list", "sim omit 1042"}, example{"from all until clear", "sim omit vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071 --count -1"}),
		ValidArgsFunction: a.completeOne(a.simMachines),
	}
	count := cmd.Flags().Int("count", 1, "how many lists; -1 all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.simControl(cmd.Context(), "omit", args[0], func(ctx context.Context, c *simctl.Client) error { return c.Omit(ctx, args[0], *count) })
	}
	return cmd
}

func (a *app) simRelease() *cobra.Command {
	return &cobra.Command{
		Use: "release [OP]", Short: "Let what hangs go on", Args: a.wantArgs(0, 1, "operation"),
		Example:           examples(example{"everything", "sim release"}, example{"one operation", "sim release clone"}),
		ValidArgsFunction: a.completeOne(opWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			var op simapi.Op
			if len(args) == 1 {
				var err error
				if op, err = parseOp(args[0]); err != nil {
					return err
				}
			}
			c, err := a.simClient()
			if err != nil {
				return err
			}
			n, err := c.Release(cmd.Context(), op)
			if err != nil {
				return a.simFailed(err)
			}
			l := listing[simapi.ReleaseAnswer]{noun: "calls", name: func(r simapi.ReleaseAnswer) string { return strconv.Itoa(r.Released) }}
			return showDetails(a, l, simapi.ReleaseAnswer{Released: n}, [][2]string{{"Released", strconv.Itoa(n)}})
		},
	}
}

func (a *app) simOOB() *cobra.Command {
	cmd := &cobra.Command{
		Use: "oob VERB [VM]", Short: "Act behind HCP's back, as another administrator would", Args: a.wantArgs(1, 2, "verb, and mostly a VM"),
		Long: "Act behind HCP's back. VERB is create, delete, start, stop, unmark, set_cpu, add_disk, migrate or recycle (delete, and a stranger gets its " +
			"provider id). VM is a VM id of HCP or a provider id. It prints the provider ids that were touched.",
		Example: examples(example{"somebody deletes it on the hypervisor", "sim oob delete vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071"},
			example{"ten machines that are not HCP's", "sim oob create --name stranger --count 10"}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"create", "delete", "start", "stop", "unmark", "set_cpu", "add_disk", "migrate", "recycle"}, cobra.ShellCompDirectiveNoFileComp
			}
			return a.complete(cmd, a.simMachines, args, prefix)
		},
	}
	var r simapi.OOBRequest
	f := cmd.Flags()
	f.StringVar(&r.Name, "name", "", "create: name")
	f.StringVar(&r.ID, "id", "", "create: provider id")
	f.StringVar(&r.Marker, "marker", "", "create: the VM id that it claims to be")
	f.StringVar(&r.Image, "image", "", "create: image")
	f.StringVar(&r.Power, "power", "", "create: running or stopped")
	f.StringVar(&r.Host, "host", "", "migrate, create: host")
	f.IntVar(&r.VCPUs, "vcpus", 0, "set_cpu, create: virtual processors")
	f.IntVar(&r.MemoryMiB, "memory-mib", 0, "create: memory in MiB")
	f.IntVar(&r.DiskGiB, "disk-gib", 0, "create: disk in GiB")
	f.IntVar(&r.GiB, "gib", 0, "add_disk: size")
	f.IntVar(&r.N, "count", 0, "create: how many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.Verb = strings.ReplaceAll(args[0], "-", "_")
		if len(args) == 2 {
			r.VM = args[1]
		}
		c, err := a.simClient()
		if err != nil {
			return err
		}
		ids, err := c.OOB(cmd.Context(), r)
		if err != nil {
			return a.simFailed(err)
		}
		l := listing[simapi.OOBAnswer]{noun: "machines", name: func(o simapi.OOBAnswer) string { return strings.Join(o.IDs, "\n") }}
		return showDetails(a, l, simapi.OOBAnswer{IDs: ids}, [][2]string{{"Provider ids", strings.Join(ids, " ")}})
	}
	return cmd
}

var machineListing = listing[simapi.ListedEntry]{
	noun: "machines", name: func(m simapi.ListedEntry) string { return m.ID },
	columns: []column[simapi.ListedEntry]{
		{head: "ID", keep: true, cell: func(_ *app, m simapi.ListedEntry) string { return m.ID }},
		{head: "NAME", cell: func(_ *app, m simapi.ListedEntry) string { return m.Name }},
		{head: "POWER", state: true, cell: func(_ *app, m simapi.ListedEntry) string { return m.Power }},
		{head: "HOST", cell: func(_ *app, m simapi.ListedEntry) string { return m.Host }},
		{head: "MARKER", keep: true, cell: func(_ *app, m simapi.ListedEntry) string { return m.Marker }},
		{head: "ADDRESS", isWide: true, cell: func(_ *app, m simapi.ListedEntry) string { return strings.Join(m.Addresses, ",") }},
		{head: "LOCK", isWide: true, cell: func(_ *app, m simapi.ListedEntry) string {
			if m.Lock == nil {
				return ""
			}
			return string(m.Lock.Op)
		}},
	},
}

func (a *app) simMachines(ctx context.Context, _ string) ([]string, error) {
	c, err := a.simClient()
	if err != nil {
		return nil, err
	}
	all, err := c.List(ctx)
	return wordsOf(all.Machines, err, func(m simapi.ListedEntry) (string, string) { return m.ID, m.Name + " " + m.Power })
}

func (a *app) simList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the machines of the hypervisor as they really are", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"whatever the faults say", "sim list"}, example{"with volumes", "sim list -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.simClient()
			if err != nil {
				return err
			}
			all, err := c.List(cmd.Context())
			if err != nil {
				return a.simFailed(err)
			}
			switch a.global.output {
			case formatJSON:
				return a.printJSON(all)
			case formatYAML:
				return a.printYAML(all)
			}
			return showMany(a, machineListing, all.Machines)
		},
	}
}

type countRow struct {
	Op simapi.Op `json:"op"`
	simapi.Count
}

var countListing = listing[countRow]{
	noun: "calls", name: func(c countRow) string { return string(c.Op) },
	columns: []column[countRow]{
		{head: "OP", keep: true, cell: func(_ *app, c countRow) string { return string(c.Op) }},
		{head: "CALLS", right: true, cell: func(_ *app, c countRow) string { return strconv.FormatInt(c.Calls, 10) }},
		{head: "EFFECTS", right: true, cell: func(_ *app, c countRow) string { return strconv.FormatInt(c.Effects, 10) }},
	},
}

func (a *app) simCount() *cobra.Command {
	return &cobra.Command{
		Use: "count [OP]", Short: "Count calls and effects of the operations", Args: a.wantArgs(0, 1, "operation"),
		Example:           examples(example{"all", "sim count"}, example{"how often was it switched on", "sim count power_on -o json"}),
		ValidArgsFunction: a.completeOne(opWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.simClient()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				op, err := parseOp(args[0])
				if err != nil {
					return err
				}
				n, err := c.Count(cmd.Context(), op)
				if err != nil {
					return a.simFailed(err)
				}
				return showOne(a, countListing, countRow{op, n})
			}
			all, err := c.Counts(cmd.Context())
			if err != nil {
				return a.simFailed(err)
			}
			var rows []countRow
			for _, op := range slices.Sorted(maps.Keys(all.Ops)) {
				rows = append(rows, countRow{op, all.Ops[op]})
			}
			return showMany(a, countListing, rows)
		},
	}
}

func (a *app) simSessions() *cobra.Command {
	return &cobra.Command{
		Use: "sessions", Short: "Count open sessions and logins", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"does HCP keep one", "sim sessions"}, example{"as JSON", "sim sessions -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.simClient()
			if err != nil {
				return err
			}
			s, err := c.Sessions(cmd.Context())
			if err != nil {
				return a.simFailed(err)
			}
			l := listing[simapi.SessionsAnswer]{noun: "sessions", name: func(s simapi.SessionsAnswer) string { return strconv.Itoa(s.Sessions) }}
			return showDetails(a, l, s, [][2]string{{"Sessions", strconv.Itoa(s.Sessions)}, {"Logins", strconv.FormatInt(s.Logins, 10)}})
		},
	}
}
