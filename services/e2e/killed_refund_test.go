//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// A gateway is killed at every step of a request that fails: of its charge, of
// the service's answer, of giving back. From when the request is forwarded on, its
// next start gives back what was not, once. A charge that was on its way at the kill
// may stand: at most the one.
func TestRefundsOutliveTheirGateway(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	r := &reaper{t: t}
	var seen atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(service.Close)
	upstream := "http://" + r.through(strings.TrimPrefix(service.URL, "http://"))
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: upstream}}}, http.StatusCreated)
	rule := quota("back", "/svc/back", 100)
	rule.RefundOn = []string{"5xx"}
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	g := s.mortal(r, "gw-1")
	g.start().awaitReady()
	s.awaitEqual(g)
	counters := redis.NewClient(&redis.Options{Addr: s.redisAddr})
	t.Cleanup(func() { _ = counters.Close() })
	totals := func(tenant string) [2]int64 { return s.totals(counters, tenant, "back") }
	once := [2]int64{1, 1}
	const mostTries = 20
	step, tries, charged, served := 1, 0, 0, 0
	for ; ; tries, step = tries+1, step+1 {
		tenant, before := fmt.Sprintf("t%02d", tries), seen.Load()
		r.arm(g.process, step)
		got := g.hit("/svc/back", as(tenant))
		if got.code != 0 {
			servertest.Eventually(t, 20*time.Second, "the refund, or the end", func() bool {
				return r.struck() || totals(tenant) == once && g.metric("sluice_settle_pending_records") == 0
			})
		}
		if r.disarm() {
			if got.code != http.StatusInternalServerError || totals(tenant) != once {
				t.Fatalf("unharmed it answers %d %s, totals %v", got.code, got.body, totals(tenant))
			}
			if charged > 0 && served > 1 || tries >= mostTries {
				break
			}
			step = 0 // answers that were none of the request's came between: once more
			continue
		}
		g.start().awaitReady()
		servertest.Eventually(t, 30*time.Second, "the journal to be empty", func() bool { return g.metric("sluice_settle_pending_records") == 0 })
		g.awaitWhole()
		now, reached := totals(tenant), seen.Load() > before
		switch {
		case now != once && (reached || now[0] > 1 || now[1] > 0):
			t.Fatalf("killed at answer %d: the service saw %d requests, totals are %v", step, seen.Load()-before, now)
		case reached:
			served++
		case now[0] == 1:
			charged++
		}
	}
	t.Logf("%d requests; killed %d times between charge and service, %d times from the service on", tries+1, charged, served)
	if charged < 1 || served < 2 {
		t.Errorf("killed %d times between charge and service, %d times from there on: that is not what this test means", charged, served)
	}
	for n := range tries + 1 { // what was given back stays so
		if now := totals(fmt.Sprintf("t%02d", n)); now[0] > 1 || now[1] > now[0] {
			t.Errorf("t%02d: %v", n, now)
		}
	}
}

// Many requests at once fail, each of a tenant of its own, and their gateway is
// killed among them: nothing that reached the service stays charged, nothing is
// given back twice, and of the others at most those stay charged whose charge was on
// its way at a kill.
func TestFailedCallsCostNothingWhereverTheirGatewayDies(t *testing.T) {
	t.Parallel()
	const kills, clients, each = 4, 8, 25
	s := sharedStack(t)
	var seen atomic.Int64
	var reached sync.Map // by tenant
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		reached.Store(r.Header.Get("X-Tenant-Id"), true)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(service.Close)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: service.URL}}}, http.StatusCreated)
	rule := quota("back", "/svc/back", 100)
	rule.RefundOn = []string{"5xx"}
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	g := s.gateway("gw-1")
	g.start().awaitReady()
	s.awaitEqual(g)
	counters := redis.NewClient(&redis.Options{Addr: s.redisAddr})
	t.Cleanup(func() { _ = counters.Close() })
	var tenants atomic.Int64
	for range kills {
		start := seen.Load()
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for g.hit("/svc/back", as(fmt.Sprintf("k%d", tenants.Add(1)))).code != 0 {
				}
			})
		}
		servertest.Eventually(t, 30*time.Second, "requests to be under way", func() bool { return seen.Load() >= start+each })
		g.kill()
		all.Wait()
		g.start().awaitReady()
		servertest.Eventually(t, 30*time.Second, "the journal to be empty", func() bool { return g.metric("sluice_settle_pending_records") == 0 })
		g.awaitWhole()
	}
	charged, stand := 0, 0
	for n := range tenants.Load() {
		tenant := fmt.Sprintf("k%d", n+1)
		now := s.totals(counters, tenant, "back")
		_, served := reached.Load(tenant)
		if now[0] > 1 || now[1] > now[0] || served && now != [2]int64{1, 1} {
			t.Errorf("%s: %v, served %v", tenant, now, served)
		}
		charged += int(now[0])
		stand += int(now[0] - now[1])
	}
	t.Logf("%d requests, %d charged, the service saw %d, %d stay charged", tenants.Load(), charged, seen.Load(), stand)
	if stand > kills*clients {
		t.Errorf("%d stay charged, want at most the %d in flight at %d kills", stand, kills*clients, kills)
	}
	if charged < int(seen.Load()) {
		t.Errorf("%d were charged, the service saw %d", charged, seen.Load())
	}
}
