package api_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
)

// Rubbish in any parameter of any route is refused, and never breaks the server
// or reaches an owner.
func TestRubbishInEveryPathParameter(t *testing.T) {
	w := newWorld(t)
	params := regexp.MustCompile(`\{[^}]+\}`)
	for _, r := range api.Routes() {
		names := params.FindAllString(r.Path, -1)
		for at, name := range names {
			if name == "{project}" && at == 0 && len(names) > 1 {
				continue // one row for the project itself is enough
			}
			for _, rubbish := range []string{"%00", "%ff", "%2e%2e%2fops", "..%5c..", "a%2Fb", "%252F", "'%3B--", "%F0%9F%9A%80", "vm_xyz", "lrn:", "lrn:lotuscloud:compute:::cluster%2Fcl_1",
				":vm", "*", "%7Bvm%7D", "%0d%0aX-Evil:%201", "-1", "%20", strings.Repeat("a", 2000)} {
				n := -1
				path := params.ReplaceAllStringFunc(r.Path, func(p string) string {
					if n++; n == at {
						return rubbish
					}
					if p == "{project}" || p == "{id}" {
						return "demo"
					}
					if p == "{scope}" {
						return "project"
					}
					return "debian"
				})
				token := w.token
				if r.Scope == hcp.ScopeOps {
					token = w.ops
				}
				got := w.do(r.Method, path, token, w.validBody(r), "Idempotency-Key", w.ids.New(hcp.KindCommand), "If-Match", "*")
				if got.status < 400 || got.status >= 500 || got.header.Get("X-Evil") != "" {
					t.Errorf("%s with %.40s answered %d: %.300s", r.ID, rubbish, got.status, got.body)
				}
			}
		}
	}
	if n := len(w.owner.commands()); n != 0 {
		t.Errorf("%d commands went out: %+v", n, w.owner.last())
	}
}

// An upload that asks first, as curl does.
func TestAnUploadMayAskFirst(t *testing.T) {
	w := newWorld(t)
	content := bytes.Repeat([]byte("x"), 3<<20)
	sum := sha256.Sum256(content)
	r := w.do("POST", "/v1/ops/images", w.ops, map[string]any{"name": "tiny", "version": "1", "sha256": hex.EncodeToString(sum[:]), "firmware": "bios"})
	if r.status != 201 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	r = w.do("PUT", "/v1/ops/images/tiny/artefacts/"+url.PathEscape(w.cluster.Name), w.ops, content, "Content-Type", "application/octet-stream", "Expect", "100-continue")
	if r.status != 200 || !bytes.Equal(w.images.content, content) {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
}

// Requests that come together on one connection are answered one by one, also
// behind one whose body nobody read.
func TestPipelinedRequestsStayApart(t *testing.T) {
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	defer conn.Close()
	body := `{"name":"x"}`
	fmt.Fprintf(conn, "POST /v1/projects/demo/vms HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	fmt.Fprintf(conn, "POST /v1/projects/demo/vms HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n%s\r\n0\r\n\r\n", body)
	fmt.Fprintf(conn, "GET /v1/projects/demo/vms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", w.token)
	in := bufio.NewReader(conn)
	for i, want := range []int{401, 401, 200} {
		resp, err := http.ReadResponse(in, nil)
		must(t, err)
		if resp.StatusCode != want {
			t.Errorf("answer %d is %d", i, resp.StatusCode)
		}
		var drained bytes.Buffer
		if _, err := drained.ReadFrom(resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
	}
}
