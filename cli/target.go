package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/lotuscloud/hcp"
)

const defaultServer = "http://127.0.0.1:8080"

// target is where a command goes and as whom.
type target struct {
	server    string
	serverVia string // "--server", "HCP_SERVER", "the context dev", "the default"
	token     secret
	tokenVia  string
	project   string
	context   string
}

// target is worked out once: flag, then environment, then context. A context
// named by --context is as explicit as a flag and goes before the environment.
func (a *app) target() (target, error) {
	if a.known != nil {
		return *a.known, nil
	}
	x, err := a.chosenContext()
	if err != nil {
		return target{}, err
	}
	t := target{context: x.Name}
	a.chooseServer(&t, x)
	if err := checkServer(t.server, t.serverVia, a); err != nil {
		return target{}, err
	}
	if err := a.chooseToken(&t, x); err != nil {
		return target{}, err
	}
	t.project = a.pick(a.global.project, a.env[envProject], x.Project)
	a.known = &t
	return t, nil
}

// pick orders flag, environment and context.
func (a *app) pick(flag, env, context string) string {
	if a.global.context != "" && context != "" {
		env = ""
	}
	for _, v := range []string{flag, env, context} {
		if v != "" {
			return v
		}
	}
	return ""
}

func (a *app) chosenContext() (contextConfig, error) {
	c, err := a.loadConfig()
	if err != nil {
		return contextConfig{}, err
	}
	name, via := a.global.context, "--context"
	if name == "" {
		name, via = a.env[envContext], envContext
	}
	if name == "" {
		name, via = c.Current, "the configuration file"
	}
	if name == "" {
		return contextConfig{}, nil
	}
	if x := c.find(name); x != nil {
		return *x, nil
	}
	return contextConfig{}, noContext(a, c, name, "as "+via+" asks")
}

func (a *app) chooseServer(t *target, x contextConfig) {
	t.server = a.pick(a.global.server, a.env[envServer], x.Server)
	switch {
	case t.server == "":
		t.server, t.serverVia = defaultServer, "the default"
	case t.server == a.global.server:
		t.serverVia = "--server"
	case t.server == x.Server:
		t.serverVia = "the context " + x.Name
	default:
		t.serverVia = envServer
	}
}

// chooseToken never sends a context's token to another server than the context's.
func (a *app) chooseToken(t *target, x contextConfig) error {
	fromFile := func(name, via string) error {
		b, err := os.ReadFile(name)
		if err != nil {
			return usage("token_file_unreadable", "the token file of %s cannot be read: %v", via, err)
		}
		t.token, t.tokenVia = secret(strings.TrimSpace(string(b))), via
		if t.token == "" {
			return usage("token_file_empty", "the token file of %s, %s, is empty", via, name)
		}
		return nil
	}
	useContext := t.serverVia == "the context "+x.Name || x.Server == t.server
	explicit := a.global.context != "" && useContext && (x.Token != "" || x.TokenFile != "")
	switch {
	case a.global.tokenFile != "":
		return fromFile(a.global.tokenFile, "--token-file")
	case a.env[envToken] != "" && !explicit:
		t.token, t.tokenVia = secret(strings.TrimSpace(a.env[envToken])), envToken
	case a.env[envTokenFile] != "" && !explicit:
		return fromFile(a.env[envTokenFile], envTokenFile)
	case useContext && x.Token != "":
		t.token, t.tokenVia = x.Token, "the context "+x.Name
	case useContext && x.TokenFile != "":
		return fromFile(x.TokenFile, "the context "+x.Name)
	}
	if strings.ContainsFunc(string(t.token), isControl) {
		return usage("invalid_token", "the token of %s holds a line break or control character; it must be one line", t.tokenVia)
	}
	return nil
}

// checkServer answers a URL that cannot be one before anything is sent.
func checkServer(raw, via string, a *app) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" && u.Scheme != "http" && u.Scheme != "https":
		guess := "http://" + strings.TrimLeft(raw, "/:")
		f := usage("invalid_server", "the server of %s is not a URL: %q; it looks like %s", via, raw, defaultServer)
		if g, err := url.Parse(guess); err == nil && g.Host != "" && !strings.ContainsAny(raw, " \t\n") {
			f.Message = fmt.Sprintf("the server of %s has no scheme: %q", via, raw)
			f.Try = a.commandLine("version", "--server", guess)
		}
		return f
	case u.Scheme != "http" && u.Scheme != "https":
		return usage("invalid_server", "the server of %s has the scheme %q; it must be http or https", via, u.Scheme)
	case u.Host == "":
		return usage("invalid_server", "the server of %s names no host: %q", via, raw)
	case u.User != nil:
		return usage("invalid_server", "the server of %s carries a user name or password; credentials go into %s only", via, envToken)
	case u.RawQuery != "" || u.Fragment != "":
		return usage("invalid_server", "the server of %s has a query or fragment; it is scheme, host and port only", via)
	}
	return nil
}

// signedIn is the target with a token.
func (a *app) signedIn() (target, error) {
	t, err := a.target()
	if err != nil {
		return t, err
	}
	if t.token == "" {
		return t, &failure{Code: hcp.CodeUnauthorized, Reason: "no_token",
			Message: "you are not signed in to " + t.server + ": there is no token in " + envToken + ", " + envTokenFile + ", --token-file or the context",
			Try:     a.commandLine("login", "--token-stdin")}
	}
	return t, nil
}

// inProject is the target with a token and a project.
func (a *app) inProject() (target, error) {
	t, err := a.signedIn()
	if err != nil {
		return t, err
	}
	if t.project == "" {
		return t, usage("no_project", "no project is chosen: give --project, set %s, or use a context that has one", envProject).
			withTry(a.commandLine("context", "list"))
	}
	return t, nil
}

// claims are what a token says of itself. hcpctl does not verify it: it only
// chooses what to show and which paths to ask.
type claims struct {
	Subject string    `json:"sub"`
	Scope   hcp.Scope `json:"hcp_scope"`
}

func (t target) claims() (c claims, ok bool) {
	parts := strings.Split(t.token.reveal(), ".")
	if len(parts) != 3 {
		return c, false
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	return c, err == nil && json.Unmarshal(b, &c) == nil
}

// isOps reports whether the token claims ops scope.
func (t target) isOps() bool { c, ok := t.claims(); return ok && c.Scope == hcp.ScopeOps }

// projectOf is the project a reference is looked up in: an LRN names its own,
// unless --project says otherwise.
func (a *app) projectOf(t target, ref string) string {
	if l, err := hcp.ParseLRN(ref); err == nil && l.Project != "" && a.global.project == "" {
		return string(l.Project)
	}
	return t.project
}
