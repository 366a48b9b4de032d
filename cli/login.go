package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// maxToken is far above any real token.
const maxToken = 64 << 10

func (a *app) loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "Keep a token in a context", Args: a.wantArgs(0, 0, ""),
		Long: "Read a token from standard input, ask the server who it is, and keep it in the current context (or the one of --context, made when new). " +
			"The configuration file is readable by you alone. A token is never given on the command line.",
		Example: examples(example{"from a file", "login --token-stdin < token"},
			example{"into a context of its own", "login --token-stdin --context prod --server https://hcp.example.com --project shop < token"}),
	}
	stdin := cmd.Flags().Bool("token-stdin", false, "read the token from standard input (needed)")
	noCheck := cmd.Flags().Bool("no-check", false, "do not ask the server whether the token is good")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !*stdin {
			return usage("missing_flag", "hcpctl login reads the token from standard input: give --token-stdin")
		}
		if a.term.in {
			a.note("Paste the token, then press Ctrl-D.")
		}
		b, err := readLimited(a.io.In, maxToken, "token")
		if err != nil {
			return err
		}
		token := strings.TrimSpace(string(b))
		if token == "" || strings.ContainsFunc(token, isControl) {
			return usage("invalid_token", "standard input held no token; it is one line")
		}
		return a.login(cmd.Context(), secret(token), *noCheck)
	}
	return cmd
}

func (a *app) login(ctx context.Context, token secret, noCheck bool) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	name := a.global.context
	for _, n := range []string{a.env[envContext], c.Current, "default"} {
		if name == "" {
			name = n
		}
	}
	x := contextConfig{Name: name}
	if old := c.find(name); old != nil {
		x = *old
	}
	x = mergeContext(x, contextConfig{Server: a.pick(a.global.server, a.env[envServer], x.Server), Project: a.pick(a.global.project, a.env[envProject], x.Project)})
	if x.Server == "" {
		x.Server = defaultServer
	}
	if err := checkServer(x.Server, "the context "+name, a); err != nil {
		return err
	}
	x.Name, x.Token, x.TokenFile = name, token, ""
	a.known = &target{server: x.Server, serverVia: "the context " + name, token: token, project: x.Project, context: name}
	me := v1.WhoAmI{Projects: []v1.ProjectAccess{}, Roles: []string{}}
	if !noCheck {
		if me, err = a.me(ctx); err != nil {
			return a.about("", "", "").failed(err)
		}
		if x.Project == "" && len(me.Projects) == 1 {
			x.Project = me.Projects[0].Name
		}
	}
	c.put(x)
	c.use(name)
	if err := a.saveConfig(c); err != nil {
		return err
	}
	a.note("Signed in to %s as the context %s.", x.Server, name)
	return showOne(a, contextListing, viewOfContext(c, x))
}

// me asks the server who the token is.
func (a *app) me(ctx context.Context) (v1.WhoAmI, error) {
	t, err := a.signedIn()
	if err != nil {
		return v1.WhoAmI{}, err
	}
	c, err := a.connect(t)
	if err != nil {
		return v1.WhoAmI{}, err
	}
	return c.WhoAmI(ctx)
}

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show who you are to the server, and what you may", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"subject, projects and roles", "whoami"}, example{"with every action, as JSON", "whoami -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			me, err := a.me(cmd.Context())
			if err != nil {
				return a.about("", "", "").failed(err)
			}
			t := a.known
			details := [][2]string{{"Subject", me.Subject}, {"Scope", string(me.Scope)}, {"Roles", strings.Join(me.Roles, ", ")},
				{"Server", t.server + " (" + t.serverVia + ")"}, {"Token", "from " + t.tokenVia + ", expires " + orDash(rfc3339(me.ExpiresAt))},
				{"Project", t.project}, {"Context", t.context}}
			for _, p := range me.Projects {
				details = append(details, [2]string{"May use", p.Name + " (" + strings.Join(p.Roles, ", ") + ")"})
			}
			l := listing[v1.WhoAmI]{noun: "subjects", name: func(w v1.WhoAmI) string { return w.Subject }}
			return showDetails(a, l, me, details)
		},
	}
}

// versions is what `hcpctl version` tells.
type versions struct {
	Client string      `json:"client"`
	Server *v1.Version `json:"server,omitempty"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of hcpctl and of the server", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"both", "version"}, example{"only hcpctl; nothing is asked over the network", "version --client"}),
	}
	clientOnly := cmd.Flags().Bool("client", false, "only of hcpctl")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: Version()}
		if !*clientOnly {
			server, err := a.serverVersion(cmd.Context())
			if err != nil {
				return a.about("", "", "").failed(err)
			}
			v.Server = &server
		}
		details := [][2]string{{"Client", v.Client}}
		if v.Server != nil {
			details = append(details, [2]string{"Server", v.Server.Version + " (" + a.known.server + ")"}, [2]string{"API", v.Server.API})
		}
		l := listing[versions]{noun: "versions", name: func(v versions) string { return v.Client }}
		return showDetails(a, l, v, details)
	}
	return cmd
}

func (a *app) serverVersion(ctx context.Context) (v1.Version, error) {
	t, err := a.target()
	if err != nil {
		return v1.Version{}, err
	}
	t.token = "" // none is needed, so none is sent
	c, err := a.connect(t)
	if err != nil {
		return v1.Version{}, err
	}
	v, err := c.Version(ctx)
	if err == nil && v.Version == "" {
		return v, hcp.Errorf(hcp.CodeInternal, reasonBadAnswer, "the server's answer is not HCP's")
	}
	return v, err
}
