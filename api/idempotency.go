package api

import (
	"net/http"
	"net/url"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// replay reads the idempotency key and, when a command with it was accepted,
// answers as then.
func (s *Server) replay(c *call) (a answer, replayed bool, err error) {
	header := c.http.Get("Idempotency-Key")
	if header == "" {
		if c.route.KeyRequired {
			return a, false, hcp.Errorf(hcp.CodeInvalidRequest, "missing_idempotency_key", "the call needs an Idempotency-Key header").
				WithHint("send a fresh random key, and the same one again when you repeat the call")
		}
		return a, false, nil
	}
	key, valid := parseKey(header)
	if !valid {
		return a, false, hcp.Errorf(hcp.CodeInvalidRequest, "bad_idempotency_key", "the Idempotency-Key header is not valid").
			WithHint("a key has 1 to 255 visible ASCII characters, quoted or bare")
	}
	if c.query.Get("dry_run") == "true" {
		return a, false, nil // nothing happens, nothing is remembered
	}
	path := c.resolvedPath()
	print, err := c.fingerprint(path)
	if err != nil {
		return a, false, err
	}
	c.key = &hcp.IdempotencyKey{Principal: c.identity.Subject, Project: c.project.ID, Method: c.method, Path: path, Key: key, Fingerprint: print}
	rec, err := s.Store.FindKey(c.ctx, *c.key)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound):
		return a, false, nil
	case err != nil:
		return a, false, err
	}
	a, err = c.answerFrom(rec)
	return a, true, err
}

// answerFrom is the stored answer, or the refusal of a key that was used for
// something else.
func (c *call) answerFrom(rec persistence.IdempotencyRecord) (answer, error) {
	if rec.Fingerprint != c.key.Fingerprint {
		return answer{}, hcp.Errorf(hcp.CodeIdempotencyKeyReused, "idempotency_key_reused", "the idempotency key was used for another request")
	}
	a := answer{status: rec.Status, raw: rec.Body, replayed: true}
	if rec.Status == http.StatusAccepted && rec.Job != "" {
		a.location = c.jobPath(rec.Job)
	}
	return a, nil
}

func (c *call) jobPath(job hcp.JobID) string {
	if job == "" || c.project.ID == "" {
		return ""
	}
	return "/v1/projects/" + url.PathEscape(string(c.project.ID)) + "/jobs/" + string(job)
}

// parseKey takes a structured-field string ("...") or the bare key.
func parseKey(h string) (string, bool) {
	key := h
	if h[0] == '"' {
		if len(h) < 2 || h[len(h)-1] != '"' {
			return "", false
		}
		var out []byte
		for inner := h[1 : len(h)-1]; len(inner) > 0; inner = inner[1:] {
			b := inner[0]
			if b == '\\' {
				if len(inner) < 2 || inner[1] != '"' && inner[1] != '\\' {
					return "", false
				}
				inner = inner[1:]
				b = inner[0]
			} else if b == '"' {
				return "", false
			}
			out = append(out, b)
		}
		key = string(out)
	}
	if len(key) == 0 || len(key) > 255 {
		return "", false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", false
		}
	}
	return key, true
}
