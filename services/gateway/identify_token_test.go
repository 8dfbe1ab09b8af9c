package gateway

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

const loginIssuer = "https://login.test/"

func tokenStand(t *testing.T, o standOptions) (*stand, *issuer) {
	t.Helper()
	login := newIssuer(t, loginIssuer)
	o.tokens = fetched(t, startVerifier(t, login))
	o.catalog = []catalog.Service{
		{Name: "demo", Prefix: "/demo/"},
		{Name: "key", Prefix: "/key/", RequireKey: true},
		{Name: "token", Prefix: "/token/", RequireIdentity: catalog.RequireToken},
		{Name: "either", Prefix: "/either/", RequireIdentity: catalog.RequireKeyOrToken},
	}
	s := newStand(t, o)
	s.putKey(secret, keys.Key{ID: "k1", TenantID: "keyed", UserID: "ku"})
	s.putKey("slk_revoked", keys.Key{ID: "k2", TenantID: "keyed", Status: keys.StatusRevoked})
	return s, login
}

// Of key, token and headers exactly one speaks, in that order, and what it
// says is all the service and the event hear.
func TestWhoseWordCounts(t *testing.T) {
	t.Parallel()
	const nobody, fromKey, fromToken, fromHeaders = "//", "keyed/ku/", "acme/u1/shop", "globex/root/x"
	for _, trusted := range []bool{true, false} {
		o := standOptions{identity: IdentityConfig{JWT: JWTConfig{ForwardToken: true}}}
		if trusted {
			o.trusted = []string{loopback}
		}
		s, login := tokenStand(t, o)
		good := "Bearer " + login.token(t, nil)
		foreign := "Bearer " + newIssuer(t, "https://elsewhere.test/").token(t, nil)
		headers := []string{"X-Tenant-Id", "globex", "X-User-Id", "root", "X-Application-Id", "x"}
		byPeer := nobody
		if trusted {
			byPeer = fromHeaders
		}
		for name, c := range map[string]struct {
			want    string
			headers []string
		}{
			"nothing":                       {nobody, nil},
			"headers":                       {byPeer, headers},
			"key and headers":               {fromKey, append([]string{"X-Api-Key", secret}, headers...)},
			"bearer key and headers":        {fromKey, append([]string{"Authorization", "Bearer " + secret}, headers...)},
			"token and headers":             {fromToken, append([]string{"Authorization", good}, headers...)},
			"token and bad headers":         {fromToken, []string{"Authorization", good, "X-Tenant-Id", "a", "X-Tenant-Id", "b"}},
			"key, token and headers":        {fromKey, append([]string{"X-Api-Key", secret, "Authorization", good}, headers...)},
			"bearer key beside a token":     {fromKey, []string{"Authorization", good, "Authorization", "Bearer " + secret}},
			"token beside another scheme":   {fromToken, []string{"Authorization", "Basic dXNlcjpwYXNz", "Authorization", good}},
			"token beside a foreign one":    {fromToken, []string{"Authorization", foreign, "Authorization", good}},
			"token in another case":         {fromToken, []string{"Authorization", "bEARER  " + good[len("Bearer "):]}},
			"token after a tab":             {fromToken, []string{"Authorization", "Bearer\t" + good[len("Bearer "):]}},
			"foreign token and headers":     {byPeer, append([]string{"Authorization", foreign}, headers...)},
			"no token at all and headers":   {byPeer, append([]string{"Authorization", "Bearer opaque"}, headers...)},
			"key beside a token that fails": {fromKey, []string{"X-Api-Key", secret, "Authorization", good + "x"}},
		} {
			if a := s.get("/demo/x", c.headers...); a.StatusCode != http.StatusOK {
				t.Errorf("trusted %t, %s: %d %s", trusted, name, a.StatusCode, a.body)
				continue
			}
			e, up := s.event(), s.last().Header
			if got := e.TenantID + "/" + e.UserID + "/" + e.ApplicationID; got != c.want {
				t.Errorf("trusted %t, %s: the event says %s, want %s", trusted, name, got, c.want)
			}
			if got := up.Get("X-Tenant-Id") + "/" + up.Get("X-User-Id") + "/" + up.Get("X-Application-Id"); got != c.want {
				t.Errorf("trusted %t, %s: the service hears %s, want %s", trusted, name, got, c.want)
			}
			if (e.APIKeyHash != "") != (c.want == fromKey) {
				t.Errorf("trusted %t, %s: key hash %q", trusted, name, e.APIKeyHash)
			}
		}
	}
}

func TestServicesDemandCredentials(t *testing.T) {
	t.Parallel()
	s, login := tokenStand(t, standOptions{trusted: []string{loopback}})
	good := "Bearer " + login.token(t, nil)
	for _, c := range []struct {
		path, says string
		headers    []string
	}{
		{"/key/x", "", []string{"X-Api-Key", secret}},
		{"/key/x", "API key required", []string{"Authorization", good}},
		{"/key/x", "API key required", []string{"X-Tenant-Id", "acme"}},
		{"/token/x", "", []string{"Authorization", good}},
		{"/token/x", "Token required", []string{"X-Api-Key", secret}},
		{"/token/x", "Token required", []string{"Authorization", "Bearer opaque"}},
		{"/token/x", "Token required", []string{"X-Tenant-Id", "acme"}},
		{"/either/x", "", []string{"Authorization", good}},
		{"/either/x", "", []string{"X-Api-Key", secret}},
		{"/either/x", "API key or token required", nil},
		{"/either/x", "API key or token required", []string{"X-Tenant-Id", "acme"}},
	} {
		a := s.get(c.path, c.headers...)
		if c.says == "" {
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s with %v: %d %s", c.path, c.headers, a.StatusCode, a.body)
			}
			continue
		}
		if p := a.problem(t); a.StatusCode != 401 || p.Title != c.says || a.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s with %v: %d %v %s, want 401 %s", c.path, c.headers, a.StatusCode, a.Header, a.body, c.says)
		}
	}
}

// A token that claims to be of a configured issuer passes only if it holds;
// what the answer says of it never repeats it.
func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	s, login := tokenStand(t, standOptions{trusted: []string{loopback}, identity: IdentityConfig{JWT: JWTConfig{ForwardToken: true}}})
	_, strange, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{"alg": "EdDSA", "kid": "k1"}
	unsigned := segment(t, map[string]any{"alg": "none"}) + "." + segment(t, login.claims(nil)) + "."
	parts := strings.Split(login.token(t, nil), ".")
	for name, c := range map[string]struct{ token, says string }{
		"another key":             {sign(t, strange, header, login.claims(nil)), "bad signature"},
		"claims changed":          {parts[0] + "." + segment(t, login.claims(map[string]any{"org": map[string]any{"id": "evil"}})) + "." + parts[2], "bad signature"},
		"unsigned":                {unsigned, "algorithm not allowed"},
		"HMAC with the public x":  {sign(t, login.key, map[string]any{"alg": "HS256", "kid": "k1"}, login.claims(nil)), "algorithm not allowed"},
		"a key it brings along":   {sign(t, strange, map[string]any{"alg": "EdDSA", "kid": "k9", "jwk": map[string]any{"kty": "OKP"}}, login.claims(nil)), "unknown key"},
		"critical extension":      {sign(t, login.key, map[string]any{"alg": "EdDSA", "kid": "k1", "crit": []string{"b64"}}, login.claims(nil)), "critical"},
		"kid that is no string":   {sign(t, login.key, map[string]any{"alg": "EdDSA", "kid": 1}, login.claims(nil)), "badly formed token"},
		"padding":                 {login.token(t, nil) + "==", "badly formed token"},
		"too long":                {login.token(t, map[string]any{"note": strings.Repeat("a", 16<<10)}), "token over 16 KiB"},
		"expired":                 {login.token(t, map[string]any{"exp": noon.Unix() - 31}), "token expired"},
		"without an end":          {login.token(t, map[string]any{"exp": nil}), "missing claim: exp"},
		"not yet":                 {login.token(t, map[string]any{"nbf": noon.Unix() + 31}), "not yet valid"},
		"for somebody else":       {login.token(t, map[string]any{"aud": "mail"}), "wrong audience"},
		"without a tenant":        {login.token(t, map[string]any{"org": nil}), "missing claim: org.id"},
		"tenant of another kind":  {login.token(t, map[string]any{"org": map[string]any{"id": 7}}), "bad claim: org.id"},
		"tenant with a line feed": {login.token(t, map[string]any{"org": map[string]any{"id": "a\nb"}}), "bad claim: org.id"},
	} {
		a := s.get("/demo/x", "Authorization", "Bearer "+c.token, "X-Tenant-Id", "globex")
		p := a.problem(t)
		if a.StatusCode != 401 || !strings.Contains(p.Detail, c.says) || a.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
			t.Errorf("%s: %d %v %s, want 401 with %q", name, a.StatusCode, a.Header, a.body, c.says)
		}
		for _, part := range strings.Split(c.token, ".") {
			if part != "" && (strings.Contains(a.body, part) || strings.Contains(s.log.String(), part)) {
				t.Errorf("%s: the token is in the answer or the log", name)
			}
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("the service has seen %d requests", n)
	}
	if all := s.events(); len(all) != 0 {
		t.Errorf("events of no decisions: %+v", all)
	}
	if got := testutil.ToFloat64(s.gate.metrics.refused[reject.TokenRefused]); got != 16 {
		t.Errorf("%v refusals are counted", got)
	}
	two := s.get("/demo/x", "Authorization", "Bearer "+login.token(t, nil), "Authorization", "Bearer "+login.token(t, map[string]any{"sub": "u2"}))
	if p := two.problem(t); two.StatusCode != 400 || !strings.Contains(p.Detail, "more than one token") {
		t.Errorf("two tokens: %d %s", two.StatusCode, two.body)
	}
}

// What is no token of ours by its looks or its issuer is the service's own.
func TestTokensOfOthersGoToTheService(t *testing.T) {
	t.Parallel()
	s, login := tokenStand(t, standOptions{identity: IdentityConfig{JWT: JWTConfig{ForwardToken: false}}})
	other := newIssuer(t, "https://elsewhere.test/")
	for _, value := range []string{
		"Bearer " + other.token(t, nil), "Bearer " + other.token(t, map[string]any{"note": strings.Repeat("a", 16<<10)}), "Bearer opaque", "Bearer a.b.c", "Bearer " + strings.Repeat("a", 20<<10), "Basic dXNlcjpwYXNz",
		"Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + ".e30.",
	} {
		if a := s.get("/demo/x", "Authorization", value); a.StatusCode != http.StatusOK {
			t.Errorf("%.40s: %d %s", value, a.StatusCode, a.body)
			continue
		}
		if e := s.event(); e.TenantID != "" || s.last().Header.Get("Authorization") != value {
			t.Errorf("%.40s: tenant %q, the service got %.40s", value, e.TenantID, s.last().Header.Get("Authorization"))
		}
	}
	// The gate's own token stays behind, what else is in the header does not.
	a := s.get("/token/x", "Authorization", "Basic abc", "Authorization", "bearer "+login.token(t, nil), "Authorization", "Bearer opaque")
	if got := s.last().Header.Values("Authorization"); a.StatusCode != 200 || len(got) != 2 || got[0] != "Basic abc" || got[1] != "Bearer opaque" {
		t.Errorf("%d, the service got %q", a.StatusCode, got)
	}
	s.get("/token/x", "Authorization", "Bearer "+login.token(t, nil))
	if got := s.last().Header.Values("Authorization"); got != nil {
		t.Errorf("the service got %.20q", got)
	}
}

func TestTokensAreForwardedWhereAsked(t *testing.T) {
	t.Parallel()
	s, login := tokenStand(t, standOptions{identity: IdentityConfig{JWT: JWTConfig{ForwardToken: true}}})
	value := "Bearer " + login.token(t, nil)
	s.get("/demo/x", "Authorization", value)
	if got := s.last().Header.Values("Authorization"); len(got) != 1 || got[0] != value {
		t.Errorf("the service got %.20q", got)
	}
}

// Before an issuer was ever reached its tokens get a 503, since nothing is
// known against them; everything else goes on.
func TestAnIssuerThatIsAway(t *testing.T) {
	t.Parallel()
	login, mail := newIssuer(t, loginIssuer), newIssuer(t, "https://mail.test/")
	login.away.Store(true)
	v := startVerifier(t, login, mail)
	s := newStand(t, standOptions{tokens: v})
	servertest.Eventually(t, issuerPatience, "the other issuer's keys", func() bool {
		_, err := v.Verify(mail.token(t, nil))
		return err == nil
	})
	a := s.get("/demo/x", "Authorization", "Bearer "+login.token(t, nil))
	if p := a.problem(t); a.StatusCode != 503 || p.Type != reject.ReducedCapacity || a.Header.Get("Retry-After") == "" || strings.Contains(a.body, "eyJ") {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if got := testutil.ToFloat64(s.gate.metrics.refused[reject.IssuerAway]); got != 1 {
		t.Errorf("%v refusals are counted", got)
	}
	for name, headers := range map[string][]string{"nothing": nil, "the other issuer": {"Authorization", "Bearer " + mail.token(t, nil)}} {
		if a := s.get("/demo/x", headers...); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	login.away.Store(false)
	servertest.Eventually(t, issuerPatience, "the issuer is back", func() bool {
		return s.get("/demo/x", "Authorization", "Bearer "+login.token(t, nil)).StatusCode == http.StatusOK
	})
}
