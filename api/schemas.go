package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/lotuscloud/hcp"
)

// schemas are the JSON schemas of all bodies. After newSchemas they are only
// read: requests are validated concurrently.
type schemas struct {
	registry huma.Registry
	bodies   map[string]*huma.Schema // by route id
}

// limitSchema describes hcp.Limit, which marshals itself.
type limitSchema struct{}

func (limitSchema) Schema(huma.Registry) *huma.Schema {
	zero := 0.0
	whole := &huma.Schema{Type: huma.TypeInteger, Minimum: &zero, Format: "int64"}
	word := &huma.Schema{Type: huma.TypeString, Enum: []any{"unlimited"}}
	whole.PrecomputeMessages()
	word.PrecomputeMessages()
	return &huma.Schema{Description: `A whole number from 0 up, or "unlimited"`, OneOf: []*huma.Schema{whole, word}}
}

func newSchemas(routes []Route) (*schemas, error) {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[hcp.Limit](), reflect.TypeFor[limitSchema]())
	s := &schemas{registry: registry, bodies: map[string]*huma.Schema{}}
	for _, r := range routes {
		if r.Body != nil {
			s.bodies[r.ID] = s.of(r.Body)
		} else if r.Mutates() {
			s.bodies[r.ID] = emptyObject()
		}
	}
	return s, nil
}

// emptyObject takes {} and nothing in it.
func emptyObject() *huma.Schema {
	e := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
	e.PrecomputeMessages()
	return e
}

func (s *schemas) of(sample any) *huma.Schema {
	t := reflect.TypeOf(sample)
	return s.registry.Schema(t, true, t.Name())
}

// schemaName is the type's name; a page of VMs is PageVMView.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	return strings.NewReplacer("[", "", "]", "", ".", "").Replace(name)
}

// validate says which fields are wrong and why; it never repeats what was sent.
func (s *schemas) validate(r *Route, body any) error {
	schema := s.bodies[r.ID]
	if schema == nil {
		return nil
	}
	res := huma.ValidateResult{}
	s.strictCase(schema, "", body, &res)
	huma.Validate(s.registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, body, &res)
	if len(res.Errors) == 0 {
		return nil
	}
	e := hcp.Errorf(hcp.CodeInvalidRequest, "invalid_body", "the body is not valid")
	for i, err := range res.Errors {
		if i == 20 {
			break
		}
		if d, ok := err.(*huma.ErrorDetail); ok {
			e.Fields = append(e.Fields, fieldError(d))
		}
	}
	if len(e.Fields) == 1 {
		e.Reason = e.Fields[0].Reason
		e.Message = "the body is not valid: " + e.Fields[0].Detail
	}
	return e
}

// strictCase refuses a field that differs from the schema's in case alone: huma
// and encoding/json would both take it, and two spellings would be one field.
func (s *schemas) strictCase(schema *huma.Schema, at string, v any, res *huma.ValidateResult) {
	for schema != nil && schema.Ref != "" {
		schema = s.registry.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			known := schema.Properties[k]
			if known == nil && len(schema.Properties) > 0 {
				for name := range schema.Properties {
					if strings.EqualFold(name, k) {
						res.Errors = append(res.Errors, &huma.ErrorDetail{Location: strings.TrimPrefix(at+"."+k, "."), Message: validation.MsgUnexpectedProperty})
					}
				}
			}
			s.strictCase(known, strings.TrimPrefix(at+"."+k, "."), inner, res)
		}
	case []any:
		for _, inner := range v {
			s.strictCase(schema.Items, at, inner, res)
		}
	}
}

// reasons maps the beginning of huma's message to our word.
var reasons = []struct{ prefix, reason string }{
	{"unexpected property", "unknown_field"},
	{"expected required property", "required"},
	{"expected value to be one of", "not_allowed"},
	{"expected number >", "out_of_range"},
	{"expected number <", "out_of_range"},
	{"expected length", "wrong_length"},
	{"expected array length", "wrong_length"},
	{"expected string to", "wrong_format"},
	{"expected boolean", "wrong_type"},
	{"expected number", "wrong_type"},
	{"expected integer", "wrong_type"},
	{"expected string", "wrong_type"},
	{"expected array", "wrong_type"},
	{"expected object", "wrong_type"},
}

func fieldError(d *huma.ErrorDetail) hcp.FieldError {
	f := hcp.FieldError{Pointer: pointer(d.Location), Reason: "invalid", Detail: d.Message}
	for _, r := range reasons {
		if strings.HasPrefix(d.Message, r.prefix) {
			f.Reason = r.reason
			break
		}
	}
	if rest, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
		if name, _, ok := strings.Cut(rest, " "); ok {
			f.Pointer += "/" + name
		}
		f.Detail = "the field is required"
	}
	if f.Reason == "unknown_field" {
		f.Detail = "there is no such field"
	}
	return f
}

const maxPointer = 128

// pointer turns huma's location (labels.a, ssh_keys[0]) into a JSON pointer.
func pointer(location string) string {
	if location == "" {
		return ""
	}
	p := "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(location)
	if len(p) > maxPointer {
		p = p[:maxPointer]
	}
	return strings.ToValidUTF8(p, "")
}
