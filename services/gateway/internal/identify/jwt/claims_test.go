package jwt

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

func TestVerifyLifetime(t *testing.T) {
	t.Parallel()
	const leeway = 10 * time.Second
	_, v := serveFetched(t, func(c *Config) { c.Issuers[0].Leeway = leeway })
	at := func(d time.Duration) int64 { return testNow.Add(d).Unix() }
	for name, c := range map[string]struct {
		changes gojwt.MapClaims
		want    error
	}{
		"expired":                     {gojwt.MapClaims{"exp": at(-time.Hour)}, ErrExpired},
		"at exp":                      {gojwt.MapClaims{"exp": at(0)}, nil},
		"last second of the leeway":   {gojwt.MapClaims{"exp": at(-leeway + time.Second)}, nil},
		"leeway over":                 {gojwt.MapClaims{"exp": at(-leeway)}, ErrExpired},
		"fraction is cut":             {gojwt.MapClaims{"exp": float64(at(-leeway)) + .9}, ErrExpired},
		"no exp":                      {gojwt.MapClaims{"exp": nil}, ErrMissingClaim},
		"exp null":                    {gojwt.MapClaims{"exp": json.RawMessage("null")}, ErrMissingClaim},
		"exp 0":                       {gojwt.MapClaims{"exp": 0}, ErrExpired},
		"exp is text":                 {gojwt.MapClaims{"exp": "1900003600"}, ErrBadClaim},
		"exp beyond every calendar":   {gojwt.MapClaims{"exp": 1e300}, ErrBadClaim},
		"exp negative":                {gojwt.MapClaims{"exp": -1}, ErrBadClaim},
		"nbf in the future":           {gojwt.MapClaims{"nbf": at(time.Minute)}, ErrNotYetValid},
		"first second of the leeway":  {gojwt.MapClaims{"nbf": at(leeway)}, nil},
		"a second before the leeway":  {gojwt.MapClaims{"nbf": at(leeway + time.Second)}, ErrNotYetValid},
		"nbf beyond every calendar":   {gojwt.MapClaims{"nbf": 1e300}, ErrBadClaim},
		"nbf 0":                       {gojwt.MapClaims{"nbf": 0}, nil},
		"iat in the future is nobody": {gojwt.MapClaims{"iat": at(time.Hour)}, nil},
		"other case is another claim": {gojwt.MapClaims{"exp": nil, "EXP": at(time.Hour)}, ErrMissingClaim},
	} {
		_, err := v.Verify(signers()["ed1"].token(with(goodClaims(testNow), c.changes)))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestVerifyAudience(t *testing.T) {
	t.Parallel()
	_, v := serveFetched(t, func(c *Config) { c.Issuers[0].Audiences = []string{"other", testAudience} })
	_, anybody := serveFetched(t, func(c *Config) { c.Issuers[0].Audiences = []string{"*"} })
	for name, c := range map[string]struct {
		aud  any
		want error
	}{
		"one":             {testAudience, nil},
		"among several":   {[]string{"x", testAudience}, nil},
		"wrong":           {"gateway", ErrAudience},
		"a prefix":        {"gat", ErrAudience},
		"empty list":      {[]string{}, ErrAudience},
		"empty text":      {"", ErrAudience},
		"absent":          {nil, ErrAudience},
		"number":          {5, ErrAudience},
		"list of numbers": {[]int{5}, ErrBadClaim},
		"star":            {"*", ErrAudience},
	} {
		token := signers()["ed1"].token(with(goodClaims(testNow), gojwt.MapClaims{"aud": c.aud}))
		if _, err := v.Verify(token); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if _, err := anybody.Verify(token); err != nil {
			t.Errorf("%s, any audience configured: %v", name, err)
		}
	}
}

func TestVerifyIdentity(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	nested := Claims{Tenant: "org.id", User: "https://acme.test/user", Application: "a.b.c", Required: []string{"tenant", "user"}}
	optional := Claims{Required: []string{"none"}}
	for name, c := range map[string]struct {
		claims  Claims
		changes gojwt.MapClaims
		want    Identity
		err     error
		claim   string
	}{
		"defaults":              {want: Identity{Tenant: "acme", User: "u1", Application: "app"}},
		"no tenant":             {changes: gojwt.MapClaims{"tenant_id": nil}, err: ErrMissingClaim, claim: "tenant_id"},
		"empty tenant":          {changes: gojwt.MapClaims{"tenant_id": ""}, err: ErrMissingClaim, claim: "tenant_id"},
		"null tenant":           {changes: gojwt.MapClaims{"tenant_id": json.RawMessage("null")}, err: ErrMissingClaim, claim: "tenant_id"},
		"no user, no app":       {changes: gojwt.MapClaims{"sub": nil, "azp": nil}, want: Identity{Tenant: "acme"}},
		"nothing required":      {claims: optional, changes: gojwt.MapClaims{"tenant_id": nil, "sub": nil}, want: Identity{Application: "app"}},
		"number":                {changes: gojwt.MapClaims{"sub": 7}, err: ErrBadClaim, claim: "sub"},
		"list":                  {changes: gojwt.MapClaims{"tenant_id": []string{"acme"}}, err: ErrBadClaim, claim: "tenant_id"},
		"object, not required":  {claims: optional, changes: gojwt.MapClaims{"azp": object{}}, err: ErrBadClaim, claim: "azp"},
		"256 bytes":             {changes: gojwt.MapClaims{"sub": strings.Repeat("x", 256)}, want: Identity{Tenant: "acme", User: strings.Repeat("x", 256), Application: "app"}},
		"257 bytes":             {changes: gojwt.MapClaims{"sub": strings.Repeat("x", 257)}, err: ErrBadClaim, claim: "sub"},
		"line break":            {changes: gojwt.MapClaims{"sub": "a\nb"}, err: ErrBadClaim, claim: "sub"},
		"NUL":                   {changes: gojwt.MapClaims{"sub": "a\x00"}, err: ErrBadClaim, claim: "sub"},
		"DEL":                   {changes: gojwt.MapClaims{"sub": "a\x7f"}, err: ErrBadClaim, claim: "sub"},
		"C1":                    {changes: gojwt.MapClaims{"sub": "a\u0085"}, err: ErrBadClaim, claim: "sub"},
		"half a surrogate pair": {changes: gojwt.MapClaims{"sub": json.RawMessage(`"a\ud800"`)}, err: ErrBadClaim, claim: "sub"},
		"not English":           {changes: gojwt.MapClaims{"sub": "Zoë 柴"}, want: Identity{Tenant: "acme", User: "Zoë 柴", Application: "app"}},
		"nested": {claims: nested,
			changes: gojwt.MapClaims{"org": object{"id": "globex"}, "https://acme.test/user": "u2", "a": object{"b": object{"c": "x"}}},
			want:    Identity{Tenant: "globex", User: "u2", Application: "x"}},
		"the full name goes first": {claims: nested,
			changes: gojwt.MapClaims{"org": object{"id": "globex"}, "org.id": "full", "https://acme.test/user": "u2"},
			want:    Identity{Tenant: "full", User: "u2"}},
		"path through text":  {claims: nested, changes: gojwt.MapClaims{"org": "globex"}, err: ErrMissingClaim, claim: "org.id"},
		"path ends too soon": {claims: nested, changes: gojwt.MapClaims{"org": object{"id": object{}}}, err: ErrBadClaim, claim: "org.id"},
		"required user":      {claims: nested, changes: gojwt.MapClaims{"org": object{"id": "globex"}}, err: ErrMissingClaim, claim: "https://acme.test/user"},
	} {
		_, v := serveFetched(t, func(cfg *Config) { cfg.Issuers[0].Claims = c.claims })
		got, err := v.Verify(signers()["ed1"].token(with(goodClaims(testNow), c.changes)))
		if c.err == nil {
			c.want.Expires = testNow.Add(time.Hour).UTC()
		}
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
		var which *ClaimError
		if c.claim != "" && (!errors.As(err, &which) || which.Claim != c.claim) {
			t.Errorf("%s: %v does not name the claim %s", name, err, c.claim)
		}
	}
}
