package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// Another user, application or key of the tenant neither sees nor ends a
// reservation whose id it knows.
func TestAReservationIsItsCallers(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 2)
	r.putRule(tokensQuota)
	r.send(0, "POST", "", chat("a", 10), "X-User-Id", "u1", "X-Application-Id", "a1").is(t, 201)
	for _, who := range [][]string{
		{}, {"X-User-Id", "u1"}, {"X-Application-Id", "a1"}, {"X-User-Id", "u2", "X-Application-Id", "a1"}, {"X-User-Id", "u1", "X-Application-Id", "a2"},
		{"X-Tenant-Id", "globex", "X-User-Id", "u1", "X-Application-Id", "a1"},
	} {
		for _, act := range [][3]string{{"GET", "/a"}, {"DELETE", "/a"}, {"POST", "/a/release"}, {"POST", "/a/commit", `{"cost":1}`}} {
			a := r.send(1, act[0], act[1], act[2], who...)
			if p := a.problem(t); a.StatusCode != http.StatusNotFound || !strings.Contains(p.Detail, "no reservation a of this tenant, user and application") {
				t.Errorf("%v %v: %d %s", who, act, a.StatusCode, a.body)
			}
		}
	}
	if n := r.used(tokensCounter); n != 10 {
		t.Errorf("%d used", n)
	}
	r.send(1, "POST", "/a/commit", `{"cost":4}`, "X-User-Id", "u1", "X-Application-Id", "a1").is(t, 200)
	if n := r.used(tokensCounter); n != 4 {
		t.Errorf("%d used in the end", n)
	}
}

// Operators release what a client that is gone has left, with a token of theirs
// alone.
func TestAnOperatorReleases(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	cfg := ReservationsConfig{Tokens: []identify.OperatorToken{{Name: "another", SHA256: withHash("other", keys.Key{}).SHA256}, {Name: "ops", SHA256: withHash("let-go", keys.Key{}).SHA256}}}
	operators, err := cfg.operators()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(releasePattern, &releaser{gate: r.gates[0].gate, operators: operators})
	release := func(token, path string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reservations"+path+"/release", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, req)
		return rec
	}
	for _, id := range []string{"left", "done"} {
		r.send(0, "POST", "", chat(id, 10), "X-User-Id", "u1").is(t, 201)
	}
	r.send(0, "POST", "/done/commit", `{"cost":3}`, "X-User-Id", "u1").is(t, 200)
	for _, c := range []struct {
		token, path string
		status      int
		says        string
	}{
		{"", "/acme/left", 401, "gateway.reservations.tokens"},
		{"let-go-not", "/acme/left", 401, "gateway.reservations.tokens"},
		{"let-go", "/globex/left", 404, "no reservation left of tenant globex"},
		{"let-go", "/acme/none", 404, "no reservation none of tenant acme"},
		{"let-go", "/acme/left:at", 404, "no reservation left:at"}, // a number beside it
		{"let-go", "/acme/done", 409, "committed at a cost of 3"},
		{"let-go", "/acme/left", 200, `"state":"released"`},
		{"other", "/acme/left", 200, `"state":"released"`}, // a repeat
	} {
		if got := release(c.token, c.path); got.Code != c.status || !strings.Contains(got.Body.String(), c.says) {
			t.Errorf("%s by %q: %d %s", c.path, c.token, got.Code, got.Body)
		}
	}
	if n := r.used(tokensCounter); n != 3 {
		t.Errorf("%d used", n)
	}
}

// The key matters where a rule counts by it, and only there.
func TestAReservationIsItsKeysWhereTheyAreCounted(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	s := r.gates[0]
	s.putKey("slk_old", keys.Key{ID: "k1", TenantID: "acme"})
	s.putKey("slk_new", keys.Key{ID: "k2", TenantID: "acme"})
	r.putRule(tokensQuota)
	old, renewed := []string{"X-Api-Key", "slk_old"}, []string{"X-Api-Key", "slk_new"}
	r.send(0, "POST", "", chat("any", 10), old...).is(t, 201)
	r.send(0, "POST", "", chat("any", 10), renewed...).is(t, 201) // a repeat
	r.send(0, "POST", "/any/commit", `{"cost":4}`, renewed...).is(t, 200)
	r.putRule(`{"id":"by-key","subject":{"kind":"apiKey","value":"*"},"scope":{"service":"llm"},"metric":"keyed","limit":{"algorithm":"quota","kind":"renewing","limit":50,"period":"month"}}`)
	r.send(0, "POST", "", chat("own", 10), old...).is(t, 201)
	if a := r.send(0, "POST", "", chat("own", 10), renewed...); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a repeat by another key: %d %s", a.StatusCode, a.body)
	}
	for _, who := range [][]string{renewed, {}} {
		if a := r.send(0, "POST", "/own/commit", `{"cost":4}`, who...); a.StatusCode != http.StatusNotFound {
			t.Errorf("%v: %d %s", who, a.StatusCode, a.body)
		}
	}
	r.send(0, "POST", "/own/commit", `{"cost":4}`, old...).is(t, 200)
	if n := r.used(tokensCounter); n != 8 {
		t.Errorf("%d used", n)
	}
}

func TestReservationByKeyAndWallet(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	s := r.gates[0]
	s.putKey("slk_secret", keys.Key{ID: "k1", TenantID: "acme", UserID: "u7"})
	r.putRule(`{"id":"money","subject":{"kind":"tenant","value":"*"},"scope":{"service":"closed"},"metric":"money","limit":{"algorithm":"quota","kind":"prepaid"}}`)
	s.gate.grants.Apply(stream.Change[grants.Wallet]{Key: grants.WalletID("acme", "money"), Entry: stream.Entry[grants.Wallet]{
		Value: grants.Wallet{ID: grants.WalletID("acme", "money"), TenantID: "acme", Metric: "money", Granted: 100},
	}})
	body := `{"path":"/closed/x","cost":80}`
	a := r.send(0, "POST", "", body, "X-Api-Key", "slk_secret", "X-Tenant-Id", "globex")
	id := a.is(t, 201).ID
	if len(id) != 36 { // a request's id
		t.Errorf("id %q", id)
	}
	if e := s.event(); e.TenantID != "acme" || e.UserID != "u7" || e.APIKeyHash == "" || e.Charges[0].Counter != "{t:acme}:t::money:quota" {
		t.Errorf("%+v", e)
	}
	if a := r.send(0, "POST", "", body, "X-Api-Key", "slk_secret"); a.StatusCode != 429 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	r.send(0, "POST", "/"+id+"/commit", `{"cost":120}`, "X-Api-Key", "slk_secret").is(t, 200)
	all := s.events()
	if e := all[len(all)-1]; e.APIKeyHash == "" || e.Charges[0].Amount != 40 || e.Charges[0].Consumed != 120 {
		t.Errorf("%+v", e)
	}
	if n := r.used("{t:acme}:t::money:quota"); n != 120 {
		t.Errorf("%d used", n)
	}
}
