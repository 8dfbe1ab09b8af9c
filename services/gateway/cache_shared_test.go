package gateway

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Whose answers may be shared with whom.
func TestWhatIsShared(t *testing.T) {
	t.Parallel()
	type call struct {
		headers []string
		body    string // which of the origin's answers
	}
	acme, globex := []string{"X-Api-Key", "slk_acme"}, []string{"X-Api-Key", "slk_globex"}
	acmesBearer, globexBearer := []string{"Authorization", "Bearer slk_acme"}, []string{"Authorization", "Bearer slk_globex"}
	for name, c := range map[string]struct {
		route  catalog.Cache
		fields []string
		calls  []call
	}{
		"identified: each its own": {fields: cc("max-age=60"), calls: []call{{acme, "1"}, {acme, "2"}, {globex, "3"}}},
		"identified are not given to others": {
			fields: cc("max-age=60"), calls: []call{{acme, "1"}, {nil, "2"}, {nil, "2"}, {acme, "3"}, {nil, "2"}},
		},
		"others' are not given to identified": {fields: cc("max-age=60"), calls: []call{{nil, "1"}, {acme, "2"}, {nil, "1"}}},
		"public: all's":                       {fields: cc("max-age=60, public"), calls: []call{{acme, "1"}, {globex, "1"}, {nil, "1"}, {acme, "1"}}},
		"public and vary: a tenant its own": {
			fields: append(cc("max-age=60, public"), "Vary", "X-Tenant-Id"), calls: []call{{acme, "1"}, {globex, "2"}, {acme, "1"}, {globex, "2"}},
		},
		"public and vary by the credential: a tenant its own": {
			fields: append(cc("max-age=60, public"), "Vary", "Accept, authorization"), calls: []call{{acmesBearer, "1"}, {globexBearer, "2"}, {acmesBearer, "1"}, {globexBearer, "2"}},
		},
		"public and vary by the key: a tenant its own": {
			fields: append(cc("max-age=60, public"), "Vary", "X-API-Key"), calls: []call{{acme, "1"}, {globex, "2"}, {acme, "1"}, {globex, "2"}},
		},
		"route header of the credential: a tenant its own": {
			route: catalog.Cache{Headers: []string{"authorization"}}, fields: cc("s-maxage=60"), calls: []call{{acme, "1"}, {globex, "2"}, {acme, "1"}},
		},
		"shared route, vary by the credential: all's": {
			route: catalog.Cache{Shared: true}, fields: append(cc("max-age=60"), "Vary", "Authorization"), calls: []call{{acme, "1"}, {globexBearer, "1"}, {nil, "1"}},
		},
		"route header: a tenant its own": {
			route: catalog.Cache{Headers: []string{"x-tenant-id"}}, fields: cc("s-maxage=60"), calls: []call{{acme, "1"}, {globex, "2"}, {acme, "1"}},
		},
		"private: nobody's":     {route: catalog.Cache{Shared: true}, fields: cc("private, max-age=60"), calls: []call{{acme, "1"}, {acme, "2"}, {nil, "3"}}},
		"shared route: all's":   {route: catalog.Cache{Shared: true}, fields: cc("max-age=60"), calls: []call{{acme, "1"}, {globex, "1"}, {nil, "1"}}},
		"shared, authorization": {route: catalog.Cache{Shared: true}, fields: cc("max-age=60"), calls: []call{{[]string{"Authorization", "Basic YTpi"}, "1"}, {nil, "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, c.route, nil)
			s.putKey("slk_acme", keys.Key{ID: "k1", TenantID: "acme"})
			s.putKey("slk_globex", keys.Key{ID: "k2", TenantID: "globex"})
			s.answers(200, c.fields...)
			for i, call := range c.calls {
				if a := s.get("/demo/a", call.headers...); a.body != call.body {
					t.Errorf("call %d is answered %s, want %s: %v", i, a.body, call.body, a.Header)
				}
			}
			if c.route.Shared {
				for _, r := range s.requests() {
					if r.Header.Get("X-Tenant-Id") != "" {
						t.Errorf("the service of a shared route saw tenant %q", r.Header.Get("X-Tenant-Id"))
					}
				}
			}
		})
	}
}

// A cache in front of the gate is told what the route tells answers apart by,
// with answers of the service, stored ones and those of HEAD; of what is not
// cached, nothing is told.
func TestRouteHeadersAreInVary(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{Headers: []string{"x-tenant-id", "X-Region"}}, func(o *standOptions) {
		o.catalog[0].Endpoints = []catalog.Endpoint{{Pattern: "/demo/off", Cache: &catalog.Cache{Enabled: new(false), Headers: []string{"X-Region"}}}}
	})
	s.answers(200, "Cache-Control", "s-maxage=60", "Vary", "x-region")
	told := func(method, path string) []string {
		t.Helper()
		return do(t, method, s.front.URL+path, "X-Tenant-Id", "acme").Header["Vary"]
	}
	want := []string{"x-region", "X-Tenant-Id, Authorization, X-Api-Key"}
	for _, method := range []string{"GET", "GET", "HEAD"} {
		if got := told(method, "/demo/a"); !slices.Equal(got, want) {
			t.Errorf("%s: Vary %q, want %q", method, got, want)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	for _, r := range [][2]string{{"POST", "/demo/a"}, {"GET", "/demo/off"}} {
		if got := told(r[0], r[1]); !slices.Equal(got, want[:1]) {
			t.Errorf("%s %s: Vary %q", r[0], r[1], got)
		}
	}
}

// Neither an API key nor whose request it was is in what is kept.
func TestStoredAnswersHoldNoSecret(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	s := newCacheStand(t, catalog.Cache{}, func(o *standOptions) { o.cacheRedis = mini.Addr() })
	s.putKey("slk_hunter2", keys.Key{ID: "k1", TenantID: "acme"})
	s.answers(200, "Cache-Control", "max-age=60, public")
	s.get("/demo/a", "X-Api-Key", "slk_hunter2")
	for _, key := range mini.Keys() {
		value, _ := mini.Get(key)
		for _, secret := range []string{"hunter2", "acme", base64.StdEncoding.EncodeToString([]byte("slk_hunter2"))} {
			if strings.Contains(key+value, secret) {
				t.Errorf("%s holds %q: %q", key, secret, value)
			}
		}
	}
	if len(mini.Keys()) == 0 {
		t.Error("nothing is kept at all")
	}
	for _, r := range s.requests() {
		if r.Header.Get("X-Api-Key") != "" {
			t.Error("the key was forwarded")
		}
	}
}

// Variants are kept side by side, and found again.
func TestVariantsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, nil)
	s.answers(200, "Cache-Control", "max-age=60", "Vary", "Accept-Language")
	languages := []string{"de", "fr", "tr", ""}
	for round := range 2 {
		for i, language := range languages {
			a := s.get("/demo/a", "Accept-Language", language)
			s.wants(a, string('1'+rune(i)), max(int64(i+1), int64(round*len(languages))))
		}
	}
	// An answer that names other headers leads on to its own variants.
	s.clock.advance(61 * time.Second)
	s.answers(200, "Cache-Control", "max-age=60", "Vary", "X-Shop")
	s.wants(s.get("/demo/a", "X-Shop", "1"), "5", 5)
	s.wants(s.get("/demo/a", "X-Shop", "2"), "6", 6)
	s.wants(s.get("/demo/a", "X-Shop", "1"), "5", 6)
	s.wants(s.get("/demo/a", "X-Shop", "2"), "6", 6)
}

// The key: host, path as cleaned, declared parameters.
func TestKeyOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route catalog.Cache
		a, b  string
		same  bool
	}{
		"path":                  {a: "/demo/a", b: "/demo/b"},
		"spelling of a path":    {a: "/demo/a", b: "/demo/x/../a", same: true},
		"escaped slash":         {a: "/demo/a%2Fb", b: "/demo/a/b"},
		"query":                 {a: "/demo/a?x=1", b: "/demo/a?x=2"},
		"query, order":          {a: "/demo/a?x=1&y=2", b: "/demo/a?y=2&x=1"},
		"no query":              {route: catalog.Cache{Query: "none"}, a: "/demo/a?x=1", b: "/demo/a", same: true},
		"named, same":           {route: catalog.Cache{Query: "named", QueryNames: []string{"x"}}, a: "/demo/a?x=1&utm=3", b: "/demo/a?y=2&x=1", same: true},
		"named, other":          {route: catalog.Cache{Query: "named", QueryNames: []string{"x"}}, a: "/demo/a?x=1", b: "/demo/a?x=2"},
		"named, twice in order": {route: catalog.Cache{Query: "named", QueryNames: []string{"x"}}, a: "/demo/a?x=1&x=2", b: "/demo/a?x=2&x=1"},
		"named, escaped":        {route: catalog.Cache{Query: "named", QueryNames: []string{"x y"}}, a: "/demo/a?x+y=1", b: "/demo/a?z=2&x+y=1", same: true},
		"long":                  {a: "/demo/" + strings.Repeat("a", 2000), b: "/demo/" + strings.Repeat("a", 2000) + "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, c.route, nil)
			first, second := s.get(c.a), s.get(c.b)
			if same := first.body == second.body; same != c.same {
				t.Errorf("one answer for both: %v, want %v", same, c.same)
			}
			if again := s.get(c.a); again.body != first.body {
				t.Errorf("the first is not found again: %v", again.Header)
			}
		})
	}
}

// HEAD is answered from a stored GET, and else goes to the service.
func TestHeadFromAStoredGet(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, nil)
	if a := do(t, http.MethodHead, s.front.URL+"/demo/a"); s.asked.Load() != 1 || !strings.Contains(a.Header.Get("Cache-Status"), "fwd=miss") {
		t.Errorf("head before get: %v", a.Header)
	}
	s.wants(s.get("/demo/a"), "2", 2)
	a := do(t, http.MethodHead, s.front.URL+"/demo/a")
	if s.asked.Load() != 2 || a.Header.Get("Content-Length") != "1" || a.body != "" || !strings.Contains(a.Header.Get("Cache-Status"), "hit") {
		t.Errorf("head after get: %v %q", a.Header, a.body)
	}
}

// An event says what the cache did; headers of the decision are each request's own.
func TestEventsSayWhatTheCacheDid(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{StaleWhileRevalidate: "30s"}, nil)
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"demo"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","period":"month","limit":100},"onStoreLoss":"closed"}`)
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Ratelimit", `"theirs";r=1`)
		w.Header().Set("X-Ratelimit-Limit", "7")
		w.Header().Set("Sluice-Decision-Id", "theirs")
	})
	ids := map[string]bool{}
	for i, want := range []struct{ cached, status string }{
		{"", "fwd=uri-miss; fwd-status=200; stored"}, {usage.CachedHit, "hit; ttl="}, {usage.CachedStale, "hit; ttl=-"},
	} {
		if want.cached == usage.CachedStale {
			s.clock.advance(70 * time.Second)
		}
		a := s.get("/demo/a")
		e := s.event()
		if e.Cached != want.cached || !strings.Contains(a.Header.Get("Cache-Status"), "sluice; "+want.status) {
			t.Errorf("call %d: event says %q, want %q; %v", i, e.Cached, want.cached, a.Header)
		}
		if len(e.Charges) != 1 || e.Charges[0].Consumed != int64(i+1) {
			t.Errorf("call %d: charges %+v", i, e.Charges)
		}
		if id := a.Header.Get("Sluice-Decision-Id"); id != e.ID || ids[id] {
			t.Errorf("call %d: decision %q, event %q", i, id, e.ID)
		}
		ids[e.ID] = true
		if strings.Contains(a.Header.Get("Ratelimit"), "theirs") || i > 0 && a.Header.Get("X-Ratelimit-Limit") != "" {
			t.Errorf("call %d: %v", i, a.Header)
		}
	}
}
