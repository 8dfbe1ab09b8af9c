//go:build integration

package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// A gateway is ready without its issuers, and takes their tokens as soon as
// it has reached them.
func TestAGatewayReachesItsIssuer(t *testing.T) {
	t.Parallel()
	login := newIssuer(t, loginIssuer)
	login.away.Store(true)
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	d.putRule(ruleJSON("once", "tenant", "calls", `{"algorithm":"fixedWindow","limit":1,`+year+`}`, ""))
	g := d.runReady("gw-1", addr, prefix, func(c *Config) {
		c.Identity.JWT.Issuers = []jwt.Issuer{login.config()}
		c.Identity.JWT.ForwardToken = false
	})
	bearer := []string{"Authorization", "Bearer " + login.token(t, map[string]any{"exp": time.Now().Add(time.Hour).Unix()})}
	if a := do(t, http.MethodGet, g.base+"/demo/x", bearer...); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before the issuer was reached: %d %s", a.StatusCode, a.body)
	}
	login.away.Store(false)
	var a answer
	servertest.Eventually(t, issuerPatience, "the token is taken", func() bool {
		a = do(t, http.MethodGet, g.base+"/demo/x", bearer...)
		return a.StatusCode != http.StatusServiceUnavailable
	})
	if a.StatusCode != http.StatusOK {
		t.Fatal(a.StatusCode, a.body)
	}
	if again := do(t, http.MethodGet, g.base+"/demo/x", bearer...); again.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the tenant's second request: %d", again.StatusCode)
	}
	if e := d.usage(2)[a.Header.Get(respond.HeaderDecisionID)]; e.TenantID != "acme" || e.UserID != "u1" || e.ApplicationID != "shop" || e.APIKeyHash != "" {
		t.Errorf("event %+v", e)
	}
}
