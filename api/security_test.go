package api_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/api/auth"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func TestH09_EveryRefusedTokenLeavesARow(t *testing.T) {
	w := newWorld(t)
	parts := strings.Split(w.token, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	w.clock.move(-time.Hour)
	expired, err := w.issuer.Issue("alice", hcp.ScopeTenant, time.Minute)
	must(t, err)
	w.clock.move(time.Hour)
	for name, row := range map[string]struct{ header, reason, claimed string }{
		"tampered":     {"Bearer " + parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), "bad_token", "alice"},
		"alg none":     {"Bearer " + none + "." + parts[1] + ".", "bad_token", "alice"},
		"expired":      {"Bearer " + expired, "token_expired", "alice"},
		"rubbish":      {"Bearer rubbish", "bad_token", ""},
		"basic":        {"Basic YTpi", "bad_token", ""},
		"empty bearer": {"Bearer ", "bad_token", ""},
	} {
		r := w.do("GET", "/v1/projects/demo/vms", "", nil, "Authorization", row.header)
		if p := r.problem(t); r.status != 401 || p.Reason != row.reason {
			t.Errorf("%s answered %d: %s", name, r.status, r.body)
		}
		rows := w.auditOf(r)
		if len(rows) != 1 || rows[0].Actor != "anonymous" || rows[0].Claimed != row.claimed || rows[0].Source != "127.0.0.1" || rows[0].Action != "vm.list" {
			t.Errorf("%s left %+v", name, rows)
		}
	}
}

func TestH13_ARemovedRoleEndsAtOnceHere(t *testing.T) {
	w := newWorld(t)
	b := w.bind("eve", auth.ProjectViewer, w.org.ID, "")
	token := w.issue("eve", hcp.ScopeTenant)
	if r := w.do("GET", "/v1/projects/demo/vms", token, nil); r.status != 200 {
		t.Fatalf("an org's role answered %d: %s", r.status, r.body)
	}
	if r := w.do("GET", "/v1/projects/other/vms", token, nil); r.status != 404 {
		t.Errorf("another org's project answered %d: %s", r.status, r.body)
	}
	if r := w.do("DELETE", "/v1/ops/role-bindings/"+b.ID, w.ops, nil); r.status != 204 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	if r := w.do("GET", "/v1/projects/demo/vms", token, nil); r.status != 404 {
		t.Errorf("after the removal: %d: %s", r.status, r.body)
	}
}

func TestH06_NobodyWithoutABindingReachesAnything(t *testing.T) {
	w := newWorld(t)
	tenant, ops := w.issue("newcomer", hcp.ScopeTenant), w.issue("newcomer", hcp.ScopeOps)
	for _, r := range api.Routes() {
		if r.Action == auth.Public || r.Action == auth.WhoAmI {
			continue
		}
		for _, token := range []string{tenant, ops} {
			if got := w.callRoute(r, "demo", "web", "job", token); got.status != 404 && got.status != 403 {
				t.Errorf("%s answered %d: %s", r.ID, got.status, got.body)
			}
		}
	}
	var who v1.WhoAmI
	w.do("GET", "/v1/whoami", tenant, nil).into(t, &who)
	if who.Subject != "newcomer" || len(who.Projects) != 0 || len(who.Roles) != 0 {
		t.Errorf("whoami says %+v", who)
	}
	w.do("GET", "/v1/whoami", w.token, nil).into(t, &who)
	if len(who.Projects) != 1 || who.Projects[0].Name != "demo" || len(who.Projects[0].Actions) != len(auth.TenantActions()) {
		t.Errorf("whoami says %+v", who)
	}
}

// A cloud operator who may bind roles must not become infra-admin by it.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	w := newWorld(t)
	w.bind("carl", auth.CloudOperator, "", "")
	carl := w.issue("carl", hcp.ScopeOps)
	for role, want := range map[string]int{auth.InfraAdmin: 403, auth.BreakGlass: 403, auth.CloudOperator: 201, auth.SecurityAuditor: 201} {
		r := w.do("POST", "/v1/ops/role-bindings", carl, map[string]any{"subject": "friend", "role": role})
		if r.status != want || want == 403 && r.problem(t).Reason != "escalation" {
			t.Errorf("%s answered %d: %s", role, r.status, r.body)
		}
	}
	if r := w.do("POST", "/v1/ops/role-bindings", w.ops, map[string]any{"subject": "friend", "role": auth.BreakGlass}); r.status != 201 {
		t.Errorf("who has it all answered %d: %s", r.status, r.body)
	}
}

func TestCallersHaveARate(t *testing.T) {
	w := newWorld(t, func(d *api.Deps) { d.Limits.Rate, d.Limits.Burst = 1, 3 })
	var last reply
	for range 4 {
		last = w.do("GET", "/v1/projects/demo/vms", w.token, nil)
	}
	if p := last.problem(t); last.status != 429 || p.Code != hcp.CodeRateLimited || last.header.Get("Retry-After") != "1" || last.header.Get("RateLimit") == "" {
		t.Errorf("answered %d with %v: %s", last.status, last.header, last.body)
	}
	w.oneCallRow(last, "list", "alice", "RATE_LIMITED")
	if r := w.do("GET", "/v1/projects/other/vms", w.other, nil); r.status != 200 || r.header.Get("RateLimit") != `"principal";r=2;t=1` {
		t.Errorf("another caller got %d, %s", r.status, r.header.Get("RateLimit"))
	}
	w.clock.move(2 * time.Second)
	if r := w.do("GET", "/v1/projects/demo/vms", w.token, nil); r.status != 200 {
		t.Errorf("later: %d", r.status)
	}
}

func TestCredentialsAreSealedAndNeverShown(t *testing.T) {
	w := newWorld(t)
	const secret = "S3CR3T-7f"
	r := w.do("POST", "/v1/ops/clusters", w.ops, map[string]any{"name": "new", "driver": "sim", "endpoint": "http://x", "credentials": map[string]any{"password": secret}}, "Idempotency-Key", "k")
	if r.status != 201 {
		t.Fatalf("answered %d: %s", r.status, r.body)
	}
	put := w.owner.last()
	plain, err := plainSealer{}.Open(put.Put.Credentials, hcp.CredentialContext(put.Cluster))
	must(t, err)
	if !strings.Contains(string(plain), secret) {
		t.Errorf("sealed is %s", plain)
	}
	w.owner.refuse = func(hcp.Command) (hcp.Answer, error, bool) {
		return hcp.Answer{Fault: hcp.Errorf(hcp.CodeProviderUnavailable, "auth_failed", "the hypervisor refuses the credentials").Wire()}, nil, true
	}
	refused := w.do("POST", "/v1/ops/clusters/new/credentials", w.ops, map[string]any{"credentials": map[string]any{"password": secret}})
	for _, text := range []string{string(r.body), string(refused.body), w.logs.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret stands in: %s", text)
		}
	}
	stored, err := w.store.Secret(context.Background(), hcp.CredentialContext(put.Cluster))
	if err != nil || strings.Contains(string(stored), secret) {
		t.Errorf("stored: %v", err)
	}
}

func TestMissingDepsAreNamed(t *testing.T) {
	_, err := api.New(context.Background(), api.Deps{})
	for _, field := range []string{"Store", "Commander", "Wakes", "Images", "Issuer", "Sealer", "Clock", "IDs", "Log", "Metrics", "Version"} {
		if err == nil || !strings.Contains(err.Error(), "Deps."+field+" ") {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
}
