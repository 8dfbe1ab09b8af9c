package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// An answer that must be validated for each request is given to none that the
// service was not asked for, also where requests wait for one load: it says
// another thing to each tenant.
func TestAnswersToBeValidatedAreNotCollapsed(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"public, no-cache", "must-revalidate, max-age=0", "s-maxage=0", "public, max-age=0"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			gates, origin := newFleet(t, 2, catalog.Cache{})
			hold, release := held(t)
			tenants := []string{"acme", "globex", "initech"}
			for _, g := range gates {
				for _, tenant := range tenants {
					g.putKey("slk_"+tenant, keys.Key{ID: tenant, TenantID: tenant})
				}
			}
			origin.script(func(w http.ResponseWriter, r *http.Request) {
				<-hold
				w.Header().Set("Cache-Control", says)
				w.Header().Set("Etag", `"`+r.Header.Get("X-Tenant-Id")+`"`)
			})
			var wait sync.WaitGroup
			for i, tenant := range tenants {
				wait.Go(func() {
					a := do(t, http.MethodGet, gates[i%2].front.URL+"/demo/me", "X-Api-Key", "slk_"+tenant, "Host", fleetHost)
					if a.Header.Get("Etag") != `"`+tenant+`"` {
						t.Errorf("%s is answered %s: %v", tenant, a.Header.Get("Etag"), a.Header)
					}
				})
			}
			servertest.Eventually(t, cachePatience, "all to be under way", func() bool {
				return gates[0].gate.inFlight.Load() == 2 && gates[1].gate.inFlight.Load() == 1 && origin.asked.Load() > 0
			})
			release()
			wait.Wait()
		})
	}
}

// Services count versions in their tags, alike for every tenant: another one's
// tag is not offered, so that a 304 cannot stand for its body.
func TestAnotherCallersTagIsNotOffered(t *testing.T) {
	t.Parallel()
	for vary, headers := range map[string][2][]string{
		"X-Tenant-Id":    {{"X-Api-Key", "slk_acme"}, {"X-Api-Key", "slk_globex"}},
		"Authorization":  {{"Authorization", "Bearer slk_acme"}, {"Authorization", "Bearer slk_globex"}},
		"authorization":  {{"Authorization", "Basic YTpi"}, {"Authorization", "Basic YTpj"}},
		"Cookie":         {{"Cookie", "session=1"}, {"Cookie", "session=2"}},
		"Accept, Cookie": {{"Cookie", "session=1", "Accept", "text/a"}, {"Cookie", "session=2", "Accept", "text/b"}},
	} {
		t.Run(vary, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{}, nil)
			s.putKey("slk_acme", keys.Key{ID: "k1", TenantID: "acme"})
			s.putKey("slk_globex", keys.Key{ID: "k2", TenantID: "globex"})
			s.script(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60, public")
				w.Header().Set("Vary", vary)
				w.Header().Set("Etag", `"v7"`)
				if r.Header.Get("If-None-Match") == `"v7"` {
					w.WriteHeader(http.StatusNotModified)
				}
			})
			s.wants(s.get("/demo/me", headers[0]...), "1", 1)
			s.wants(s.get("/demo/me", headers[1]...), "2", 2)
			s.wants(s.get("/demo/me", headers[0]...), "1", 2)
			// Its own is.
			s.clock.advance(61 * time.Second)
			s.wants(s.get("/demo/me", headers[0]...), "1", 3)
		})
	}
}

// What an answer to HEAD has for its caller alone reaches it, the cost too, when
// the stored answer is brought up to date by it.
func TestHeadKeepsWhatIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, func(o *standOptions) { o.catalog[0].CostHeader, o.catalog[0].MaxCost = "X-Cost", new(int64(100)) })
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"demo"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","period":"month","limit":100},"onStoreLoss":"closed"}`)
	s.answers(200, "Cache-Control", `max-age=60, private="X-Mine"`, "ETag", `"a"`, "X-Mine", "me", "X-Cost", "7")
	s.get("/demo/a")
	s.event()
	s.clock.advance(61 * time.Second)
	a := do(t, http.MethodHead, s.front.URL+"/demo/a")
	if e := s.event(); !strings.Contains(a.Header.Get("Cache-Status"), "stored") || a.Header.Get("X-Mine") != "me" || len(e.Charges) != 1 || e.Charges[0].Consumed != 14 {
		t.Errorf("event %+v, answer %v", e, a.Header)
	}
}
