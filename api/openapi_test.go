package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"mime"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/jsonschema/v6"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/lotuscloud/hcp/api"
)

var update = flag.Bool("update", false, "write the golden files")

const golden = "openapi.json"

func TestOpenAPIDocumentIsTheGoldenFile(t *testing.T) {
	doc, err := api.OpenAPI()
	must(t, err)
	again, err := api.OpenAPI()
	must(t, err)
	if !bytes.Equal(doc, again) {
		t.Fatal("the document differs from one call to the next")
	}
	if *update {
		must(t, os.WriteFile(golden, doc, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if !bytes.Equal(doc, want) {
		t.Fatal("openapi.json is stale; run go test ./api -run OpenAPI -update")
	}
}

func TestOpenAPIDocumentIsValid(t *testing.T) {
	doc, err := api.OpenAPI()
	must(t, err)
	d, err := libopenapi.NewDocument(doc)
	must(t, err)
	v, errs := validator.NewValidator(d)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if valid, problems := v.ValidateDocument(); !valid {
		for _, p := range problems {
			t.Errorf("%s: %s", p.Message, p.Reason)
		}
	}
}

func TestOpenAPIHasEveryRoute(t *testing.T) {
	doc, err := api.OpenAPI()
	must(t, err)
	var tree struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			CLI         string `json:"x-hcpctl"`
		} `json:"paths"`
	}
	must(t, json.Unmarshal(doc, &tree))
	for _, r := range api.Routes() {
		op := tree.Paths[r.Path][strings.ToLower(r.Method)]
		if op.OperationID != r.ID || op.CLI == "" {
			t.Errorf("%s %s is not in the document as %s with its command", r.Method, r.Path, r.ID)
		}
	}
}

// contract holds the compiled schema of every answer of the document.
type contract struct {
	doc     map[string]any
	schemas *jsonschema.Compiler
	mu      sync.Mutex
	known   map[string]*jsonschema.Schema
	routes  []routePattern
}

type routePattern struct {
	method  string
	path    string
	pattern *regexp.Regexp
}

// theContract compiles the document once for all tests.
var theContract = sync.OnceValue(func() *contract {
	doc, err := api.OpenAPI()
	if err != nil {
		panic(err)
	}
	c := &contract{known: map[string]*jsonschema.Schema{}, schemas: jsonschema.NewCompiler()}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		panic(err)
	}
	c.doc = tree.(map[string]any)
	c.schemas.DefaultDraft(jsonschema.Draft2020)
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource("openapi.json", tree); err != nil {
		panic(err)
	}
	for _, r := range api.Routes() {
		p := regexp.MustCompile(`\\\{[^}]+\\\}`).ReplaceAllString(regexp.QuoteMeta(r.Path), `[^/]+`)
		c.routes = append(c.routes, routePattern{r.Method, r.Path, regexp.MustCompile("^" + p + "$")})
	}
	return c
})

// check finds what the document says of the answer and validates the body by it.
func (c *contract) check(t testing.TB, method, path string, r reply) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	for _, rt := range c.routes {
		if rt.method != method || !rt.pattern.MatchString(path) {
			continue
		}
		op := c.doc["paths"].(map[string]any)[rt.path].(map[string]any)[strings.ToLower(method)].(map[string]any)
		responses := op["responses"].(map[string]any)
		status := strconv.Itoa(r.status)
		resp, documented := responses[status].(map[string]any)
		if !documented {
			if r.status < 400 {
				t.Errorf("%s %s answered %d, which the document does not know", method, rt.path, r.status)
				return
			}
			status = "default"
			resp = responses[status].(map[string]any)
		}
		content, has := resp["content"].(map[string]any)
		if !has {
			if len(r.body) > 0 {
				t.Errorf("%s %s answered %d with a body", method, rt.path, r.status)
			}
			return
		}
		mt, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
		if _, known := content[mt]; !known {
			t.Errorf("%s %s answered %d as %q, which the document does not know", method, rt.path, r.status, mt)
			return
		}
		if !strings.HasSuffix(mt, "json") {
			return
		}
		escape := strings.NewReplacer("~", "~0", "/", "~1")
		pointer := "openapi.json#/paths/" + escape.Replace(rt.path) + "/" + strings.ToLower(method) + "/responses/" + status + "/content/" + escape.Replace(mt) + "/schema"
		c.validate(t, pointer, r.body)
		return
	}
}

func (c *contract) validate(t testing.TB, pointer string, body []byte) {
	t.Helper()
	c.mu.Lock()
	schema := c.known[pointer]
	if schema == nil {
		var err error
		if schema, err = c.schemas.Compile(strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer)); err != nil {
			c.mu.Unlock()
			t.Fatalf("the schema %s does not compile: %v", pointer, err)
		}
		c.known[pointer] = schema
	}
	c.mu.Unlock()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Errorf("the body is not JSON: %v\n%s", err, body)
		return
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("the body is not as the document says: %v\n%s", err, body)
	}
}

// checkAnswer is what every answer must have.
func checkAnswer(t testing.TB, method, path string, r reply) {
	t.Helper()
	for _, h := range []string{"Request-Id", "Trace-Id", "X-Content-Type-Options"} {
		if r.header.Get(h) == "" {
			t.Errorf("%s %s answered %d without %s", method, path, r.status, h)
		}
	}
	if r.status >= 400 && r.status != http.StatusNotModified {
		p := r.problem(t)
		if p.Status != r.status || p.TraceID != r.header.Get("Trace-Id") || string(p.RequestID) != r.header.Get("Request-Id") || !p.Code.Known() || p.Detail == "" || p.Hint == "" {
			t.Errorf("%s %s answered a problem that does not fit its headers: %s", method, path, r.body)
		}
		if p.Retryable != (r.header.Get("Retry-After") != "") {
			t.Errorf("%s %s: retryable is %v, Retry-After is %q", method, path, p.Retryable, r.header.Get("Retry-After"))
		}
	}
	theContract().check(t, method, path, r)
}
