package api

import (
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// theVM resolves {vm}: id, name or LRN within the project. A VM whose deletion is
// done is not there any more; only its history and its jobs are.
func (c *call) theVM() (hcp.Known, error) {
	k, err := c.anyVM()
	if err == nil && k.VM.Lifecycle == hcp.LifecycleDeleted {
		return hcp.Known{}, hcp.NotFound("VM")
	}
	return k, err
}

// anyVM is theVM with those that are deleted.
func (c *call) anyVM() (hcp.Known, error) {
	ref, err := c.paramRef("vm", "vm")
	if err != nil {
		return hcp.Known{}, err
	}
	k, err := c.findVM(ref)
	if err == nil {
		c.target = hcp.LRNOfVM(k.VM.Region, k.VM.Project, k.VM.ID)
	}
	return k, err
}

func (c *call) findVM(ref string) (hcp.Known, error) {
	k, err := c.s.Store.GetVM(c.ctx, c.project.ID, ref)
	if hcp.IsCode(err, hcp.CodeNotFound) {
		return k, hcp.NotFound("VM")
	}
	return k, err
}

func (s *Server) getVM(c *call) (answer, error) {
	k, err := c.theVM()
	if err != nil {
		return answer{}, err
	}
	view := k.View()
	tag := etag(k)
	if none := c.http.Get("If-None-Match"); none != "" && matches(none, tag) {
		return answer{status: 304, etag: tag}, nil
	}
	return answer{status: 200, body: view, etag: tag}, nil
}

// etag is the generation, and behind it a mark of what the hypervisor shows:
// that changes without a generation, and a 304 must not hide it. If-Match looks
// at the generation alone.
func etag(k hcp.Known) string {
	g := strconv.FormatInt(k.VM.Generation, 10)
	if k.Observed == nil && k.Reachable() {
		return `"` + g + `"`
	}
	h := fnv.New32a()
	view := k.View()
	h.Write([]byte(view.Power + "|" + hcp.Power(view.State)))
	for _, a := range view.Addresses {
		h.Write([]byte("|" + a.IP))
	}
	if view.Observed != nil {
		h.Write(strconv.AppendInt(nil, view.Observed.ObservedAt.UnixMicro(), 10))
	}
	return `"` + g + "-" + strconv.FormatUint(uint64(h.Sum32()), 36) + `"`
}

// matches compares weakly, as If-None-Match wants it.
func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

func (s *Server) listVMs(c *call) (answer, error) {
	f, filter, err := s.vmFilter(c)
	if err != nil {
		return answer{}, err
	}
	f.Project = c.project.ID
	rows, err := s.Store.ListVMs(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, rows, f.Page.Limit, vmPosition, hcp.Known.View)
}

func vmPosition(k hcp.Known) persistence.Position {
	return persistence.Position{CreatedAt: k.VM.CreatedAt, ID: string(k.VM.ID)}
}

func (s *Server) vmFilter(c *call) (persistence.VMFilter, string, error) {
	filter := c.filter()
	f := persistence.VMFilter{Name: c.word("name"), State: hcp.State(c.query.Get("state")), Lifecycle: hcp.Lifecycle(c.query.Get("lifecycle")),
		WithDeleted: c.query.Get("deleted") == "true" || c.query.Get("state") == string(hcp.StateDeleted) || c.query.Get("lifecycle") == string(hcp.LifecycleDeleted)}
	if utf8.RuneCountInString(f.Name) > hcp.MaxNameLength {
		return f, "", badQuery("name", "too_long", "no name is longer than 128 characters")
	}
	if z := c.query.Get("zone"); z != "" {
		ref, err := c.ref(z, "zone")
		if err != nil {
			return f, "", err
		}
		row, err := s.zones.find(c.ctx, ref)
		if err != nil {
			return f, "", err
		}
		f.Zone = row.value.ID
	}
	for _, l := range c.query["label"] {
		k, v, found := strings.Cut(l, "=")
		if !found || k == "" {
			return f, "", badQuery("label", "malformed", "a label filter is key=value")
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		if old, twice := f.Labels[k]; twice && old != v {
			return f, "", badQuery("label", "repeated", "one label cannot have two values")
		}
		f.Labels[k] = v
	}
	var err error
	f.Page, err = c.page(filter)
	return f, filter, err
}

func (s *Server) explainVM(c *call) (answer, error) {
	k, err := c.theVM()
	if err != nil {
		return answer{}, err
	}
	a, err := s.do(c, hcp.Command{Verb: hcp.VerbExplain, Cluster: k.VM.Cluster, VM: k.VM.ID})
	if err != nil {
		return answer{}, err
	}
	var x hcp.Explanation
	if err := unmarshalAnswer(a, &x); err != nil {
		return answer{}, err
	}
	if c.identity.Scope != hcp.ScopeOps { // once more here: what a tenant must not see depends on nobody else
		x.Cluster = nil
		for _, call := range []*hcp.InFlightCall{x.InFlight, x.LastCall} {
			if call != nil {
				call.Answer = ""
			}
		}
	}
	if x.Queue == nil {
		x.Queue = []hcp.JobView{}
	}
	if x.MayDo == nil {
		x.MayDo = []string{}
	}
	return ok(x)
}

func (s *Server) vmHistory(c *call) (answer, error) {
	k, err := c.anyVM()
	if err != nil {
		return answer{}, err
	}
	filter := string(k.VM.ID)
	page, err := c.page(filter)
	if err != nil {
		return answer{}, err
	}
	before := int64(1) << 62
	if page.After != nil {
		before = page.After.CreatedAt.UnixMicro()
	}
	events, err := s.Store.VMHistory(c.ctx, k.VM.ID, before, page.Limit)
	if err != nil {
		return answer{}, err
	}
	return paged(c, filter, events, page.Limit, func(e hcp.Event) persistence.Position {
		return persistence.Position{CreatedAt: time.UnixMicro(e.Seq)} // the sequence number is all of it
	}, v1.EventView)
}

const (
	maxLabels     = 64
	maxLabelValue = 255
)

var labelKey = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return badField("/labels", "too_many", "a VM has at most 64 labels")
	}
	for k, v := range labels {
		if !labelKey.MatchString(k) {
			return badField("/labels", "invalid_label", "a label key has 1 to 63 letters, digits and . _ / - inside")
		}
		if utf8.RuneCountInString(v) > maxLabelValue || strings.ContainsFunc(v, unicode.IsControl) {
			return badField("/labels", "invalid_label", "a label value has at most 255 characters and no control characters")
		}
	}
	return nil
}
