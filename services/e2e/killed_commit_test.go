//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// A gateway is killed at every step of a reservation and its commit. Whoever has
// no answer asks its next start again by the same id, and the tenant has paid
// what was committed, once.
func TestCommitsOutliveTheirGateway(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	r := &reaper{t: t}
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{
		Name: "svc", Prefix: "/svc/", MaxCost: number(100), Upstreams: []catalog.Upstream{{URL: s.upstream.URL}},
	}, http.StatusCreated)
	s.mustREST("POST", "/v1/rules", nil, quota("work", "/svc/work", 100), http.StatusCreated)
	g := s.mortal(r, "gw-1")
	g.start().awaitReady()
	s.awaitEqual(g)
	counters := redis.NewClient(&redis.Options{Addr: s.redisAddr})
	t.Cleanup(func() { _ = counters.Close() })
	const path = "/.sluice/v1/reservations"
	steps, deaths := 1, map[string]int{}
	for ; ; steps++ {
		tenant := fmt.Sprintf("t%02d", steps)
		// call asks until there is an answer, and starts the gateway where it died.
		call := func(what, path string, body map[string]any) {
			got := send("POST", "http://"+g.addr+path, as(tenant), body)
			if got.code == 0 {
				deaths[what]++
				g.start().awaitReady()
				g.awaitWhole()
				servertest.Eventually(t, 20*time.Second, what+" to be answered", func() bool {
					got = send("POST", "http://"+g.addr+path, as(tenant), body)
					return got.code != http.StatusServiceUnavailable
				})
			}
			if got.code != http.StatusOK && got.code != http.StatusCreated {
				t.Fatalf("step %d: %s answers %d %s", steps, what, got.code, got.body)
			}
		}
		r.arm(g.process, steps)
		call("the reservation", path, map[string]any{"id": "job", "path": "/svc/work", "method": "GET", "cost": 50, "ttl": "10m"})
		call("the commit", path+"/job/commit", map[string]any{"cost": 12})
		lived := r.disarm()
		call("the commit again", path+"/job/commit", map[string]any{"cost": 12})
		if now := s.totals(counters, tenant, "work"); now[0]-now[1] != 12 {
			t.Fatalf("killed at step %d: totals are %v", steps, now)
		}
		if lived {
			break
		}
	}
	t.Logf("%d steps: %v", steps-1, deaths)
	if deaths["the reservation"] == 0 || deaths["the commit"] == 0 {
		t.Errorf("died at %v, want both", deaths)
	}
}
