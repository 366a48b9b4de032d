package libvirt

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lotuscloud/hcp/drivers"
)

// seedFiles are the NoCloud files of a machine, in name order. All of meta-data
// is JSON, which is YAML: no value can break out of it. User data are the
// caller's bytes, untouched; without any, the keys go in by #cloud-config too.
func seedFiles(spec drivers.Spec) []isoFile {
	var meta strings.Builder
	fmt.Fprintf(&meta, "instance-id: %s\n", quoted(string(spec.VM)))
	fmt.Fprintf(&meta, "local-hostname: %s\n", quoted(spec.Hostname))
	if len(spec.SSHKeys) > 0 {
		meta.WriteString("public-keys:\n")
		for _, k := range spec.SSHKeys {
			fmt.Fprintf(&meta, "  - %s\n", quoted(strings.TrimSpace(k)))
		}
	}
	user := spec.UserData
	if len(user) == 0 {
		user = cloudConfig(spec)
	}
	return []isoFile{
		{"meta-data", []byte(meta.String())},
		{"network-config", []byte("version: 2\nethernets:\n  primary:\n    match:\n      name: \"e*\"\n    dhcp4: true\n")},
		{"user-data", user},
	}
}

func cloudConfig(spec drivers.Spec) []byte {
	var b strings.Builder
	b.WriteString("#cloud-config\n")
	if len(spec.SSHKeys) > 0 {
		b.WriteString("ssh_authorized_keys:\n")
		for _, k := range spec.SSHKeys {
			fmt.Fprintf(&b, "  - %s\n", quoted(strings.TrimSpace(k)))
		}
	}
	return []byte(b.String())
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return `""`
	}
	return string(b)
}

func seedISO(spec drivers.Spec) ([]byte, error) { return writeISO("cidata", seedFiles(spec)) }
