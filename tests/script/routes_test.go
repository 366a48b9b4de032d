package script

import (
	"slices"
	"testing"

	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/cli"
)

// Each route of the API names the hcpctl command that covers it; it must exist.
func TestEveryRouteHasACommand(t *testing.T) {
	commands := cli.Commands()
	for _, r := range api.Routes() {
		if !slices.Contains(commands, r.CLI) {
			t.Errorf("%s %s names hcpctl %q, which there is not", r.Method, r.Path, r.CLI)
		}
	}
}
