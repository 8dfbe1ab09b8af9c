package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/gateway"
)

// The issuers of tokens are the configuration's deepest list; every source
// gives the same, and what is printed loads again.
func TestIssuersFromEverySource(t *testing.T) {
	t.Parallel()
	want := []gateway.Issuer{
		{
			Issuer: "https://login.example/", JWKSURL: "https://login.example/keys", Audiences: []string{"gate"}, RefreshEvery: time.Minute,
			Claims: gateway.Claims{Tenant: "org.id", Required: []string{"tenant", "user"}},
		},
		{Issuer: "https://mail.example/", JWKSURL: "https://mail.example/keys", Audiences: []string{"*"}},
	}
	inYAML := `
gateway:
  identity:
    jwt:
      forwardToken: false
      issuers:
        - issuer: https://login.example/
          jwksUrl: https://login.example/keys
          audiences: [gate]
          refreshEvery: 1m
          claims:
            tenant: org.id
            required: [tenant, user]
        - {issuer: "https://mail.example/", jwksUrl: "https://mail.example/keys", audiences: ["*"]}
`
	inText := `[{issuer: "https://login.example/", jwksUrl: "https://login.example/keys", audiences: [gate], refreshEvery: 1m,` +
		` claims: {tenant: org.id, required: [tenant, user]}}, {issuer: "https://mail.example/", jwksUrl: "https://mail.example/keys", audiences: ["*"]}]`
	for name, o := range map[string]Options{
		"file":        {File: yamlFile(t, inYAML)},
		"environment": {Environ: []string{"SLUICE_GATEWAY_IDENTITY_JWT_ISSUERS=" + inText, "SLUICE_GATEWAY_IDENTITY_JWT_FORWARD_TOKEN=false"}},
		"set":         {Sets: []string{"gateway.identity.jwt.issuers=" + inText, "gateway.identity.jwt.forwardToken=false"}},
	} {
		l := load(t, o)
		if got := l.Config.Gateway.Identity.JWT; !reflect.DeepEqual(got.Issuers, want) || got.ForwardToken {
			t.Errorf("%s: %+v", name, got)
		}
		printed, err := l.YAML(true)
		if err != nil {
			t.Fatal(err)
		}
		if again := load(t, Options{File: yamlFile(t, string(printed))}); !reflect.DeepEqual(again.Config.Gateway, l.Config.Gateway) {
			t.Errorf("%s: loaded again from\n%s", name, printed)
		}
	}
	_, err := Load(Options{File: yamlFile(t, strings.Replace(inYAML, "tenant: org.id", "tennant: org.id", 1))})
	if err == nil || !strings.Contains(err.Error(), "gateway.identity.jwt.issuers (file ") || !strings.Contains(err.Error(), "element 0: unknown field claims.tennant; did you mean claims.tenant?") {
		t.Errorf("misspelt: %v", err)
	}
}
