package cli

import (
	"github.com/spf13/cobra"
)

// contextCommands work on the configuration file only.
func (a *app) contextCommands() *cobra.Command {
	return a.group("context", "Servers, projects and tokens under one name",
		a.contextAdd(), a.contextList(), a.contextUse(), a.contextShow(), a.contextRename(), a.contextDelete())
}

// contextView is a context without its token.
type contextView struct {
	Name     string `json:"name"`
	Current  bool   `json:"current"`
	Server   string `json:"server"`
	Project  string `json:"project"`
	HasToken bool   `json:"has_token"`
	Sim      string `json:"sim,omitempty"`
}

func viewOfContext(c *configFile, x contextConfig) contextView {
	return contextView{x.Name, c.Current == x.Name, x.Server, x.Project, x.Token != "" || x.TokenFile != "", x.Sim}
}

var contextListing = listing[contextView]{
	noun: "contexts",
	name: func(v contextView) string { return v.Name },
	columns: []column[contextView]{
		{head: "NAME", keep: true, cell: func(_ *app, v contextView) string { return v.Name }},
		{head: "CURRENT", cell: func(_ *app, v contextView) string { return yesNo(v.Current) }},
		{head: "SERVER", cell: func(_ *app, v contextView) string { return v.Server }},
		{head: "PROJECT", cell: func(_ *app, v contextView) string { return v.Project }},
		{head: "TOKEN", cell: func(_ *app, v contextView) string { return yesNo(v.HasToken) }},
		{head: "SIM", isWide: true, cell: func(_ *app, v contextView) string { return v.Sim }},
	},
}

func (a *app) contextAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a context, or change one, and use it",
		Long: "Add a context from --server, --project and --token-file (or the environment). The token itself is stored by hcpctl login.",
		Args: a.wantArgs(1, 1, "name of the context"),
		Example: examples(
			example{"a server and a project", "context add dev --server http://127.0.0.1:8080 --project demo"},
			example{"the token stays in a file of yours", "context add prod --server https://hcp.example.com --project shop --token-file ~/.hcp-token"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	noUse := cmd.Flags().Bool("no-use", false, "do not make it the current context")
	sim := cmd.Flags().String("sim", "", "URL of the simulated hypervisor's controls")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := a.loadConfig()
		if err != nil {
			return err
		}
		x := contextConfig{Name: args[0], Server: a.global.server, Project: a.global.project, TokenFile: a.global.tokenFile, Sim: *sim}
		if old := c.find(x.Name); old != nil {
			x = mergeContext(*old, x)
		}
		if x.Server == "" {
			x.Server = a.pick("", a.env[envServer], defaultServer)
		}
		if x.Project == "" {
			x.Project = a.env[envProject]
		}
		if err := checkServer(x.Server, "the context", a); err != nil {
			return err
		}
		c.put(x)
		if !*noUse {
			c.use(x.Name)
		}
		if err := a.saveConfig(c); err != nil {
			return err
		}
		return showOne(a, contextListing, viewOfContext(c, x))
	}
	return cmd
}

// mergeContext keeps what was not given. A token belongs to its server: another
// server drops it.
func mergeContext(old, changed contextConfig) contextConfig {
	merged := old
	if changed.Server != "" && changed.Server != old.Server {
		merged = contextConfig{Name: old.Name, Server: changed.Server, Project: old.Project}
	}
	if changed.Project != "" {
		merged.Project = changed.Project
	}
	if changed.TokenFile != "" {
		merged.TokenFile, merged.Token = changed.TokenFile, ""
	}
	if changed.Sim != "" {
		merged.Sim = changed.Sim
	}
	return merged
}

func (a *app) contextList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the contexts", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"all", "context list"}, example{"the names alone", "context list -o name"}),
		RunE: func(*cobra.Command, []string) error {
			c, err := a.loadConfig()
			if err != nil {
				return err
			}
			views := make([]contextView, 0, len(c.Contexts))
			for _, x := range c.Contexts {
				views = append(views, viewOfContext(c, x))
			}
			return showMany(a, contextListing, views)
		},
	}
}

func (a *app) contextUse() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one; - is the one before", Args: a.wantArgs(1, 1, "name of the context"),
		Example:           examples(example{"by name", "context use prod"}, example{"back to the one before", "context use -"}),
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.loadConfig()
			if err != nil {
				return err
			}
			name := args[0]
			if name == "-" {
				if name = c.Previous; name == "" {
					return usage("no_previous_context", "there is no context before this one").withTry(a.commandLine("context", "list"))
				}
			}
			x := c.find(name)
			if x == nil {
				return noContext(a, c, name, "")
			}
			c.use(name)
			if err := a.saveConfig(c); err != nil {
				return err
			}
			return showOne(a, contextListing, viewOfContext(c, *x))
		},
	}
}

func (a *app) contextShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show one context, the current one without a name", Args: a.wantArgs(0, 1, "name of the context"),
		Example:           examples(example{"the current one", "context show"}, example{"as JSON; the token never shows", "context show prod -o json"}),
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.loadConfig()
			if err != nil {
				return err
			}
			name := c.Current
			for _, n := range []string{a.env[envContext], a.global.context} {
				if n != "" {
					name = n
				}
			}
			if len(args) == 1 {
				name = args[0]
			}
			if name == "" {
				return usage("no_context", "no context is in use").withTry(a.commandLine("context", "list"))
			}
			x := c.find(name)
			if x == nil {
				return noContext(a, c, name, "")
			}
			return showOne(a, contextListing, viewOfContext(c, *x))
		},
	}
}

func (a *app) contextRename() *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME NEW-NAME", Short: "Rename a context", Args: a.wantArgs(2, 2, "old and the new name"),
		Example:           examples(example{"one context", "context rename dev laptop"}, example{"as JSON", "context rename dev laptop -o json"}),
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.loadConfig()
			if err != nil {
				return err
			}
			switch {
			case c.find(args[0]) == nil:
				return noContext(a, c, args[0], "")
			case c.find(args[1]) != nil:
				f := usage("name_taken", "there is a context %q already; nothing was done", args[1])
				f.Code, f.Exit = "CONFLICT", 0
				return f.withTry(a.commandLine("context", "list"))
			}
			c.rename(args[0], args[1])
			if err := a.saveConfig(c); err != nil {
				return err
			}
			return showOne(a, contextListing, viewOfContext(c, *c.find(args[1])))
		},
	}
}

func (a *app) contextDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete a context and the token it holds", Args: a.wantArgs(1, 1, "name of the context"),
		Example:           examples(example{"ask first", "context delete dev"}, example{"in a script", "context delete dev --yes"}),
		ValidArgsFunction: a.completeContexts,
	}
	yes := confirmFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := a.loadConfig()
		if err != nil {
			return err
		}
		x := c.find(args[0])
		if x == nil {
			return noContext(a, c, args[0], "")
		}
		view := viewOfContext(c, *x)
		if err := a.confirm(*yes, "context delete", args, "context", "The token it holds goes too."); err != nil {
			return err
		}
		c.remove(args[0])
		if err := a.saveConfig(c); err != nil {
			return err
		}
		return showOne(a, contextListing, view)
	}
	return cmd
}

func noContext(a *app, c *configFile, name, asked string) error {
	f := &failure{Code: "NOT_FOUND", Reason: "no_context", Message: "there is no context " + shellQuote(name)}
	if asked != "" {
		f.Message += ", " + asked
	}
	if near := suggestWord(name, c.names()); near != "" {
		f.Message += "; did you mean " + shellQuote(near) + "?"
	}
	f.Try = "hcpctl context list"
	return f
}
