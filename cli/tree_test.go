package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
)

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Runnable() || c.HasSubCommands() {
			all = append(all, leaves(c)...)
		}
	}
	return all
}

func testRoot(t *testing.T) *cobra.Command {
	t.Helper()
	return newApp(program{env: environment{}, io: Stdio{Out: io.Discard, Err: io.Discard}}).root()
}

func TestEveryCommandIsDocumented(t *testing.T) {
	for _, cmd := range leaves(testRoot(t)) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("Short is %q", cmd.Short)
			}
			if n := strings.Count(cmd.Example, "  hcpctl "); n < 2 {
				t.Errorf("%d examples, want at least 2", n)
			}
			if cmd.InheritedFlags().Lookup("output") == nil {
				t.Error("-o is missing")
			}
		})
	}
}

// Every example must be a command line that the parser takes.
func TestEveryExampleParses(t *testing.T) {
	for _, cmd := range leaves(testRoot(t)) {
		for line := range strings.Lines(cmd.Example) {
			words, ok := exampleWords(line)
			if !ok {
				continue
			}
			t.Run(strings.Join(words, " "), func(t *testing.T) {
				at, rest, err := testRoot(t).Find(words)
				if err != nil || at.CommandPath() != cmd.CommandPath() {
					t.Fatalf("it finds %v (%v), want %s", at, err, cmd.CommandPath())
				}
				if err := at.ParseFlags(rest); err != nil {
					t.Fatal(err)
				}
				if at.Args != nil {
					if err := at.Args(at, at.Flags().Args()); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// exampleWords are the words of the first hcpctl command of a shell line.
func exampleWords(line string) ([]string, bool) {
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "hcpctl ")
	if !ok {
		return nil, false
	}
	if i := strings.Index(line, "$("); i >= 0 {
		if j := strings.Index(line, ")"); j > i {
			line = line[:i] + "job_x" + line[j+1:]
		}
	}
	for _, cut := range []string{" | ", " > ", " < ", " && "} {
		line, _, _ = strings.Cut(line, cut)
	}
	return strings.Fields(strings.ReplaceAll(line, "'", "")), true
}

// commandArgs gives each leaf arguments with which it reaches the server. A leaf
// that is missing here fails the test.
var commandArgs = map[string][]string{
	"vm create": {"web-1", "--image", "tiny", "--flavor", "small"}, "vm list": {}, "vm get": {"web-1"}, "vm describe": {"web-1"},
	"vm update": {"web-1", "--name", "web-2"}, "vm delete": {"web-1", "--yes"}, "vm start": {"web-1"}, "vm stop": {"web-1"}, "vm reboot": {"web-1"},
	"vm refresh": {"web-1"}, "vm wait": {"web-1"}, "vm explain": {"web-1"}, "vm history": {"web-1"},
	"job list": {}, "job get": {"job_1"}, "job describe": {"job_1"}, "job wait": {"job_1"}, "job cancel": {"job_1"}, "job retry": {"job_1"},
	"image list": {}, "image get": {"tiny"}, "image create": {"tiny", "--version", "1", "--sha256", "00"}, "image import": {"tiny", "--file", "doc.go", "--cluster", "lab"},
	"image deprecate": {"tiny"}, "image retire": {"tiny"}, "image activate": {"tiny"}, "image delete": {"tiny", "--yes"},
	"flavor list": {}, "flavor get": {"small"}, "flavor create": {"small", "--vcpus", "1", "--memory-mib", "512", "--disk-gib", "5"},
	"flavor update": {"small", "--retired"}, "flavor retire": {"small"}, "flavor activate": {"small"}, "flavor delete": {"small", "--yes"},
	"zone list": {}, "zone get": {"local"}, "zone create": {"local", "--region", "home", "--cluster", "lab"}, "zone delete": {"local", "--yes"},
	"cluster list": {}, "cluster get": {"lab"}, "cluster register": {"lab", "--driver", "sim", "--endpoint", "http://127.0.0.1:1"}, "cluster probe": {"lab"},
	"cluster maintenance": {"lab", "on"}, "cluster orphans": {"lab"}, "cluster delete": {"lab", "--yes"},
	"org list": {}, "org get": {"acme"}, "org create": {"acme"}, "org delete": {"acme", "--yes"},
	"project list": {}, "project get": {"demo"}, "project create": {"demo", "--org", "acme"}, "project delete": {"demo", "--yes"},
	"quota get": {}, "quota set": {"org", "acme", "--vms", "5"}, "quota verify": {},
	"event watch": {}, "event list": {"--vm", "web-1"}, "audit list": {}, "zone update": {"local", "--region", "x"},
	"cluster update": {"lab", "--name", "x"}, "cluster credentials": {"lab", "--credentials-stdin"}, "image update": {"tiny", "--min-disk-gib", "1"},
	"role list": {}, "role-binding list": {}, "role-binding create": {"bob", "cloud-operator"}, "role-binding delete": {"rb_1", "--yes"}, "system status": {},
	"login": {"--token-stdin"}, "whoami": {}, "version": {}, "query": {"/v1/whoami"},
}

// localCommands ask no server.
var localCommands = []string{"context add", "context list", "context use", "context show", "context rename", "context delete",
	"completion", "explain error", "help"}

// Complaint 1 of the acceptance list: asked for JSON, commands printed text on
// errors. Each command must leave stdout empty and one problem on stderr.
func TestEveryErrorIsOneJSONDocument(t *testing.T) {
	errors := []*hcp.Error{
		hcp.Errorf(hcp.CodeForbidden, "missing_action", "you may not do this"),
		hcp.Errorf(hcp.CodeQuotaExceeded, "quota_exceeded", "the quota of the project for vms does not allow this"),
		hcp.Errorf(hcp.CodeConflict, "already_in_state", "the VM is already running"),
		hcp.Errorf(hcp.CodeInternal, "unexpected", "HCP met an error it did not expect"),
		hcp.NotFound("vm"),
	}
	for _, e := range errors {
		url := problemServer(t, e)
		for _, cmd := range leaves(testRoot(t)) {
			path := strings.TrimPrefix(cmd.CommandPath(), "hcpctl ")
			if slices.Contains(localCommands, path) || strings.HasPrefix(path, "sim ") {
				continue
			}
			t.Run(string(e.Code)+" "+path, func(t *testing.T) {
				args, known := commandArgs[path]
				if !known {
					t.Fatal("this test has no arguments for the command")
				}
				r := newRun(t).against(url)
				r.stdin = stdinOf(path)
				got := r.hcpctl(append(append(strings.Fields(path), args...), "-o", "json")...)
				p := got.oneProblem(t)
				if got.code != e.Code.Entry().Exit || p.Code != e.Code || p.TraceID != stubTrace || p.RequestID != stubRequest {
					t.Errorf("exit %d, problem %s", got.code, got.err)
				}
			})
		}
	}
}

// Not a terminal: no escape byte in either stream, for no command, whatever the error.
func TestNoEscapeByteWithoutTerminal(t *testing.T) {
	url := problemServer(t, hcp.Errorf(hcp.CodeConflict, "already_in_state", "the VM says \x1b[31mhello\x1b[0m\x07"))
	for path, args := range commandArgs {
		r := newRun(t).against(url)
		r.stdin = stdinOf(path)
		got := r.hcpctl(append(strings.Fields(path), args...)...)
		if strings.ContainsAny(got.out+got.err, "\x1b\x07") {
			t.Errorf("%s wrote an escape byte: %q %q", path, got.out, got.err)
		}
		if lines := strings.Count(got.err, "\n"); lines < 4 {
			t.Errorf("%s: the error has %d lines: %s", path, lines, got.err)
		}
	}
}

func TestHelpOfEveryCommandAsksNobody(t *testing.T) {
	for _, cmd := range leaves(testRoot(t)) {
		r := newRun(t).against("http://192.0.2.1:1") // would hang
		got := r.hcpctl(append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "hcpctl ")), "--help")...)
		if got.code != 0 || !strings.Contains(got.out, "Usage:") || got.err != "" {
			t.Errorf("%s --help: exit %d %q", cmd.CommandPath(), got.code, got.err)
		}
	}
}

// stdinOf is what a command that reads standard input gets.
func stdinOf(path string) string {
	if path == "cluster credentials" {
		return `{"user":"root"}`
	}
	return "token"
}
