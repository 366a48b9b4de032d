package main

import (
	"fmt"
	"strings"

	"github.com/lotuscloud/hcp/internal/config"
)

// configurationPage is every setting of hcpd with its default.
func configurationPage() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, generated, "internal/config/settings.go")
	b.WriteString("# Configuration of hcpd\n\n" +
		"Every setting has a default, so that `hcpd` runs without any. What is given later wins: the file that `--config` (or `HCP_CONFIG_FILE`)\n" +
		"names, then the environment, then flags. An unknown key or flag is an error, and so is an unknown `HCP_` variable that resembles a known\n" +
		"one; any other is a warning.\n\n" +
		"In the file a dot is nesting: `jobs.queue` is `queue` below `jobs`. `hcpd config print` shows what holds now. No setting is a\nsecret; secrets stand in files, and settings name the files. `HCP_SIM` belongs to `hcpctl sim`: hcpd takes `sim` from its flag or file only.\n\n" +
		"| Key in hcp.yaml | Flag | Environment | Default | What it is |\n|---|---|---|---|---|\n")
	defaults := config.Default("$XDG_DATA_HOME/hcp")
	for _, s := range config.Settings() {
		value := ""
		if v := s.Value(defaults); v != "" {
			value = "`" + v + "`"
		}
		env := "none"
		if s.Env() != "" {
			env = "`" + s.Env() + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s | %s |\n", s.Key, s.Flag(), env, value, s.Usage)
	}
	return []byte(b.String())
}
