package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func TestAnImageIsStreamedAndChecked(t *testing.T) {
	w := newWorld(t)
	content := make([]byte, 12<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	sum := sha256.Sum256(content)
	r := w.do("POST", "/v1/ops/images", w.ops, map[string]any{"name": "tiny", "version": "1", "sha256": hex.EncodeToString(sum[:]), "firmware": "bios"})
	if r.status != 201 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	path := "/v1/ops/images/tiny/artefacts/" + string(w.cluster.ID)
	binary := []string{"Content-Type", "application/octet-stream"}
	r = w.do("PUT", path, w.ops, content, binary...)
	var v v1.OpsImage
	r.into(t, &v)
	if r.status != 200 || v.Artefacts[w.cluster.ID] == "" || !bytes.Equal(w.images.content, content) || w.images.size != int64(len(content)) || len(v.Zones) != 1 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	w.oneCallRow(r, "upload", "oscar", "ok")

	// One byte is another: refused, and nothing registered.
	content[len(content)-1] ^= 1
	r = w.do("PUT", path, w.ops, content, binary...)
	if p := r.problem(t); r.status != 400 || p.Reason != "checksum_mismatch" {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	w.images.fail = hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the hypervisor does not answer")
	content[len(content)-1] ^= 1
	if r = w.do("PUT", path, w.ops, content, binary...); r.status != 503 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	w.oneCallRow(r, "upload", "oscar", "PROVIDER_UNAVAILABLE")
	if r = w.do("PUT", path, w.ops, nil, binary...); r.status != 400 {
		t.Errorf("an empty upload answered %d: %s", r.status, r.body)
	}
	// Without a token nobody reads a byte of it, and the next call is unharmed.
	if r = w.do("PUT", path, "", content, binary...); r.status != 401 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	// A file goes nowhere else.
	if r = w.do("POST", "/v1/ops/flavors", w.ops, []byte("x"), binary...); r.status != 415 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
	if r = w.do("GET", "/v1/version", "", nil); r.status != 200 {
		t.Errorf("answered %d: %s", r.status, r.body)
	}
}

// A body without a length is bounded as well.
func TestAChunkedBodyIsBounded(t *testing.T) {
	w := newWorld(t)
	req, err := http.NewRequest("POST", w.url+"/v1/projects/demo/vms", struct{ *strings.Reader }{strings.NewReader(`{"name":"` + strings.Repeat("x", 3<<20) + `"}`)})
	must(t, err)
	req.ContentLength = -1
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("answered %d", resp.StatusCode)
	}
	req, err = http.NewRequest("POST", w.url+"/v1/projects/demo/vms", struct{ *strings.Reader }{strings.NewReader(`{"name":"chunked","image":"debian","flavor":"small"}`)})
	must(t, err)
	req.ContentLength = -1
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	resp, err = http.DefaultClient.Do(req)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 202 {
		t.Errorf("answered %d", resp.StatusCode)
	}
}
