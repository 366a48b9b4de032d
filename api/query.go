package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Param is one query parameter of a route.
type Param struct {
	Name  string
	Doc   string
	Type  string   // string, integer, boolean or duration
	Enum  []string // allowed words
	Multi bool     // may come several times
}

const (
	maxQuery      = 8 << 10
	maxQueryValue = 2 << 10
	maxPageSize   = 1000
	pageSize      = 50
)

// readQuery refuses what the route does not declare: a misspelt filter must not
// read as no filter.
func (c *call) readQuery() error {
	raw := string(c.http.Request().URI().QueryString())
	if raw == "" {
		return nil
	}
	if len(raw) > maxQuery {
		return badQuery("", "too_long", "the query string is longer than 8 KiB")
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return badQuery("", "malformed", "the query string is malformed")
	}
	for name, values := range q {
		i := slices.IndexFunc(c.route.Query, func(p Param) bool { return p.Name == name })
		if i < 0 {
			shown := "?"
			if len(name) <= 64 && utf8.ValidString(name) {
				shown += name
			}
			return badField(shown, "unknown_parameter", "this call has no such parameter")
		}
		if err := c.route.Query[i].check(values); err != nil {
			return err
		}
	}
	c.query = q
	return nil
}

func (p Param) check(values []string) error {
	if len(values) > 1 && !p.Multi {
		return badQuery(p.Name, "repeated", "the parameter may come once only")
	}
	if len(values) > 64 {
		return badQuery(p.Name, "repeated", "the parameter comes too often")
	}
	for _, v := range values {
		switch {
		case len(v) > maxQueryValue:
			return badQuery(p.Name, "too_long", "the value is too long")
		case !utf8.ValidString(v):
			return badQuery(p.Name, "malformed", "the value is not valid UTF-8")
		case len(p.Enum) > 0 && !slices.Contains(p.Enum, v):
			return badQuery(p.Name, "not_allowed", "the value is none of "+strings.Join(p.Enum, ", "))
		case p.Type == "boolean" && v != "true" && v != "false":
			return badQuery(p.Name, "wrong_type", "the value is neither true nor false")
		}
	}
	return nil
}

func badQuery(name, reason, detail string) error { return badField("?"+name, reason, detail) }

func badField(pointer, reason, detail string) error {
	return &hcp.Error{Code: hcp.CodeInvalidRequest, Reason: reason, Message: "the request is not valid: " + detail,
		Fields: []hcp.FieldError{{Pointer: pointer, Reason: reason, Detail: detail}}}
}

// page reads page_size and page_token. filter is the list's filter in canonical
// form, which the token is bound to.
func (c *call) page(filter string) (persistence.Page, error) {
	p := persistence.Page{Limit: pageSize}
	if v, has := c.query["page_size"]; has {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 1 || n > maxPageSize {
			return p, badQuery("page_size", "out_of_range", "a page has 1 to 1000 items")
		}
		p.Limit = n
	}
	if token := c.query.Get("page_token"); token != "" {
		pos, ok := c.s.pages.open(token, c.pageScope(filter))
		if !ok {
			return p, badQuery("page_token", "bad_page_token", "the page token is not of this list and filter")
		}
		p.After = &pos
	}
	p.Limit++ // one more tells whether there is a next page
	return p, nil
}

func (c *call) pageScope(filter string) string {
	return c.route.ID + "\x00" + string(c.project.ID) + "\x00" + filter
}

// filter is the query without the paging, in canonical form.
func (c *call) filter() string {
	q := url.Values{}
	for k, v := range c.query {
		if k != "page_size" && k != "page_token" {
			v = slices.Clone(v)
			slices.Sort(v)
			q[k] = v
		}
	}
	return q.Encode()
}

// duration reads e.g. 30s or 1500ms.
func (c *call) duration(name string, def, least, most time.Duration) (time.Duration, error) {
	v := c.query.Get(name)
	if _, has := c.query[name]; !has {
		return def, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		return 0, badQuery(name, "out_of_range", "the value is a duration from "+least.String()+" to "+most.String()+", such as 30s")
	}
	return d, nil
}

// word reads a text parameter in NFC.
func (c *call) word(name string) string { return norm.NFC.String(c.query.Get(name)) }
