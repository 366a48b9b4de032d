package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
)

// buildVersion is set by the linker; without it the module's version is used.
var buildVersion = ""

// Version is the version of this program.
func Version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// connect makes the client of a target. Nothing is sent before the first call.
func (a *app) connect(t target) (*client.Client, error) {
	opts := []client.Option{client.WithUserAgent("hcpctl/" + Version())}
	if a.global.verbose {
		opts = append(opts, client.WithHTTPClient(&http.Client{Transport: &tracingTransport{next: http.DefaultTransport, a: a}}))
	}
	return client.New(t.server, t.token.reveal(), opts...)
}

// project is the client of the chosen project.
func (a *app) project() (*client.Project, error) {
	t, err := a.inProject()
	if err != nil {
		return nil, err
	}
	c, err := a.connect(t)
	if err != nil {
		return nil, err
	}
	return c.Project(t.project), nil
}

// projectFor is the client of the project a reference lies in.
func (a *app) projectFor(ref string) (*client.Project, error) {
	t, err := a.signedIn()
	if err != nil {
		return nil, err
	}
	project := a.projectOf(t, ref)
	if project == "" {
		_, err := a.inProject()
		return nil, err
	}
	c, err := a.connect(t)
	if err != nil {
		return nil, err
	}
	return c.Project(project), nil
}

// ops is the client of the operators' routes; the server judges the token.
func (a *app) ops() (*client.Ops, error) {
	t, err := a.signedIn()
	if err != nil {
		return nil, err
	}
	c, err := a.connect(t)
	if err != nil {
		return nil, err
	}
	return c.Ops(), nil
}

// isOps reports whether this run speaks with an operator's token.
func (a *app) isOps() (bool, error) {
	t, err := a.signedIn()
	return t.isOps(), err
}

// tracingTransport shows every request on stderr: method, path, status, time.
// Headers and bodies never: they hold secrets.
type tracingTransport struct {
	next http.RoundTripper
	a    *app
}

func (t *tracingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := t.a.clock.Now()
	resp, err := t.next.RoundTrip(r)
	took := t.a.clock.Now().Sub(began).Round(time.Millisecond)
	if err != nil {
		t.a.note("%s %s: no answer after %s: %v", r.Method, r.URL.RequestURI(), took, err)
		return resp, err
	}
	t.a.note("%s %s: %d in %s, trace %s", r.Method, r.URL.RequestURI(), resp.StatusCode, took, orDash(resp.Header.Get("Trace-Id")))
	return resp, nil
}

// isPassing reports whether whoever waits should go on waiting.
func isPassing(err error) bool {
	return hcp.IsCode(err, hcp.CodeUnavailable) || hcp.IsCode(err, hcp.CodeRateLimited) || hcp.IsCode(err, hcp.CodeIdempotencyInProgress)
}

// isMissing reports whether the answer was that there is no such thing.
func isMissing(err error) bool {
	return hcp.IsCode(err, hcp.CodeNotFound) && hcp.AsError(err).Reason != reasonNotHCP
}

// isCancelled reports whether the run was interrupted.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled)
}

// seconds checks a flag that the API takes in whole seconds.
func seconds(flag string, d time.Duration) (int, error) {
	if d <= 0 || d%time.Second != 0 {
		return 0, usage("invalid_flag", "--%s is a whole number of seconds above 0, for example 90s", flag)
	}
	return int(d / time.Second), nil
}

// readLimited reads at most limit bytes and says so when there are more.
func readLimited(r io.Reader, limit int64, what string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case isCancelled(err):
		return nil, err
	case err != nil:
		return nil, usage("unreadable", "the %s cannot be read: %v", what, err)
	case int64(len(b)) > limit:
		return nil, usage("too_large", "the %s is larger than %s", what, fmt.Sprint(limit)+" bytes")
	}
	return b, nil
}
