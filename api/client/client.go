// Package client is the Go SDK of HCP's REST API, the one hcpctl is built on. It
// knows the routes, sends an idempotency key with every mutation, waits as
// Retry-After says and turns problem documents into *Problem errors. It decides
// nothing. Start reading at New, Client.Project and Client.Ops.
package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// Client speaks to one server with one token. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	token     string
	http      *http.Client
	userAgent string
	retries   int
	newKey    func() string
	sleep     func(ctx context.Context, d time.Duration) error
}

// Option changes how a Client works.
type Option func(*Client)

// WithHTTPClient replaces the transport; its Timeout must be 0 for streams to live.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithUserAgent names the program in the server's access log.
func WithUserAgent(ua string) Option { return func(c *Client) { c.userAgent = ua } }

// WithRetries says how often a call is repeated after UNAVAILABLE, RATE_LIMITED
// or a connection that failed; 0 never. The default is 4.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithTLS sets the TLS configuration of the default transport.
func WithTLS(cfg *tls.Config) Option {
	return func(c *Client) { c.http = &http.Client{Transport: transport(cfg)} }
}

// New makes a client of the server, e.g. "http://127.0.0.1:8080". An address
// that is not one is INVALID_REQUEST with reason "bad_server".
func New(server, token string, opts ...Option) (*Client, error) {
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, token: token, http: &http.Client{Transport: transport(nil)}, userAgent: "hcp-go",
		retries: 4, newKey: newKey, sleep: sleep}
	for _, o := range opts {
		o(c)
	}
	return c, nil
}

// Server is the address the client speaks to.
func (c *Client) Server() string { return c.base.String() }

func transport(cfg *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       cfg,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       60 * time.Second,
		ResponseHeaderTimeout: 90 * time.Second, // a /wait takes up to 60 s
	}
}

func parseServer(server string) (*url.URL, error) {
	bad := func(why string) (*url.URL, error) {
		return nil, hcp.Errorf(hcp.CodeInvalidRequest, "bad_server", "the server address is not valid: %s", why).
			WithHint("it looks like http://127.0.0.1:8080 or https://hcp.example.org")
	}
	if strings.TrimSpace(server) == "" {
		return bad("it is empty")
	}
	if !strings.Contains(server, "://") {
		return bad("it must begin with http:// or https://")
	}
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return bad("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("it must begin with http:// or https://")
	case u.Host == "" || u.Hostname() == "":
		return bad("it has no host")
	case u.User != nil:
		return bad("it must not contain a user or password")
	case u.RawQuery != "" || u.Fragment != "":
		return bad("it must not have a query or fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// WhoAmI tells how the server sees the token.
func (c *Client) WhoAmI(ctx context.Context) (v1.WhoAmI, error) {
	return get[v1.WhoAmI](ctx, c, "/v1/whoami", nil)
}

// Version tells what serves the API; it needs no token.
func (c *Client) Version(ctx context.Context) (v1.Version, error) {
	return get[v1.Version](ctx, c, "/v1/version", nil)
}

// OpenAPI is the API's document as the server has it; it needs no token.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	var raw rawBody
	_, err := c.call(ctx, request{method: http.MethodGet, path: "/openapi.json"}, &raw)
	return raw, err
}

// Project is the client of one project, by name, id or LRN.
func (c *Client) Project(project string) *Project {
	return &Project{c: c, name: project, path: "/v1/projects/" + escape(project)}
}

// Ops is the client of the operators' routes.
func (c *Client) Ops() *Ops { return &Ops{c: c} }

// Project calls the tenant's routes. Every vm and job argument takes what the
// API takes: a VM by name, id or LRN, a job by id or LRN.
type Project struct {
	c    *Client
	name string
	path string
}

// Name is the project as it was given.
func (p *Project) Name() string { return p.name }

// Ops calls the operators' routes.
type Ops struct{ c *Client }
