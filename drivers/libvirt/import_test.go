package libvirt_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestImportGoesToEveryHostOnce(t *testing.T) {
	one, two := hosts(t)
	l := newLab(t, time.Minute, one, two)
	raw := bytes.Repeat([]byte("raw disk "), 100_000)
	imp := l.Driver.(drivers.ImageImporter)
	name, err := imp.ImportImage(t.Context(), "Ünusual / name \x00..", sha(raw), int64(len(raw)), bytes.NewReader(raw))
	l.must(err, "import")
	if strings.ContainsAny(name, "/ \x00") || !strings.Contains(name, sha(raw)[:8]) {
		t.Errorf("the artefact is called %q", name)
	}
	for _, p := range []peer{one, two} {
		if !slices.Contains(p.volumes(t), name) {
			t.Errorf("%s lacks %s: %v", p.name, name, p.volumes(t))
		}
		if got := p.sh(t, "sha256sum", "/var/lib/libvirt/hcp/"+name); !strings.HasPrefix(got, sha(raw)) {
			t.Errorf("%s has other bytes: %s", p.name, got)
		}
		t.Cleanup(func() { p.sh(t, "sh", "-c", "rm -f /var/lib/libvirt/hcp/"+name+"*"); p.virsh(t, "pool-refresh", "hcp") })
	}
	again, err := imp.ImportImage(t.Context(), "Ünusual / name \x00..", sha(raw), int64(len(raw)), bytes.NewReader(raw))
	if err != nil || again != name {
		t.Errorf("the second import gave %q, %v", again, err)
	}
}

func TestImportOfWrongContentLeavesNothing(t *testing.T) {
	one, two := hosts(t)
	l := newLab(t, time.Minute, one, two)
	imp := l.Driver.(drivers.ImageImporter)
	raw := bytes.Repeat([]byte{7}, 1<<20)
	backed := append([]byte("QFI\xfb\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x70\x00\x00\x00\x0b"), make([]byte, 1<<16)...)
	before := [][]string{one.volumes(t), two.volumes(t)}
	broken := errors.New("the source broke")
	for what, c := range map[string]struct {
		sum     string
		size    int64
		content io.Reader
	}{
		"another hash":           {sha([]byte("x")), int64(len(raw)), bytes.NewReader(raw)},
		"too short":              {sha(raw), int64(len(raw)) + 1, bytes.NewReader(raw)},
		"too long":               {sha(raw), int64(len(raw)) - 1, bytes.NewReader(raw)},
		"a source that breaks":   {sha(raw), int64(len(raw)), io.MultiReader(bytes.NewReader(raw[:1<<19]), failing{broken})},
		"a qcow2 on a host file": {sha(backed), int64(len(backed)), bytes.NewReader(backed)},
		"no hash":                {"", int64(len(raw)), bytes.NewReader(raw)},
	} {
		if name, err := imp.ImportImage(t.Context(), "bad", c.sum, c.size, c.content); err == nil {
			t.Errorf("import of %s succeeded as %s", what, name)
		} else if _, ok := errors.AsType[*hcp.Error](err); !ok {
			t.Errorf("import of %s gave %T: %v", what, err, err)
		}
	}
	for i, p := range []peer{one, two} {
		if after := p.volumes(t); !slices.Equal(before[i], after) {
			t.Errorf("%s had %v, has %v", p.name, before[i], after)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
