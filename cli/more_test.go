package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// Complaint 7: the suggested command lacked the project and failed. Each Try is
// a command line that parses and keeps where the run went.
func TestEveryTryCanBePasted(t *testing.T) {
	for _, code := range []hcp.Code{hcp.CodeInvalidRequest, hcp.CodeUnauthorized, hcp.CodeForbidden, hcp.CodeNotFound, hcp.CodeConflict, hcp.CodeNoCapacity,
		hcp.CodePreconditionFailed, hcp.CodeFeatureNotSupported, hcp.CodeQuotaExceeded} {
		url := problemServer(t, hcp.Errorf(code, "why", "there is no such thing"))
		for path, args := range commandArgs {
			r := newRun(t)
			r.stdin = stdinOf(path)
			token := r.env["HOME"] + "/the token"
			os.WriteFile(token, []byte("t"), 0o600)
			where := []string{"--server", url, "--project", "my project", "--token-file", token}
			got := r.hcpctl(append(append(strings.Fields(path), args...), where...)...)
			_, try, ok := strings.Cut(got.err, "\nTry:   hcpctl ")
			if !ok {
				continue
			}
			try, _, _ = strings.Cut(try, "\n")
			words := shellWords(try)
			at, rest, err := testRoot(t).Find(words)
			if err == nil {
				err = at.ParseFlags(rest)
			}
			if errors.Is(err, pflag.ErrHelp) {
				err = nil
			}
			if help := slices.Contains(words, "--help"); err == nil && at.Args != nil && !help {
				err = at.Args(at, at.Flags().Args())
			}
			if err != nil || !at.Runnable() {
				t.Errorf("%s %s suggests %q: %v", code, path, try, err)
			}
			for _, w := range where {
				if !slices.Contains(words, w) {
					t.Errorf("%s %s suggests %q, without %q", code, path, try, w)
				}
			}
		}
	}
}

// shellWords splits as a POSIX shell does, as far as shellQuote goes.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quoted, any := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if any {
		words = append(words, word.String())
	}
	return words
}

func TestCompletionOffersLiveNames(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	s.addVM("web-2")
	s.addVM("db")
	r := newRun(t).against(s.url)
	r.hcpctl("__complete", "vm", "start", "web").expect(t, 0, "web-1\tstopped\nweb-2\tstopped\n", "")
	if got := r.hcpctl("__complete", "vm", "start", "web-1", "web"); strings.Contains(got.out, "web-1") {
		t.Errorf("it offers what is there already: %s", got.out)
	}
	r.hcpctl("__complete", "vm", "list", "--state", "run").expect(t, 0, "running", "")
	r.hcpctl("__complete", "sim", "fail", "power_").expect(t, 0, "power_on\npower_off\n", "")
}

func TestCompletionIsSilentWithoutServer(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	for _, server := range []string{"http://127.0.0.1:1", "garbage", hang.URL} {
		got := newRun(t).against(server).hcpctl("__complete", "vm", "start", "")
		if got.code != 0 || strings.TrimSpace(got.out) != ":4" || strings.Contains(got.err, "rror:") {
			t.Errorf("%s: exit %d %q %q", server, got.code, got.out, got.err)
		}
	}
}

func TestConfigurationFile(t *testing.T) {
	r := newRun(t)
	file := r.env[envConfig]
	r.hcpctl("context", "list").expect(t, 0, "", "There are no contexts here.")
	if _, err := os.Stat(file); err == nil {
		t.Error("a read made the file")
	}
	r.hcpctl("context", "add", "a", "--server", "http://a").expect(t, 0, "a", "")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	r.hcpctl("context", "add", "b", "--server", "nope").expect(t, hcp.ExitUsage, "", "has no scheme")
	r.hcpctl("context", "use", "-").expect(t, hcp.ExitUsage, "", "no context before")
	r.hcpctl("context", "add", "b", "--server", "http://b").expect(t, 0, "b     yes", "")
	r.hcpctl("context", "use", "-").expect(t, 0, "a     yes", "")
	r.hcpctl("context", "rename", "a", "b").expect(t, hcp.ExitConflict, "", "already")
	os.WriteFile(file, []byte("contexts:\n- name: a\n  server: http://a\n  token: hush\n"), 0o600)
	os.Chmod(file, 0o644)
	got := r.hcpctl("context", "list").expect(t, 0, "a", "others can read it; protect it with: chmod 600")
	if strings.Contains(got.out+got.err, "hush") {
		t.Error("the token shows")
	}
	for _, rubbish := range []string{"contexts: 5\n", "unknown: 1\n", "\x00\x01", "contexts: [\n"} {
		os.WriteFile(file, []byte(rubbish), 0o600)
		r.hcpctl("vm", "list", "-o", "json").oneProblem(t)
		r.hcpctl("vm", "list").expect(t, hcp.ExitUsage, "", "is not valid")
	}
}

func TestLoginKeepsTheTokenWithItsServer(t *testing.T) {
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			refuse(w, hcp.Errorf(hcp.CodeUnauthorized, "bad_token", "the token is not valid"), r.URL.Path)
			return
		}
		answer(w, 200, v1.WhoAmI{Subject: "me", Projects: []v1.ProjectAccess{{Name: "only"}}})
	}))
	defer good.Close()
	r := newRun(t)
	r.stdin = "bad\n"
	r.hcpctl("login", "--token-stdin", "--server", good.URL).expect(t, hcp.ExitNotAllowed, "", "UNAUTHORIZED")
	if _, err := os.Stat(r.env[envConfig]); err == nil {
		t.Error("a bad token was kept")
	}
	r.stdin = "good\n"
	r.hcpctl("login", "--token-stdin", "--server", good.URL).expect(t, 0, "default  yes      "+good.URL+"  only     yes", "Signed in")
	r.hcpctl("whoami").expect(t, 0, "Subject:  me", "")
	for _, in := range []string{"", "\n", "two\nlines\n"} {
		r.stdin = in
		r.hcpctl("login", "--token-stdin", "--server", good.URL).expect(t, hcp.ExitUsage, "", "no token")
	}
	r.hcpctl("login").expect(t, hcp.ExitUsage, "", "give --token-stdin")
}

func TestCreateRequest(t *testing.T) {
	a := newApp(program{env: environment{"HOME": t.TempDir()}, io: Stdio{In: strings.NewReader("\xff\x00binary")}})
	keys := a.env["HOME"] + "/id.pub"
	os.WriteFile(keys, []byte("# mine\nssh-ed25519 AAAA one\n\nssh-rsa BBBB two\n"), 0o600)
	in, err := a.createRequest("web", &createFlags{image: "i", flavor: "f", sshKeys: []string{"~/id.pub", "ssh-ed25519 CCCC three"}, userData: "-"})
	if err != nil || len(in.SSHKeys) != 3 || in.UserData != "" || in.UserDataBase64 != "/wBiaW5hcnk=" {
		t.Errorf("%v %+v", err, in)
	}
	private := a.env["HOME"] + "/id"
	os.WriteFile(private, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END"), 0o600)
	for _, bad := range []string{private, "/nope", "nonsense"} {
		_, err := a.createRequest("web", &createFlags{image: "i", flavor: "f", sshKeys: []string{bad}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestZoneMembers(t *testing.T) {
	for in, want := range map[string]v1.ZoneMember{
		"pve": {Cluster: "pve"}, "pve:fast": {Cluster: "pve", Pool: "fast"}, "pve=3": {Cluster: "pve", Weight: 3}, "pve:fast=3": {Cluster: "pve", Pool: "fast", Weight: 3},
		"lrn:lotuscloud:compute:::cluster/cl_1=2": {Cluster: "lrn:lotuscloud:compute:::cluster/cl_1", Weight: 2},
	} {
		if got, err := parseMember(in); err != nil || got != want {
			t.Errorf("%s: %+v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", ":p", "a=0", "a=x", "a="} {
		if m, err := parseMember(bad); err == nil {
			t.Errorf("%q gives %+v", bad, m)
		}
	}
}

// A server that goes away while a job is waited for: the wait goes on, and the
// end of the job is told.
func TestWaitOutlivesARestartOfTheServer(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	down := 2
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/wait") && down > 0 {
			down--
			panic(http.ErrAbortHandler)
		}
		req, _ := http.NewRequestWithContext(context.Background(), r.Method, s.url+r.URL.RequestURI(), r.Body)
		req.Header = r.Header.Clone()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}))
	defer front.Close()
	newRun(t).against(front.URL).hcpctl("vm", "start", "web-1", "--no-wait", "-o", "name").expect(t, 0, "job_", "")
	id := fmt.Sprintf("job_0193a5b2c4d87e0f9a1b2c3d4e5f61%02x", 0)
	newRun(t).against(front.URL).hcpctl("job", "wait", id).expect(t, 0, "succeeded", "")
}

// At the question one Ctrl-C did nothing: the read went on.
func TestInterruptAtTheQuestion(t *testing.T) {
	s := newStub(t)
	s.addVM("web-1")
	in, keepOpen := io.Pipe()
	defer keepOpen.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut syncedBuffer
	r := newRun(t).against(s.url)
	p := program{clock: r.clock, term: terminal{in: true, err: true, width: 80}, env: environment(r.env), io: Stdio{In: in, Out: &out, Err: &errOut}}
	code := make(chan int)
	go func() { code <- p.run(ctx, []string{"vm", "delete", "web-1"}) }()
	eventually(t, func() bool { return strings.Contains(errOut.String(), "Type yes") })
	cancel()
	if got := <-code; got != hcp.ExitInterrupted || !strings.Contains(errOut.String(), "nothing was done") {
		t.Errorf("exit %d: %s", got, errOut.String())
	}
}

type syncedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestWithoutAHome(t *testing.T) {
	s := newStub(t)
	r := newRun(t).against(s.url)
	delete(r.env, envConfig)
	delete(r.env, "HOME")
	r.hcpctl("vm", "list").expect(t, 0, "", "There are no VMs here.")
	r.hcpctl("context", "add", "a").expect(t, hcp.ExitUsage, "", "set HCP_CONFIG")
}

func TestWrongCommandLines(t *testing.T) {
	for line, says := range map[string]string{
		"vm list extra": `takes no argument, but there is "extra"`, "vm list --limit x": `invalid argument "x" for "--limit" flag`,
		"vm list --limit -1": "--limit is 0 (all) or more", "vm wait x --timeout -1s": "--timeout must be more than 0", "vm list -o bogus": "there is no output form",
		"help nope": `no command "nope"`, "completion nope": "the shells are", "vm start": "needs the VM", "vm list -l x": "--label takes key=value",
		"vm start a --progress loud": "--progress is auto", "vm start a --wait-timeout 0s": "--wait-timeout must be more than 0",
		"vm stop a --force --timeout 5s --yes": "--timeout makes no sense", "vm stop a --timeout 1500ms": "whole number of seconds", "vm list --color pink": "--color is auto",
		"cluster maintenance a maybe": "maintenance is on or off", "quota get team x": "there is no quota scope", "quota get org": "the subject is missing",
		"quota set org x": "no limit is given", "quota set org x --vms many": "a limit is a whole number", "query v1/x": "begins with one /",
	} {
		r := newRun(t).against("http://127.0.0.1:1")
		got := r.hcpctl(strings.Fields(line)...).expect(t, hcp.ExitUsage, "", says)
		if !strings.Contains(got.err, "\nTry:   hcpctl ") || strings.Contains(got.err, "strconv") {
			t.Errorf("%s: %s", line, got.err)
		}
	}
}
