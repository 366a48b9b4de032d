package auth_test

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/persistence"
)

var update = flag.Bool("update", false, "write the golden files")

// ring is the part of a store that keys live in.
type ring struct {
	persistence.Keys
	mu   sync.Mutex
	keys map[string]hcp.Sealed
}

func (r *ring) RingKey(_ context.Context, purpose string, fresh hcp.Sealed) (hcp.Sealed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]hcp.Sealed{}
	}
	if r.keys[purpose] == nil {
		r.keys[purpose] = fresh
	}
	return r.keys[purpose], nil
}

// sealer keeps the seed readable, so that tests can forge with it.
type sealer struct{}

func (sealer) Seal(plain []byte, _ string) (hcp.Sealed, error)  { return slices.Clone(plain), nil }
func (sealer) Open(sealed hcp.Sealed, _ string) ([]byte, error) { return slices.Clone(sealed), nil }

type clockAt struct{ t time.Time }

func (c *clockAt) now() time.Time { return c.t }

func issuer(t *testing.T, r *ring, c *clockAt) *auth.Issuer {
	t.Helper()
	i, err := auth.NewIssuer(context.Background(), r, sealer{}, c.now, auth.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func start() *clockAt { return &clockAt{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func TestEveryNodeHasTheSameKey(t *testing.T) {
	r, c := &ring{}, start()
	a, b := issuer(t, r, c), issuer(t, r, c)
	token, err := a.Issue("alice", hcp.ScopeTenant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.Verify(token)
	if err != nil || id.Subject != "alice" || id.Scope != hcp.ScopeTenant || !id.ExpiresAt.Equal(c.t.Add(time.Hour)) {
		t.Errorf("the other node says %+v, %v", id, err)
	}
}

// forge signs any header and claims with the issuer's real key.
func forge(t *testing.T, r *ring, header, claims map[string]any) string {
	t.Helper()
	seed := r.keys["issuer/ed25519"]
	signing := part(t, header) + "." + part(t, claims)
	return signing + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(seed), []byte(signing)))
}

func part(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func TestH12_LeewayIsThirtySecondsBothWays(t *testing.T) {
	r, c := &ring{}, start()
	i := issuer(t, r, c)
	at := func(d time.Duration) int64 { return c.t.Add(d).Unix() }
	header := map[string]any{"alg": "EdDSA", "typ": "JWT"}
	claims := func(change map[string]any) map[string]any {
		m := map[string]any{"iss": "hcp", "aud": "hcp", "sub": "alice", "hcp_scope": "tenant", "iat": at(0), "nbf": at(0), "exp": at(time.Hour)}
		for k, v := range change {
			if v == nil {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
		return m
	}
	for _, row := range []struct {
		name   string
		change map[string]any
		reason string // empty: good
	}{
		{"as issued", nil, ""},
		{"iat +29 s", map[string]any{"iat": at(29 * time.Second)}, ""},
		{"iat +31 s", map[string]any{"iat": at(31 * time.Second)}, "token_not_yet_valid"},
		{"nbf +29 s", map[string]any{"nbf": at(29 * time.Second)}, ""},
		{"nbf +31 s", map[string]any{"nbf": at(31 * time.Second)}, "token_not_yet_valid"},
		{"exp -29 s", map[string]any{"exp": at(-29 * time.Second)}, ""},
		{"exp -31 s", map[string]any{"exp": at(-31 * time.Second)}, "token_expired"},
		{"no exp", map[string]any{"exp": nil}, "bad_token"},
		{"wrong iss", map[string]any{"iss": "evil"}, "bad_token"},
		{"no iss", map[string]any{"iss": nil}, "bad_token"},
		{"wrong aud", map[string]any{"aud": "other"}, "bad_token"},
		{"no aud", map[string]any{"aud": nil}, "bad_token"},
		{"no sub", map[string]any{"sub": nil}, "bad_token"},
		{"no scope", map[string]any{"hcp_scope": nil}, "bad_token"},
		{"unknown scope", map[string]any{"hcp_scope": "root"}, "bad_token"},
	} {
		_, err := i.Verify(forge(t, r, header, claims(row.change)))
		reason := ""
		if err != nil {
			reason = hcp.AsError(err).Reason
			if !hcp.IsCode(err, hcp.CodeUnauthorized) {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		if reason != row.reason {
			t.Errorf("%s: %q, not %q (%v)", row.name, reason, row.reason, err)
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	r, c := &ring{}, start()
	i := issuer(t, r, c)
	good, err := i.Issue("alice", hcp.ScopeTenant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Verify(good); err != nil { // it is in the cache from here on
		t.Fatal(err)
	}
	p := strings.Split(good, ".")
	public := ed25519.NewKeyFromSeed(r.keys["issuer/ed25519"]).Public().(ed25519.PublicKey)
	hs := part(t, map[string]any{"alg": "HS256", "typ": "JWT"}) + "." + p[1]
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(hs))
	otherKey := issuer(t, &ring{}, c)
	foreign, err := otherKey.Issue("alice", hcp.ScopeTenant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(p[2])
	flipped[10] ^= 1
	for name, token := range map[string]string{
		"empty":              "",
		"rubbish":            "rubbish",
		"two parts":          p[0] + "." + p[1],
		"alg none":           part(t, map[string]any{"alg": "none"}) + "." + p[1] + ".",
		"alg none, signed":   part(t, map[string]any{"alg": "none"}) + "." + p[1] + "." + p[2],
		"HS256 by our key":   hs + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
		"another key":        foreign,
		"another subject":    p[0] + "." + part(t, map[string]any{"sub": "root"}) + "." + p[2],
		"a changed mark":     p[0] + "." + p[1] + "." + string(flipped),
		"no signature":       p[0] + "." + p[1] + ".",
		"unknown kid":        forge(t, r, map[string]any{"alg": "EdDSA", "kid": "other"}, map[string]any{"iss": "hcp", "aud": "hcp", "sub": "a", "hcp_scope": "ops", "exp": c.t.Add(time.Hour).Unix()}),
		"a very long token":  p[0] + "." + p[1] + strings.Repeat("A", 10<<10) + "." + p[2],
		"kid of another typ": forge(t, r, map[string]any{"alg": "EdDSA", "kid": 7}, map[string]any{"iss": "hcp", "aud": "hcp", "sub": "a", "hcp_scope": "ops", "exp": c.t.Add(time.Hour).Unix()}),
	} {
		if id, err := i.Verify(token); !hcp.IsCode(err, hcp.CodeUnauthorized) {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
	}
}

// A cached token must not outlive its expiry.
func TestACachedTokenExpires(t *testing.T) {
	r, c := &ring{}, start()
	i := issuer(t, r, c)
	token, err := i.Issue("alice", hcp.ScopeTenant, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		good  bool
	}{{0, true}, {89 * time.Second, true}, {91 * time.Second, false}} {
		c.t = start().t.Add(step.after)
		if _, err := i.Verify(token); (err == nil) != step.good {
			t.Errorf("after %v: %v", step.after, err)
		}
	}
}

func TestClaimedIsFitForALog(t *testing.T) {
	token := part(t, map[string]any{"alg": "none"}) + "." + part(t, map[string]any{"sub": "ev\nil\x1b[31m" + strings.Repeat("x", 500)}) + "."
	got := auth.Claimed(token)
	if !strings.HasPrefix(got, "evil[31m") || len([]rune(got)) != 128 {
		t.Errorf("%q", got)
	}
	if got := auth.Claimed("rubbish"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestRolesAreTheGoldenFile(t *testing.T) {
	var b strings.Builder
	for _, action := range append(auth.TenantActions(), auth.OpsActions()...) {
		fmt.Fprintf(&b, "%-26s", action)
		for _, r := range auth.Roles() {
			mark := "-"
			if r.Allows(action) {
				mark = r.Name
			}
			fmt.Fprintf(&b, " %-17s", mark)
		}
		b.WriteString("\n")
	}
	const file = "testdata/roles.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Error("the matrix of roles has changed; look at it, then run go test ./api/auth -run Roles -update")
	}
	for _, r := range auth.Roles() {
		for _, a := range r.Actions() {
			if strings.HasPrefix(a, "ops.") != (r.Scope == hcp.ScopeOps) {
				t.Errorf("%s of scope %s has %s", r.Name, r.Scope, a)
			}
		}
		if r.Allows("made.up") || r.Allows("") {
			t.Errorf("%s allows what does not exist", r.Name)
		}
	}
}

// records is a catalogue of bindings that counts reads.
type records struct {
	persistence.Catalogue
	rows  []persistence.Record
	reads int
}

func (r *records) ListRecords(_ context.Context, _ persistence.RecordKind, parent string) ([]persistence.Record, error) {
	r.reads++
	var out []persistence.Record
	for _, row := range r.rows {
		if row.Parent == parent {
			out = append(out, row)
		}
	}
	return out, nil
}

func TestBindingsAreCachedForTwoSecondsAtMost(t *testing.T) {
	c, rec := start(), &records{}
	row, err := auth.BindingRecord(hcp.RoleBinding{ID: "b", Subject: "alice", Role: auth.ProjectViewer, Scope: hcp.ScopeTenant, Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	rec.rows = []persistence.Record{row}
	b := auth.NewBindings(rec, c.now)
	has := func() bool {
		g, err := b.Of(context.Background(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		return g.In(hcp.Project{ID: "p", Org: "o"}).Allow(auth.VMList)
	}
	for range 3 {
		if !has() {
			t.Fatal("a binding does not count")
		}
	}
	if rec.reads != 1 {
		t.Fatalf("%d reads", rec.reads)
	}
	rec.rows = nil
	c.t = c.t.Add(auth.BindingTTL)
	if has() {
		t.Error("a removed binding counts after its time")
	}
	rec.rows = []persistence.Record{row}
	b.Forget("alice")
	if !has() {
		t.Error("a forgotten subject was not read again")
	}
}

func TestGrantsHoldWhereTheyAreBound(t *testing.T) {
	viewer, _ := auth.RoleNamed(auth.ProjectViewer)
	owner, _ := auth.RoleNamed(auth.ProjectOwner)
	operator, _ := auth.RoleNamed(auth.CloudOperator)
	g := auth.Grants{{viewer, "org-1", ""}, {owner, "", "p-1"}, {operator, "", ""}, {owner, "", ""}}
	for _, row := range []struct {
		p      hcp.Project
		action auth.Action
		want   bool
	}{
		{hcp.Project{ID: "p-1", Org: "org-1"}, auth.VMDelete, true},
		{hcp.Project{ID: "p-2", Org: "org-1"}, auth.VMList, true},
		{hcp.Project{ID: "p-2", Org: "org-1"}, auth.VMDelete, false},
		{hcp.Project{ID: "p-3", Org: "org-2"}, auth.VMList, false}, // an owner of nothing owns nothing
		{hcp.Project{}, auth.VMList, false},
	} {
		if got := g.In(row.p).Allow(row.action); got != row.want {
			t.Errorf("%+v %s: %v", row.p, row.action, got)
		}
	}
	if g.In(hcp.Project{ID: "p-1", Org: "org-1"}).Allow(auth.ClusterRead) {
		t.Error("a role of the ops scope holds in a project")
	}
	if g.Ops().Allow(auth.VMList) || !g.Ops().Allow(auth.ClusterRead) {
		t.Error("the ops scope has the wrong roles")
	}
}
