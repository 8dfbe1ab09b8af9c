package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

const cachePatience = 20 * time.Second

// The service fails for ten minutes: it is asked ever less often, stale answers
// stand in up to their limit and not past it, and its 404 is not hidden.
func TestServiceFailsForTenMinutes(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{StaleIfError: "5m"}, nil)
	s.wants(s.get("/demo/a"), "1", 1)
	s.answers(500)
	stale, failed := 0, 0
	for range 600 { // a request a second
		s.clock.advance(time.Second)
		a := s.get("/demo/a")
		age := s.clock.offset.Load() / int64(time.Second)
		switch {
		case a.StatusCode == 200 && age <= 360:
			stale++
		case a.StatusCode >= 500 && age > 356: // spread takes up to 3 s of 60
			failed++
		default:
			t.Fatalf("after %d s: %d %v", age, a.StatusCode, a.Header)
		}
	}
	// Up to ten seconds between two loads, with full jitter: about one in five.
	if n := s.asked.Load(); n > 300 || n < 20 {
		t.Errorf("the service was asked %d times in ten minutes", n)
	}
	s.answers(404)
	found := func() bool {
		s.clock.advance(time.Second)
		return s.get("/demo/a").StatusCode == 404
	}
	servertest.Eventually(t, cachePatience, "the 404", found)
	t.Logf("%d stale, %d failed, %d loads", stale, failed, s.asked.Load())
}

// A 404 replaces a stored answer, within its stale limits too.
func TestNotFoundIsNotHidden(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{"stored": cc("max-age=60"), "not stored": cc("no-store")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{StaleIfError: "5m"}, nil)
			s.get("/demo/a")
			s.clock.advance(61 * time.Second)
			s.answers(404, fields...)
			if a := s.get("/demo/a"); a.StatusCode != 404 {
				t.Errorf("answered %d %v", a.StatusCode, a.Header)
			}
		})
	}
}

// Stale limits are the answer's own, else the route's, and none where it forbids
// them (RFC 5861; RFC 9111, section 4.2.4). The service is down meanwhile.
func TestStaleLimits(t *testing.T) {
	t.Parallel()
	both := catalog.Cache{StaleWhileRevalidate: "20s", StaleIfError: "40s"}
	for name, c := range map[string]struct {
		route catalog.Cache
		cc    string
		until time.Duration // past its freshness; 0 is not at all
	}{
		"none":                        {cc: "max-age=10"},
		"route's, the longer":         {route: both, cc: "max-age=10", until: 40 * time.Second},
		"route's while-revalidate":    {route: catalog.Cache{StaleWhileRevalidate: "20s"}, cc: "max-age=10", until: 20 * time.Second},
		"own if-error":                {cc: "max-age=10, stale-if-error=30", until: 30 * time.Second},
		"own while-revalidate":        {cc: "max-age=10, stale-while-revalidate=30", until: 30 * time.Second},
		"own before the route's":      {route: both, cc: "max-age=10, stale-if-error=15, stale-while-revalidate=5", until: 15 * time.Second},
		"own 0":                       {route: both, cc: "max-age=10, stale-if-error=0, stale-while-revalidate=0"},
		"never longer than a day":     {cc: "max-age=10, stale-if-error=9999999", until: 24 * time.Hour},
		"must-revalidate":             {route: both, cc: "max-age=10, must-revalidate"},
		"must-revalidate before own":  {cc: "max-age=10, must-revalidate, stale-if-error=30"},
		"proxy-revalidate":            {route: both, cc: "max-age=10, proxy-revalidate"},
		"s-maxage forbids the route":  {route: both, cc: "s-maxage=10"},
		"s-maxage with a word of own": {route: both, cc: "s-maxage=10, stale-if-error=30", until: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, c.route, nil)
			s.answers(200, "Cache-Control", c.cc)
			s.get("/demo/a")
			s.answers(503)
			s.clock.advance(10*time.Second + c.until - time.Millisecond)
			if c.until > 0 {
				if a := s.get("/demo/a"); a.StatusCode != 200 {
					t.Errorf("within the limit: %d %v", a.StatusCode, a.Header)
				}
			}
			s.clock.advance(2 * time.Millisecond)
			if a := s.get("/demo/a"); a.StatusCode < 500 {
				t.Errorf("past the limit: %d %v", a.StatusCode, a.Header)
			}
		})
	}
}

// While it is revalidated a stale answer is served at once, and one load is made.
func TestStaleWhileRevalidate(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{StaleWhileRevalidate: "1m"}, nil)
	s.get("/demo/a")
	s.clock.advance(70 * time.Second)
	hold, release := held(t)
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		<-hold
		w.Header().Set("Cache-Control", "max-age=60")
	})
	for range 20 {
		if a := s.get("/demo/a"); a.body != "1" {
			t.Fatalf("answered %q", a.body)
		}
	}
	servertest.Eventually(t, cachePatience, "the load", func() bool { return s.asked.Load() == 2 })
	release()
	servertest.Eventually(t, cachePatience, "the new answer", func() bool { return s.get("/demo/a").body == "2" })
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d loads", n)
	}
}

// A stale answer is confirmed by its validators, and takes over what the 304 says.
func TestRevalidation(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{TagsHeader: "cache-tag"}, nil)
	s.script(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Etag", `"a"`)
		h.Set("Last-Modified", "Wed, 01 Jul 2026 00:00:00 GMT")
		h.Set("Cache-Control", "max-age=60")
		h.Set("X-Asked", fmt.Sprint(s.asked.Load()))
		if r.Header.Get("If-None-Match") == `"a"` && r.Header.Get("If-Modified-Since") == "Wed, 01 Jul 2026 00:00:00 GMT" {
			h.Set("Content-Encoding", "lies")
			w.WriteHeader(304)
			return
		}
		h.Set("Cache-Tag", "one, two")
	})
	if a := s.get("/demo/a", "If-None-Match", `"x"`); a.body != "1" || a.Header.Get("Cache-Tag") != "" {
		t.Errorf("answered %q %v", a.body, a.Header)
	}
	s.clock.advance(61 * time.Second)
	a := s.get("/demo/a")
	s.wants(a, "1", 2)
	if a.Header.Get("X-Asked") != "2" || a.Header.Get("Content-Encoding") != "" || !strings.Contains(a.Header.Get("Cache-Status"), "fwd=stale; fwd-status=304; stored") {
		t.Errorf("confirmed: %v", a.Header)
	}
	s.clock.advance(30 * time.Second)
	a = s.get("/demo/a", "If-None-Match", `"a"`)
	s.wants(a, "", 2)
	if a.StatusCode != 304 || a.Header.Get("Age") != "30" || a.Header.Get("Etag") != `"a"` {
		t.Errorf("the client's own condition: %d %v", a.StatusCode, a.Header)
	}
	// A 304 about another answer confirms nothing: it is asked for anew.
	s.clock.advance(61 * time.Second)
	s.script(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"b"`)
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(304)
		}
	})
	s.wants(s.get("/demo/a"), "4", 4)
}

// What an unsafe method changes is not served again: its own URL, what it names,
// and every variant; but only where it succeeded, and only of the same host.
func TestUnsafeMethodsInvalidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path string
		status       int
		fields       []string
		gone         bool
	}{
		"post":                      {method: "POST", path: "/demo/a", status: 201, gone: true},
		"put":                       {method: "PUT", path: "/demo/a", status: 204, gone: true},
		"delete":                    {method: "DELETE", path: "/demo/a", status: 200, gone: true},
		"unknown method":            {method: "FROB", path: "/demo/a", status: 200, gone: true},
		"redirect":                  {method: "POST", path: "/demo/a", status: 303, gone: true},
		"failed":                    {method: "POST", path: "/demo/a", status: 500},
		"refused":                   {method: "POST", path: "/demo/a", status: 403},
		"options":                   {method: "OPTIONS", path: "/demo/a", status: 200},
		"elsewhere":                 {method: "POST", path: "/demo/b", status: 200},
		"location":                  {method: "POST", path: "/demo/b", status: 201, fields: []string{"Location", "/demo/a"}, gone: true},
		"relative content-location": {method: "POST", path: "/demo/b", status: 201, fields: []string{"Content-Location", "a"}, gone: true},
		"location of another host":  {method: "POST", path: "/demo/b", status: 201, fields: []string{"Location", "http://other/demo/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{StaleIfError: "1h", StaleWhileRevalidate: "1h"}, nil)
			s.answers(200, "Cache-Control", "max-age=60, public", "Vary", "X-Shop")
			requests := [][]string{{"X-Shop", "1"}, {"X-Shop", "2"}, {"Authorization", "Basic YTpi"}}
			for _, headers := range requests {
				s.get("/demo/a", headers...)
			}
			s.answers(c.status, c.fields...)
			do(t, c.method, s.front.URL+c.path)
			asked := s.asked.Load()
			s.answers(503)
			for _, headers := range requests {
				if a := s.get("/demo/a", headers...); (a.StatusCode == 503) != c.gone {
					t.Errorf("%v: answered %d %q %v", headers, a.StatusCode, a.body, a.Header)
				}
			}
			if gone := s.asked.Load() > asked; gone != c.gone {
				t.Errorf("the service was asked: %v, want %v", gone, c.gone)
			}
		})
	}
}

// The cache's Redis goes away: what is in memory goes on, fresh and stale, and
// loads of what is not are capped.
func TestCacheRedisAway(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	s := newCacheStand(t, catalog.Cache{}, func(o *standOptions) {
		o.cacheRedis, o.cacheNow = mini.Addr(), nil
		o.cache = func(c *CacheConfig) { c.RedisTimeout, c.MaxLoadsAway = 200*time.Millisecond, 3 }
	})
	s.wants(s.get("/demo/a"), "1", 1)
	// Memory is void once, when the first subscription stands.
	servertest.Eventually(t, cachePatience, "the cache to listen", func() bool { return s.cacheMetric("cache_l1_drops_total") == 1 })
	s.wants(s.get("/demo/a"), "1", 1)
	mini.Close()
	s.wants(s.get("/demo/a"), "1", 1)
	running, most := make(chan int, 100), 0
	hold, release := held(t)
	var now gauge
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		running <- now.add(1)
		<-hold
		now.add(-1)
		w.Header().Set("Cache-Control", "max-age=60")
	})
	const keys = 12
	done := make(chan int, keys)
	for i := range keys {
		go func() {
			req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprint(s.front.URL, "/demo/x", i), nil)
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				done <- 0
				return
			}
			_ = res.Body.Close()
			done <- res.StatusCode
		}()
	}
	for range 3 {
		most = max(most, <-running)
	}
	release()
	for range keys {
		if status := <-done; status != 200 {
			t.Errorf("answered %d", status)
		}
	}
	close(running)
	for n := range running {
		most = max(most, n)
	}
	if most > 3 {
		t.Errorf("%d loads at once", most)
	}
}
