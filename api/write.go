package api

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// defaultRetryAfter is sent with retryable errors that say nothing better.
const defaultRetryAfter = time.Second

func (c *call) headers() {
	h := &c.http.Response().Header
	h.Set("Request-Id", string(c.requestID))
	h.Set("Trace-Id", c.traceID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

func (c *call) write(a answer) error {
	h := c.http
	body := a.raw
	if body == nil && a.body != nil {
		b, err := json.Marshal(a.body)
		if err != nil {
			return err
		}
		body = b
	}
	if a.etag != "" {
		h.Set(fiber.HeaderETag, a.etag)
		h.Set(fiber.HeaderCacheControl, "private, no-cache") // kept, but asked for each time
	}
	if a.location != "" {
		h.Set(fiber.HeaderLocation, a.location)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	h.Status(a.status)
	if a.stream != nil {
		return a.stream()
	}
	if body != nil {
		h.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		h.Response().SetBodyRaw(body)
	}
	return nil
}

func (c *call) writeProblem(e *hcp.Error) {
	entry := e.Code.Entry()
	p := v1.Problem{
		Type: "urn:hcp:problem:" + strings.ToLower(string(e.Code)), Title: entry.Title, Status: entry.Status, Detail: e.Message,
		Instance: c.path, Code: e.Code, Reason: e.Reason, Hint: e.Hint, Retryable: entry.Retryable, TraceID: c.traceID,
		RequestID: c.requestID, Details: e.Details, Errors: e.Fields,
	}
	if p.Detail == "" {
		p.Detail = entry.Title
	}
	if p.Hint == "" {
		p.Hint = entry.Hint
	}
	if job, ok := e.Details["job_id"].(string); ok && hcp.IsID(hcp.KindJob, job) {
		p.JobID = hcp.JobID(job)
	}
	body, err := json.Marshal(p)
	if err != nil { // details that are not JSON: say the rest
		p.Details = nil
		body, _ = json.Marshal(p)
	}
	h := c.http
	if entry.Retryable {
		after := e.RetryAfter
		if after <= 0 {
			after = defaultRetryAfter
		}
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	if e.Code == hcp.CodeUnauthorized {
		h.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="hcp"`)
	}
	h.Status(entry.Status)
	h.Response().Header.SetContentType("application/problem+json")
	h.Response().SetBodyRaw(body)
}

// traceID takes the trace of a valid traceparent (W3C), or begins one.
func traceID(traceparent string) string {
	p := strings.Split(traceparent, "-")
	if len(p) >= 4 && len(p[0]) == 2 && p[0] != "ff" && len(p[1]) == 32 && len(p[2]) == 16 && isHex(p[1]) && isHex(p[2]) &&
		strings.Trim(p[1], "0") != "" && strings.Trim(p[2], "0") != "" {
		return p[1]
	}
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func isHex(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
