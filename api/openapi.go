package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// OpenAPI is the document of the whole API, the same bytes each time.
func OpenAPI() ([]byte, error) {
	routes := Routes()
	s, err := newSchemas(routes)
	if err != nil {
		return nil, err
	}
	return s.document(routes)
}

func (s *schemas) document(routes []Route) ([]byte, error) {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "LotusCloud compute", Version: "v1", Description: "Virtual machines on any hypervisor. " +
			"Answers may gain fields and words: clients ignore what they do not know. Requests may not."},
		Paths: map[string]*huma.PathItem{},
		Components: &huma.Components{Schemas: s.registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer", BearerFormat: "JWT"}}},
		Security: []map[string][]string{{"token": {}}},
	}
	problem := s.of(v1.Problem{})
	for i := range routes {
		r := &routes[i]
		item := doc.Paths[r.Path]
		if item == nil {
			item = &huma.PathItem{}
			doc.Paths[r.Path] = item
		}
		op := s.operation(r, problem)
		switch r.Method {
		case http.MethodGet:
			item.Get = op
		case http.MethodPost:
			item.Post = op
		case http.MethodPut:
			item.Put = op
		case http.MethodPatch:
			item.Patch = op
		case http.MethodDelete:
			item.Delete = op
		}
	}
	b, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var tree any // sorted and indented, for people and diffs
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(tree, "", "  ")
	return append(out, '\n'), err
}

func (s *schemas) operation(r *Route, problem *huma.Schema) *huma.Operation {
	op := &huma.Operation{OperationID: r.ID, Summary: r.Summary, Method: r.Method, Path: r.Path, Responses: map[string]*huma.Response{},
		Tags: []string{tag(r)}, Extensions: map[string]any{"x-hcpctl": r.CLI}}
	if r.Action == auth.Public {
		op.Security = []map[string][]string{{}}
	} else {
		op.Extensions["x-action"] = string(r.Action)
	}
	for _, p := range r.params {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Name, id or LRN, percent-encoded"})
	}
	for _, q := range r.Query {
		op.Parameters = append(op.Parameters, queryParam(q))
	}
	header := func(name, doc string, required bool) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "header", Required: required, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	if r.Mutates() {
		header("Idempotency-Key", "1 to 255 visible characters; the same key and request again get the same answer", r.KeyRequired)
	}
	switch {
	case r.Conditional && r.Mutates():
		header("If-Match", "ETag that was read, or *; missing is 428", false)
	case r.Conditional:
		header("If-None-Match", "ETag that was read; 304 when nothing changed", false)
	}
	if r.Stream {
		header("Last-Event-ID", "Go on behind this event", false)
	}
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Required: !r.BodyOptional, Content: map[string]*huma.MediaType{"application/json": {Schema: s.bodies[r.ID]}}}
		if r.Upload {
			op.RequestBody.Content["application/octet-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
		if r.Method == http.MethodPatch {
			op.RequestBody.Content["application/merge-patch+json"] = &huma.MediaType{Schema: s.bodies[r.ID]}
		}
	}
	op.Responses[strconv.Itoa(r.Status)] = s.success(r)
	if r.ID == "vms.create" {
		op.Responses["200"] = jsonResponse("What the create would do (dry_run=true)", s.of(v1.DryRun{}))
	}
	if r.Conditional && !r.Mutates() {
		op.Responses["304"] = &huma.Response{Description: "Not changed"}
	}
	op.Responses["default"] = &huma.Response{Description: "A problem; its code is one of the catalogue",
		Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}}
	return op
}

func (s *schemas) success(r *Route) *huma.Response {
	switch {
	case r.Stream:
		return &huma.Response{Description: "Server-sent events; data is an Event", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}, Extensions: map[string]any{"x-event": s.of(v1.Event{})}}}}
	case r.Answer == nil:
		return &huma.Response{Description: "Done"}
	case r.ID == "openapi":
		return jsonResponse("The document", &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true})
	case r.Async:
		resp := jsonResponse("Accepted: the resource as it is now, and the job that works on it", s.of(r.Answer))
		resp.Headers = map[string]*huma.Param{"Location": {Description: "Path of the job", Schema: &huma.Schema{Type: huma.TypeString}}}
		return resp
	}
	return jsonResponse(http.StatusText(r.Status), s.of(r.Answer))
}

func jsonResponse(description string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

func queryParam(q Param) *huma.Param {
	schema := &huma.Schema{Type: q.Type}
	for _, e := range q.Enum {
		schema.Enum = append(schema.Enum, e)
	}
	if q.Name == "page_size" {
		least, most := 1.0, float64(maxPageSize)
		schema.Minimum, schema.Maximum, schema.Default = &least, &most, pageSize
	}
	p := &huma.Param{Name: q.Name, In: "query", Description: q.Doc, Schema: schema}
	if q.Multi {
		p.Schema = &huma.Schema{Type: huma.TypeArray, Items: schema}
	}
	return p
}

// tag groups operations by noun: "vms", "ops clusters".
func tag(r *Route) string {
	parts := strings.Split(r.ID, ".")
	if r.Scope == hcp.ScopeOps && len(parts) > 1 {
		return "ops " + parts[1]
	}
	return slices.Concat(parts, []string{""})[0]
}
