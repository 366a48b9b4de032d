package secrets_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence/secrets"
)

func TestWhatWasSealedOpensInItsPlaceOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k := open(t, path, true)
	sealed, err := k.Seal([]byte("hunter2"), "cluster/a/credentials")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatal("the plain text stands in the sealed bytes")
	}
	plain, err := open(t, path, false).Open(sealed, "cluster/a/credentials") // another process
	if err != nil || string(plain) != "hunter2" {
		t.Fatalf("got %q, %v", plain, err)
	}
	if _, err := k.Open(sealed, "cluster/b/credentials"); !hcp.IsCode(err, hcp.CodeUnavailable) {
		t.Fatalf("a blob copied to another row opened: %v", err)
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := k.Open(sealed, "cluster/a/credentials"); err == nil {
		t.Fatal("a tampered blob opened")
	}
	for _, rubbish := range []hcp.Sealed{nil, {}, {1}, bytes.Repeat([]byte{0}, 100)} {
		if _, err := k.Open(rubbish, "x"); err == nil {
			t.Fatal("rubbish opened")
		}
	}
	other := open(t, filepath.Join(t.TempDir(), "key"), true)
	if _, err := other.Open(sealed, "cluster/a/credentials"); err == nil {
		t.Fatal("another key opened it")
	}
}

func open(t *testing.T, path string, create bool) *secrets.KeyFile {
	t.Helper()
	k, err := secrets.OpenKeyFile(path, create)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTheKeyFileIsMadeForItsOwnerOnlyAndNothingElseIsLeft(t *testing.T) {
	dir := t.TempDir()
	open(t, filepath.Join(dir, "key"), true)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestProcessesThatCreateAtOnceUseOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make([]*secrets.KeyFile, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() { keys[i], _ = secrets.OpenKeyFile(path, true) })
	}
	wg.Wait()
	sealed, err := keys[0].Seal([]byte("x"), "c")
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if k == nil {
			t.Fatalf("process %d got no key", i)
		}
		if _, err := k.Open(sealed, "c"); err != nil {
			t.Fatalf("process %d uses another key: %v", i, err)
		}
	}
}

func TestAWrongKeyFileIsExplained(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	open(t, good, true)
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		name, path, reason string
		create             bool
	}{
		{"missing", filepath.Join(dir, "none"), "key_missing", false},
		{"readable by the group", write("group", content, 0o640), "key_exposed", false},
		{"readable by all", write("all", content, 0o644), "key_exposed", true},
		{"empty", write("empty", nil, 0o600), "key_damaged", true},
		{"rubbish", write("rubbish", []byte("SECRETMATERIAL"), 0o600), "key_damaged", true},
		{"cut", write("cut", content[:len(content)/2], 0o600), "key_damaged", true},
		{"no keys", write("nokeys", []byte(`{"primaryKeyId":1,"key":[]}`), 0o600), "key_damaged", false},
		{"a folder", dir, "key_unreadable", true},
		{"no folder", filepath.Join(dir, "no", "key"), "key_unreadable", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := secrets.OpenKeyFile(c.path, c.create)
			var e *hcp.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Code != hcp.CodeUnavailable || e.Reason != c.reason || !strings.Contains(e.Message, c.path) || e.Hint == "" {
				t.Errorf("got %+v", e)
			}
			if strings.Contains(err.Error(), "SECRETMATERIAL") || strings.Contains(err.Error(), string(content[10:40])) {
				t.Error("the error quotes the file")
			}
		})
	}
}

func TestASecretCannotPrint(t *testing.T) {
	const text = "hunter2"
	s := secrets.Secret(text)
	type holder struct{ S secrets.Secret }
	j, _ := json.Marshal(holder{s})
	x, _ := xml.Marshal(holder{s})
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s, "h", holder{s})
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "s", s, "h", holder{s})
	out := string(j) + string(x) + log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%t"} {
		out += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, &s) + fmt.Sprintf(verb, holder{s}) + fmt.Sprintf(verb, []secrets.Secret{s})
	}
	out += fmt.Sprint(s) + fmt.Errorf("x %w %v", errors.New("y"), s).Error()
	if strings.Contains(out, text) || strings.Contains(out, "68756e74657232") {
		t.Fatalf("the secret printed: %s", out)
	}
	if s.Reveal() != text {
		t.Fatal("the secret is lost")
	}
	k := open(t, filepath.Join(t.TempDir(), "key"), true)
	if got := fmt.Sprintf("%v %+v %#v", k, k, k); strings.Contains(got, "aead") {
		t.Fatalf("the key file printed its inside: %s", got)
	}
}
