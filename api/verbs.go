package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// verb is the handler of a command on one VM that has no options.
func verb(v hcp.Verb) func(*Server, *call) (answer, error) {
	return func(s *Server, c *call) (answer, error) {
		k, err := c.anyVM()
		if err != nil {
			return answer{}, err
		}
		return s.accept(c, hcp.Command{Verb: v, Cluster: k.VM.Cluster, VM: k.VM.ID})
	}
}

func (s *Server) accept(c *call, cmd hcp.Command) (answer, error) {
	a, err := s.do(c, cmd)
	if err != nil {
		return answer{}, err
	}
	return c.accepted(a), nil
}

// defaultStopTimeout is how long a graceful stop may take when nothing is said.
const defaultStopTimeout = 60 * time.Second

func (s *Server) stopVM(c *call) (answer, error) {
	in := v1.StopVM{Mode: hcp.StopGraceful}
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	stop := hcp.StopVM{Mode: in.Mode, Timeout: time.Duration(in.TimeoutS) * time.Second}
	if stop.Mode == "" {
		stop.Mode = hcp.StopGraceful
	}
	if stop.Timeout == 0 {
		stop.Timeout = defaultStopTimeout
	}
	k, err := c.anyVM()
	if err != nil {
		return answer{}, err
	}
	return s.accept(c, hcp.Command{Verb: hcp.VerbStop, Cluster: k.VM.Cluster, VM: k.VM.ID, Stop: &stop})
}

func (s *Server) updateVM(c *call) (answer, error) {
	var in v1.UpdateVM
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	k, err := c.anyVM()
	if err != nil {
		return answer{}, err
	}
	generation, err := c.ifMatch(k.VM.Generation)
	if err != nil {
		return answer{}, err
	}
	up := hcp.UpdateVM{IfGeneration: generation, Labels: in.Labels, Description: in.Description, DeletionProtection: in.DeletionProtection}
	if in.Name != nil {
		name := norm.NFC.String(*in.Name)
		if err := hcp.CheckName(name); err != nil {
			return answer{}, err
		}
		up.Name = &name
	}
	if in.Labels != nil {
		if err := checkLabels(*in.Labels); err != nil {
			return answer{}, err
		}
	}
	a, err := s.do(c, hcp.Command{Verb: hcp.VerbUpdate, Cluster: k.VM.Cluster, VM: k.VM.ID, Update: &up})
	if err != nil {
		return answer{}, err
	}
	out := c.accepted(a)
	var view struct {
		Generation int64 `json:"generation"`
	}
	if json.Unmarshal(a.Body, &view) == nil && view.Generation > 0 && !a.Replayed {
		out.etag = `"` + strconv.FormatInt(view.Generation, 10) + `"`
	}
	return out, nil
}

// ifMatch is the generation the caller has seen; it must be the present one. The
// owner judges once more, under its own turn.
func (c *call) ifMatch(present int64) (int64, error) {
	header := c.http.Get("If-Match")
	if header == "" {
		return 0, hcp.Errorf(hcp.CodePreconditionRequired, "if_match_missing", "the call needs an If-Match header")
	}
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" {
			return present, nil
		}
		tag, quoted := strings.CutPrefix(part, `"`)
		if tag, closed := strings.CutSuffix(tag, `"`); quoted && closed {
			g, _, _ := strings.Cut(tag, "-")
			if g == strconv.FormatInt(present, 10) {
				return present, nil
			}
		}
	}
	return 0, hcp.Errorf(hcp.CodePreconditionFailed, "etag_mismatch", "the VM has changed since it was read").WithDetail("generation", present)
}

func unmarshalAnswer(a hcp.Answer, v any) error {
	if err := json.Unmarshal(a.Body, v); err != nil {
		return hcp.Errorf(hcp.CodeInternal, "bad_answer", "the owner's answer cannot be read").WithCause(err)
	}
	return nil
}
