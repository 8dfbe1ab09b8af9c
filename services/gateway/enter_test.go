package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// A gateway that is cut off may honour a revoked key; where the service says
// so it refuses keys instead, and only keys.
func TestStaleKeysAreRefusedWhereAsked(t *testing.T) {
	t.Parallel()
	login := newIssuer(t, loginIssuer)
	s := newStand(t, standOptions{
		trusted: []string{loopback}, tokens: fetched(t, startVerifier(t, login)), identity: IdentityConfig{MaxStaleness: time.Minute},
		catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/"}, {Name: "strict", Prefix: "/strict/", RefuseStaleKeys: true}},
	})
	s.putKey(secret, keys.Key{ID: "k1", TenantID: "acme"})
	key, token, headers := []string{"X-Api-Key", secret}, []string{"Authorization", "Bearer " + login.token(t, nil)}, []string{"X-Tenant-Id", "acme"}
	for _, c := range []struct {
		age, most time.Duration
		path      string
		headers   []string
		want      int
	}{
		{time.Minute, time.Minute, "/strict/x", key, 200},
		{time.Minute + 1, time.Minute, "/strict/x", key, 503},
		{time.Hour, time.Minute, "/strict/x", key, 503},
		{1 << 62, time.Minute, "/strict/x", key, 503}, // never whole
		{time.Hour, time.Minute, "/demo/x", key, 200},
		{time.Hour, time.Minute, "/strict/x", token, 200},
		{time.Hour, time.Minute, "/strict/x", headers, 200},
		{time.Hour, time.Minute, "/strict/x", nil, 200},
		{time.Hour, 0, "/strict/x", key, 200}, // off
	} {
		s.gate.admission.KeysAge, s.gate.admission.MaxStaleness = func() time.Duration { return c.age }, c.most
		a := s.get(c.path, c.headers...)
		if a.StatusCode != c.want {
			t.Errorf("%+v: %d %s", c, a.StatusCode, a.body)
		}
		if c.want == http.StatusServiceUnavailable && (a.problem(t).Type != reject.ReducedCapacity || a.Header.Get("Retry-After") == "" || a.Header.Get(respond.HeaderDecisionID) != "") {
			t.Errorf("%+v: %v %s", c, a.Header, a.body)
		}
	}
	if got := testutil.ToFloat64(s.gate.metrics.refused[reject.StaleKeys]); got != 3 {
		t.Errorf("%v refusals are counted", got)
	}
}

// A demand that this build does not know must not let everybody in.
func TestUnknownDemandsAreNotTaken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"name":"a","prefix":"/","requireIdentity":"passkey"}`,
		`{"name":"a","prefix":"/","requireKey":true,"requireIdentity":"token"}`,
	} {
		if _, err := routing.DecodeService("a", []byte(text)); err == nil || !strings.Contains(err.Error(), "requireIdentity") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
