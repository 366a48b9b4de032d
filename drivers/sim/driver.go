package sim

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

const defaultCallTimeout = 30 * time.Second

// Driver is one cluster of simulated hosts.
type Driver struct {
	api    *client
	now    func() time.Time
	settle time.Duration

	closing sync.Once
	closed  error
}

var (
	_ drivers.Driver        = (*Driver)(nil)
	_ drivers.ImageImporter = (*Driver)(nil)
	_ drivers.Opener        = Open
)

// Open is the drivers.Opener of "sim". Endpoint is the URL of `hcpd sim`.
// Credentials are {"user","password"}, or nil. Options: settle_time (a duration,
// "0s" when absent): how long an unknown create may take to show.
func Open(_ context.Context, cfg drivers.Config) (drivers.Driver, error) {
	var fields []hcp.FieldError
	wrong := func(pointer, reason, detail string) {
		fields = append(fields, hcp.FieldError{Pointer: pointer, Reason: reason, Detail: detail})
	}
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		wrong("/endpoint", "invalid", "the endpoint of a simulated hypervisor is a URL like http://127.0.0.1:9000")
	}
	d := &Driver{now: cfg.Now}
	for _, name := range sorted(cfg.Options) {
		if name != "settle_time" {
			wrong("/options/"+name, "unknown", "the option is unknown; settle_time is the only one")
			continue
		}
		d.settle, err = time.ParseDuration(cfg.Options[name])
		if err != nil || d.settle < 0 {
			wrong("/options/settle_time", "invalid", "settle_time is a duration like 30s")
		}
	}
	var login simapi.LoginRequest
	if len(cfg.Credentials) > 0 {
		if err := json.Unmarshal(cfg.Credentials, &login); err != nil {
			wrong("/credentials", "invalid", "credentials are an object with user and password")
		}
	}
	if len(fields) > 0 {
		e := hcp.Errorf(hcp.CodeInvalidRequest, "invalid_cluster", "the registration of the simulated hypervisor is not valid")
		e.Fields = fields
		return nil, e
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = defaultCallTimeout
	}
	d.api = newClient("http://"+u.Host, login, cfg.CallTimeout)
	return d, nil
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close logs out and drops the connections. A second Close does nothing.
func (d *Driver) Close() error {
	d.closing.Do(func() { d.closed = d.api.close() })
	return d.closed
}

func (d *Driver) time() time.Time {
	if d.now == nil {
		return time.Time{}
	}
	return d.now()
}
