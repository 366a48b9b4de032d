package api

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/lotuscloud/hcp"
)

// readBody reads, checks and decodes the body as the route declares it. It comes
// after authentication: nobody makes us read who may not speak.
func (c *call) readBody() error {
	if !c.route.Mutates() || c.route.Upload && c.isUpload() {
		return nil
	}
	raw, err := c.bytes(c.s.Limits.Body)
	if err != nil {
		return err
	}
	c.raw = raw
	if len(raw) == 0 {
		if c.route.Body != nil && !c.route.BodyOptional {
			return hcp.Errorf(hcp.CodeInvalidRequest, "no_body", "the call needs a JSON body")
		}
		return nil
	}
	if err := c.checkMedia(); err != nil {
		return err
	}
	if !utf8.Valid(raw) {
		return hcp.Errorf(hcp.CodeInvalidRequest, "bad_json", "the body is not valid UTF-8")
	}
	if err := json.Unmarshal(raw, &c.body); err != nil {
		e := hcp.Errorf(hcp.CodeInvalidRequest, "bad_json", "the body is not valid JSON")
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			e = e.WithDetail("offset", syntax.Offset)
		}
		return e
	}
	return c.s.schemas.validate(c.route, c.body)
}

// isUpload reports whether the body is a file and not JSON.
func (c *call) isUpload() bool {
	mt, _, _ := mime.ParseMediaType(c.http.Get(fiber.HeaderContentType))
	return mt == fiber.MIMEOctetStream
}

func (c *call) checkMedia() error {
	mt, params, err := mime.ParseMediaType(c.http.Get(fiber.HeaderContentType))
	charset := strings.ToLower(params["charset"])
	merge := mt == "application/merge-patch+json" && c.method == fiber.MethodPatch
	if err != nil || mt != fiber.MIMEApplicationJSON && !merge || charset != "" && charset != "utf-8" {
		return hcp.Errorf(hcp.CodeUnsupportedMediaType, "media_type", "the body must be application/json")
	}
	if enc := c.http.Get(fiber.HeaderContentEncoding); enc != "" && enc != "identity" {
		return hcp.Errorf(hcp.CodeUnsupportedMediaType, "content_encoding", "a compressed body is not taken")
	}
	return nil
}

// bytes reads the whole body, at most limit bytes.
func (c *call) bytes(limit int) ([]byte, error) {
	tooLarge := func() error {
		return hcp.Errorf(hcp.CodePayloadTooLarge, "body_too_large", "the body is larger than %d bytes", limit).WithDetail("limit", limit)
	}
	length := c.http.Request().Header.ContentLength()
	if length > limit {
		return nil, tooLarge()
	}
	stream := c.bodyStream()
	if stream == nil {
		return nil, nil
	}
	buf := make([]byte, 0, max(length, 0)+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := stream.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, tooLarge()
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, hcp.Errorf(hcp.CodeInvalidRequest, "body_cut", "the body ended early").WithCause(err)
		}
	}
}

// bodyStream is the request's body, or nil. It remembers its end: reading a
// chunked body of fasthttp once more behind it waits for the next request.
func (c *call) bodyStream() io.Reader {
	if c.stream == nil {
		r := c.http.Context().RequestBodyStream()
		if r == nil {
			return nil
		}
		c.stream = &endingReader{r: r}
	}
	return c.stream
}

type endingReader struct {
	r   io.Reader
	end error
}

func (e *endingReader) Read(p []byte) (int, error) {
	if e.end != nil {
		return 0, e.end
	}
	n, err := e.r.Read(p)
	e.end = err
	return n, err
}

// maxDrain is how much of an unread body is read away so that the connection
// can go on.
const maxDrain = 1 << 20

// dropBody leaves nothing of the body for the next request of the connection. A
// large rest ends the connection, after the answer: a connection that is closed
// with unread bytes is reset, and the client never reads why it was refused.
func (c *call) dropBody() {
	stream := c.bodyStream()
	if stream == nil {
		return
	}
	if c.http.Request().Header.ContentLength() <= maxDrain {
		if n, err := io.Copy(io.Discard, io.LimitReader(stream, maxDrain)); err == nil && n < maxDrain {
			return
		}
	} else if c.stream.end == io.EOF {
		return
	}
	resp := fasthttp.AcquireResponse()
	c.http.Response().CopyTo(resp)
	resp.SetConnectionClose()
	until := c.now().Add(lingerTime)
	// fasthttp closes at once what it has answered with Connection: close; so the
	// answer is written here.
	c.http.Context().HijackSetNoResponse(true)
	c.http.Context().Hijack(func(conn net.Conn) {
		defer fasthttp.ReleaseResponse(resp)
		w := bufio.NewWriter(conn)
		if conn.SetDeadline(until) == nil && resp.Write(w) == nil && w.Flush() == nil {
			_, _ = io.CopyN(io.Discard, conn, maxLinger)
		}
	})
}

// A refused upload is read away this long, at most.
const (
	lingerTime = 5 * time.Second
	maxLinger  = 256 << 20
)

// decode fills v from the validated body.
func (c *call) decode(v any) error {
	if len(c.raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.raw, v); err != nil {
		e := hcp.Errorf(hcp.CodeInvalidRequest, "invalid_body", "the body does not have the shape of this call")
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Fields = []hcp.FieldError{{Pointer: "/" + strings.ReplaceAll(t.Field, ".", "/"), Reason: "wrong_type", Detail: "the value does not fit the type of this field"}}
		}
		return e
	}
	return nil
}

// fingerprint is of the call's meaning: method, resolved path and the body in
// canonical form, so that order of keys and white space do not count.
func (c *call) fingerprint(resolved string) (string, error) {
	h := sha256.New()
	io.WriteString(h, c.method+"\n"+resolved+"\n"+c.query.Encode()+"\n")
	if c.body != nil {
		canonical, err := json.Marshal(c.body)
		if err != nil {
			return "", err
		}
		h.Write(canonical)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
