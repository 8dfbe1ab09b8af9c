package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

const secret = "slk_correct-horse-battery"

func keyedStand(t *testing.T, trusted ...string) *stand {
	t.Helper()
	s := newStand(t, standOptions{trusted: trusted, catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/"}, {Name: "locked", Prefix: "/locked/", RequireKey: true},
	}})
	past, future := noon.Add(-time.Second), noon.Add(time.Second)
	s.putKey(secret, keys.Key{ID: "k1", TenantID: "acme", UserID: "u1"})
	s.putKey("slk_app", keys.Key{ID: "k2", TenantID: "acme", ApplicationID: "app", ExpiresAt: &future})
	s.putKey("slk_revoked", keys.Key{ID: "k3", TenantID: "acme", Status: keys.StatusRevoked})
	s.putKey("slk_blocked", keys.Key{ID: "k4", TenantID: "acme", Status: keys.StatusBlocked})
	s.putKey("slk_expired", keys.Key{ID: "k5", TenantID: "acme", ExpiresAt: &past})
	s.putKey("slk_odd", keys.Key{ID: "k6", TenantID: "acme", Status: "frozen"})
	return s
}

func TestKeysIdentifyAndAreNotForwarded(t *testing.T) {
	t.Parallel()
	s := keyedStand(t, loopback)
	for name, headers := range map[string][]string{
		"X-Api-Key":                 {"X-Api-Key", secret},
		"bearer":                    {"Authorization", "Bearer " + secret},
		"bearer in other case":      {"Authorization", "bEARER  " + secret},
		"X-Api-Key beats bearer":    {"X-Api-Key", secret, "Authorization", "Bearer slk_app"},
		"headers beside are no use": {"X-Api-Key", secret, "X-Tenant-Id", "evil", "X-User-Id", "root", "X-Application-Id", "x"},
		"even bad ones":             {"X-Api-Key", secret, "X-Tenant-Id", "a", "X-Tenant-Id", "b"},
	} {
		a := s.get("/locked/x", headers...)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", name, a.StatusCode, a.body)
		}
		e, up := s.event(), s.last()
		if e.TenantID != "acme" || e.UserID != "u1" || e.ApplicationID != "" || !strings.HasPrefix(e.APIKeyHash, "sha256:") || len(e.APIKeyHash) != 7+64 {
			t.Errorf("%s: event says %+v", name, e)
		}
		if up.Header.Get("X-Tenant-Id") != "acme" || up.Header.Get("X-User-Id") != "u1" || up.Header.Values("X-Application-Id") != nil {
			t.Errorf("%s: upstream got %v", name, up.Header)
		}
		if up.Header.Values("X-Api-Key") != nil || up.Header.Values("Authorization") != nil {
			t.Errorf("%s: the key was forwarded: %v", name, up.Header)
		}
	}
	if strings.Contains(s.log.String(), "correct-horse") {
		t.Error("the key is in the log")
	}
}

func TestForeignCredentialsAreTheUpstreams(t *testing.T) {
	t.Parallel()
	s := keyedStand(t)
	for _, value := range []string{"Bearer eyJhbGciOi.x.y", "Basic dXNlcjpwYXNz", "Bearer"} {
		if a := s.get("/demo/x", "Authorization", value); a.StatusCode != http.StatusOK {
			t.Fatalf("%q: %d %s", value, a.StatusCode, a.body)
		}
		if got := s.last().Header.Get("Authorization"); got != value {
			t.Errorf("%q arrived as %q", value, got)
		}
	}
	// Of two, ours is kept back and the other goes on.
	s.get("/demo/x", "Authorization", "Bearer "+secret, "Authorization", "Basic abc")
	if got := s.last().Header.Values("Authorization"); len(got) != 1 || got[0] != "Basic abc" {
		t.Errorf("upstream got %q", got)
	}
}

func TestBadKeysAreRefusedWithoutADecision(t *testing.T) {
	t.Parallel()
	s := keyedStand(t, loopback)
	for _, c := range []struct {
		name    string
		path    string
		status  int
		says    string
		headers []string
	}{
		{"unknown", "/demo/x", 401, "Unknown", []string{"X-Api-Key", "slk_guess"}},
		{"unknown bearer", "/demo/x", 401, "Unknown", []string{"Authorization", "Bearer slk_guess"}},
		{"not of our form", "/demo/x", 401, "Unknown", []string{"X-Api-Key", "hello"}},
		{"none where one is demanded", "/locked/x", 401, "required", nil},
		{"identity headers are no key", "/locked/x", 401, "required", []string{"X-Tenant-Id", "acme"}},
		{"a foreign bearer is no key", "/locked/x", 401, "required", []string{"Authorization", "Bearer eyJ"}},
		{"revoked", "/demo/x", 403, "revoked", []string{"X-Api-Key", "slk_revoked"}},
		{"blocked", "/demo/x", 403, "blocked", []string{"X-Api-Key", "slk_blocked"}},
		{"expired", "/demo/x", 403, "expired", []string{"X-Api-Key", "slk_expired"}},
		{"a status of later", "/demo/x", 403, "frozen", []string{"X-Api-Key", "slk_odd"}},
		{"two keys", "/demo/x", 400, "X-Api-Key", []string{"X-Api-Key", secret, "X-Api-Key", secret}},
		{"two bearer keys", "/demo/x", 400, "Authorization", []string{"Authorization", "Bearer " + secret, "Authorization", "Bearer slk_app"}},
		{"too long", "/demo/x", 400, "X-Api-Key", []string{"X-Api-Key", strings.Repeat("k", 257)}},
		{"too long a bearer", "/demo/x", 400, "Authorization", []string{"Authorization", "Bearer slk_" + strings.Repeat("k", 257)}},
	} {
		a := s.get(c.path, c.headers...)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, a.StatusCode, a.body, c.status, c.says)
		}
		a.problem(t)
		if c.status == 401 && !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: a 401 without a challenge (RFC 9110, section 11.6.1)", c.name)
		}
		if strings.Contains(a.body, "slk_") || a.Header.Get(respond.HeaderDecisionID) != "" {
			t.Errorf("%s: answer says %v %s", c.name, a.Header, a.body)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("the upstream has seen %d requests", n)
	}
	if all := s.events(); len(all) != 0 {
		t.Errorf("events of no decisions: %+v", all)
	}
}

func TestIdentityHeadersOfTrustedPeers(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{"10.0.0.0/8", loopback}})
	s.get("/demo/x", "X-Tenant-Id", "acme", "X-User-Id", "Zoë {1}: 100%", "X-Application-Id", "app")
	e, up := s.event(), s.last()
	if e.TenantID != "acme" || e.UserID != "Zoë {1}: 100%" || e.ApplicationID != "app" || e.APIKeyHash != "" {
		t.Errorf("event says %+v", e)
	}
	if up.Header.Get("X-User-Id") != "Zoë {1}: 100%" {
		t.Errorf("upstream got %q", up.Header.Get("X-User-Id"))
	}
	for name, headers := range map[string][]string{
		"X-Tenant-Id":      {"X-Tenant-Id", "a", "X-Tenant-Id", "a"},
		"X-User-Id":        {"X-User-Id", strings.Repeat("u", 257)},
		"X-Application-Id": {"X-Application-Id", "\xff\xfe"},
		"X-Tenant-Id ":     {"X-Tenant-Id", "a\tb"},
		"X-User-Id ":       {"X-User-Id", "a\u0085b"},
	} {
		a := s.get("/demo/x", headers...)
		if p := a.problem(t); a.StatusCode != 400 || !strings.Contains(p.Detail, strings.TrimSpace(name)) {
			t.Errorf("%v: %d %s, want 400 that names the header", headers, a.StatusCode, a.body)
		}
	}
	if all := s.events(); len(all) != 0 {
		t.Errorf("events of no decisions: %+v", all)
	}
	s.get("/demo/x", "X-Tenant-Id", "")
	if e := s.event(); e.TenantID != "" {
		t.Errorf("an empty header is an identity: %+v", e)
	}
}

// Nothing a stranger writes reaches the event or the upstream as an identity,
// nor under names that some servers read as the same.
func TestSpoofedHeadersAreStripped(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{"10.0.0.0/8"}})
	a := s.get("/demo/x",
		"X-Tenant-Id", "evil", "X-User-Id", "root", "X-User-Id", "admin", "X-Application-Id", "a", "X_Tenant_Id", "evil", "X-User_Id", "evil",
		"x_api_key", "slk_evil", "Sluice-Decision-Id", "evil", "Sluice_Degraded", "evil", "Sluice-Anything", "evil",
		"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "gopher", "X-Custom_Header", "stays",
		"Connection", "X-Tenant-Id, X-Kept", "X-Kept", "hop-by-hop")
	if a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if e := s.event(); e.TenantID != "" || e.UserID != "" || e.ApplicationID != "" {
		t.Errorf("the event believes a stranger: %+v", e)
	}
	up := s.last()
	for name, values := range up.Header {
		if strings.Contains(strings.Join(values, " "), "evil") || strings.HasPrefix(name, "Sluice") {
			t.Errorf("upstream got %s: %q", name, values)
		}
	}
	if got := up.Header.Get("X-Forwarded-For"); got != "127.0.0.1" {
		t.Errorf("X-Forwarded-For is %q", got)
	}
	if up.Header.Get("X-Custom_Header") != "stays" || up.Header.Get("X-Kept") != "" {
		t.Errorf("upstream got %v", up.Header)
	}
}

func TestForwardedChainOfATrustedPeerGrows(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.get("/demo/x", "X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "shop.example", "X-Forwarded-Proto", "https")
	h := s.last().Header
	if h.Get("X-Forwarded-For") != "6.6.6.6, 127.0.0.1" || h.Get("X-Forwarded-Host") != "shop.example" || h.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("upstream got %v", h)
	}
}
