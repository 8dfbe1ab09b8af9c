package jwt

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	in := Config{Issuers: []Issuer{{Issuer: testIssuer, JWKSURL: "https://issuer.test/keys", Audiences: []string{"gate"}}}}
	got, err := in.normalized()
	if err != nil {
		t.Fatal(err)
	}
	s := got.Issuers[0]
	if !slices.Equal(s.Algorithms, []string{"RS256", "ES256", "EdDSA"}) || s.Leeway != 30*time.Second ||
		s.RefreshEvery != 5*time.Minute || s.Timeout != 10*time.Second || got.CachedTokens != 16384 ||
		s.Claims.Tenant != "tenant_id" || s.Claims.User != "sub" || s.Claims.Application != "azp" || !slices.Equal(s.Claims.Required, []string{"tenant"}) {
		t.Errorf("got %+v", got)
	}
	if in.Issuers[0].Leeway != 0 {
		t.Error("the caller's configuration was changed")
	}
	in.Issuers[0].Leeway = -1
	if got, err := in.normalized(); err != nil || got.Issuers[0].Leeway != 0 {
		t.Error("no leeway:", got.Issuers[0].Leeway, err)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no issuer":        {func(c *Config) { c.Issuers[0].Issuer = "" }, "issuers[0].issuer"},
		"issuer twice":     {func(c *Config) { c.Issuers = append(c.Issuers, c.Issuers[0]) }, "issuers[1].issuer"},
		"no URL":           {func(c *Config) { c.Issuers[0].JWKSURL = "" }, "issuers[0].jwksUrl"},
		"relative URL":     {func(c *Config) { c.Issuers[0].JWKSURL = "/keys" }, "issuers[0].jwksUrl"},
		"bad URL":          {func(c *Config) { c.Issuers[0].JWKSURL = "https://x\x7f/" }, "issuers[0].jwksUrl"},
		"no TLS":           {func(c *Config) { c.Issuers[0].JWKSURL = "http://issuer.test/hush" }, "allowHttp"},
		"file":             {func(c *Config) { c.Issuers[0].JWKSURL = "file://host/etc/keys" }, "scheme"},
		"password":         {func(c *Config) { c.Issuers[0].JWKSURL = "https://u:hush@issuer.test/" }, "password"},
		"no audience":      {func(c *Config) { c.Issuers[0].Audiences = nil }, "issuers[0].audiences"},
		"empty audience":   {func(c *Config) { c.Issuers[0].Audiences = []string{""} }, "issuers[0].audiences"},
		"alg none":         {func(c *Config) { c.Issuers[0].Algorithms = []string{"none"} }, "issuers[0].algorithms"},
		"alg HS256":        {func(c *Config) { c.Issuers[0].Algorithms = []string{"RS256", "HS256"} }, `"HS256"`},
		"alg in lower":     {func(c *Config) { c.Issuers[0].Algorithms = []string{"rs256"} }, `"rs256"`},
		"required":         {func(c *Config) { c.Issuers[0].Claims.Required = []string{"tenant_id"} }, "issuers[0].claims.required"},
		"long leeway":      {func(c *Config) { c.Issuers[0].Leeway = time.Hour }, "issuers[0].leeway"},
		"frequent refresh": {func(c *Config) { c.Issuers[0].RefreshEvery = time.Second }, "issuers[0].refreshEvery"},
		"negative refresh": {func(c *Config) { c.Issuers[0].RefreshEvery = -time.Minute }, "issuers[0].refreshEvery"},
		"long timeout":     {func(c *Config) { c.Issuers[0].Timeout = time.Hour }, "issuers[0].timeout"},
		"huge cache":       {func(c *Config) { c.CachedTokens = 1 << 30 }, "cachedTokens"},
	} {
		cfg := testConfig("https://issuer.test/keys")
		cfg.Issuers[0].AllowHTTP = false
		c.change(&cfg)
		_, err := New(cfg, Deps{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
