package archtest

import "strings"

// module is the path of this repository's module.
const module = "github.com/lotuscloud/hcp"

// MaxLines is how long a file of Go may be; generated files are excepted.
const MaxLines = 400

// imports says which folders of the module a folder may import. The longest
// matching key counts for a package; an entry allows a folder and, with /..., what
// is below it. The root package, internal/... and the folder itself are always
// allowed but where stated otherwise. Test files may import more: see mayImport.
var imports = map[string][]string{
	".":                 {}, // the domain: standard library only
	"internal":          {"persistence", "transport", "drivers"},
	"internal/clock":    {},
	"internal/archtest": {},
	"persistence":       {"persistence/..."},
	"transport":         {"transport/..."},
	"drivers":           {"drivers"},
	"cluster":           {"transport", "persistence"},
	"actors":            {"actors/...", "persistence", "drivers", "transport", "cluster"},
	"api":               {"api/...", "persistence", "transport"},
	"api/client":        {"api/v1"},
	"api/v1":            {},
	"cli":               {"api/client", "api/v1", "drivers/sim/simctl", "drivers/sim/simapi"},
	"cmd":               {"..."},
	"tests":             {"tests/...", "api/v1", "api/client", "drivers/sim/simctl", "drivers/sim/simapi"},
	"tests/load":        {"persistence", "persistence/sqlite", "persistence/flushrate"},
	"tests/script":      {"api", "cli"},
}

// siblings are folders whose children are strangers to each other: one driver
// never imports another. A child may import its own sub-folders.
var siblings = []string{"drivers"}

// vendors says in which folders a module may be imported. Absent: anywhere.
var vendors = map[string][]string{
	"github.com/gofiber/":                {"api"},
	"github.com/valyala/":                {"api"},
	"github.com/danielgtaylor/huma/":     {"api"},
	"github.com/golang-jwt/":             {"api"},
	"github.com/asynkron/":               {"actors"},
	"github.com/nats-io/":                {"transport"},
	"modernc.org/":                       {"persistence"},
	"github.com/jackc/":                  {"persistence"},
	"github.com/pressly/goose":           {"persistence"},
	"github.com/tink-crypto/":            {"persistence"},
	"github.com/spf13/":                  {"cli"},
	"github.com/charmbracelet/":          {"cli"},
	"github.com/digitalocean/go-libvirt": {"drivers/libvirt"},
	"libvirt.org/":                       {"drivers/libvirt"},
	"github.com/kdomanski/":              {"drivers/libvirt"},
	"github.com/vmware/":                 {"drivers/vsphere"},
	"github.com/luthermonson/":           {"drivers/proxmox"},
	"github.com/masterzen/":              {"drivers/hyperv"},
	"github.com/prometheus/":             {"internal/observability", "cmd"},
	"github.com/sony/gobreaker":          {"actors"},
}

// clockFuncs of package time read the clock or wait; only internal/clock may.
var clockFuncs = []string{"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"}

// passesDescriptors are libvirt calls that corrupt the connection for good.
var passesDescriptors = []string{"DomainOpenGraphics", "DomainOpenGraphicsFd", "DomainOpenGraphicsFD", "DomainCreateWithFiles",
	"DomainCreateXMLWithFiles", "DomainFdAssociate", "DomainFDAssociate"}

// vagueNames say nothing about what is inside.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}

// isTestCode: files of tests, and packages that exist for tests only.
func isTestCode(path string) bool {
	dir, file := split(path)
	return strings.HasSuffix(file, "_test.go") || within(dir, "tests") || within(dir, "internal/archtest") ||
		strings.HasSuffix(dir, "test") || strings.HasSuffix(dir, "flushrate")
}

func split(path string) (dir, file string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

// within reports whether dir is folder or below it.
func within(dir, folder string) bool {
	return folder == "." || dir == folder || strings.HasPrefix(dir, folder+"/")
}
