package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/purges"
)

// purge applies a purge as the table of purges.v1 would.
func (s *cacheStand) purge(version int64, p purges.Purge) {
	p.Service = "demo"
	p.ID = p.Target()
	s.purges.Apply(stream.Change[httpcache.Purge]{Key: p.ID, Entry: purgeEntry(s.t, p, version)})
}

// purgeEntry is a record of purges.v1 as it is read.
func purgeEntry(t testing.TB, p purges.Purge, version int64) stream.Entry[httpcache.Purge] {
	t.Helper()
	decoded, err := decodePurge(p.ID, mustJSON(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return stream.Entry[httpcache.Purge]{Value: decoded, Generation: 1, Version: version}
}

// A purge reaches what it names and nothing else, for good: also with the service
// down, and within the stale limits.
func TestPurge(t *testing.T) {
	t.Parallel()
	paths := []string{"/demo/shop/a?x=1", "/demo/shop/a?x=2", "/demo/shop/b", "/demo/other"}
	for name, c := range map[string]struct {
		route catalog.Cache
		purge purges.Purge
		gone  []bool
	}{
		"all":               {purge: purges.Purge{All: true}, gone: []bool{true, true, true, true}},
		"url with query":    {purge: purges.Purge{URL: "/demo/shop/a?x=2"}, gone: []bool{false, true, false, false}},
		"url":               {purge: purges.Purge{URL: "/demo/shop/a"}, gone: []bool{true, true, false, false}},
		"url, spelt other":  {purge: purges.Purge{URL: "/demo//shop/./b"}, gone: []bool{false, false, true, false}},
		"url of nothing":    {purge: purges.Purge{URL: "/demo/shop/"}, gone: []bool{false, false, false, false}},
		"prefix":            {purge: purges.Purge{Prefix: "/demo/shop/"}, gone: []bool{true, true, true, false}},
		"part of a segment": {purge: purges.Purge{Prefix: "/demo/o"}, gone: []bool{false, false, false, true}},
		"tag":               {purge: purges.Purge{Tag: "b"}, gone: []bool{false, false, true, false}},
		"tag of several":    {purge: purges.Purge{Tag: "shop"}, gone: []bool{true, true, true, false}},
		"tag of nothing":    {purge: purges.Purge{Tag: "sho"}, gone: []bool{false, false, false, false}},
		"named parameters": {
			route: catalog.Cache{Query: "named", QueryNames: []string{"x"}}, purge: purges.Purge{URL: "/demo/shop/a?y=3&x=1"}, gone: []bool{true, false, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.route.TagsHeader, c.route.StaleIfError, c.route.StaleWhileRevalidate = "Cache-Tag", "1h", "1h"
			s := newCacheStand(t, c.route, nil)
			s.script(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				switch r.URL.Path {
				case "/demo/shop/a":
					w.Header().Add("Cache-Tag", "shop, a")
				case "/demo/shop/b":
					w.Header().Add("Cache-Tag", "b")
					w.Header().Add("Cache-Tag", "shop")
				}
			})
			for _, path := range paths {
				s.get(path)
			}
			s.purge(1, c.purge)
			s.answers(503)
			for _, wait := range []time.Duration{0, 70 * time.Second} {
				s.clock.advance(wait)
				for i, path := range paths {
					if a := s.get(path); (a.StatusCode >= 500) != c.gone[i] {
						t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
					}
				}
			}
			// What is loaded from then on is served again.
			s.script(nil)
			s.clock.advance(time.Minute)
			for _, path := range paths {
				servertest.Eventually(t, cachePatience, path, func() bool {
					s.clock.advance(time.Second)
					s.get(path)
					return s.get(path, "Cache-Control", "only-if-cached").StatusCode == 200
				})
			}
		})
	}
}

// Purged while it is loaded: those who asked before may have it, nobody else.
func TestPurgedWhileItIsLoaded(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, nil)
	hold, release := held(t)
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		if s.asked.Load() == 1 {
			<-hold
		}
		w.Header().Set("Cache-Control", "max-age=60")
	})
	got := make(chan string, 1)
	go func() { got <- get(s.front.URL + "/demo/a") }()
	servertest.Eventually(t, cachePatience, "the load", func() bool { return s.asked.Load() == 1 })
	s.purge(1, purges.Purge{All: true})
	release()
	if body := <-got; body != "2" {
		t.Errorf("the caller got %q", body)
	}
	s.wants(s.get("/demo/a", "Host", fleetHost), "2", 2)
}

// A gate that was away and comes back with an old Redis, or that has not heard of
// a purge yet and fills Redis meanwhile: nothing purged is served by one that has.
func TestPurgesThatAGateMissed(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	gate := func(url string) *cacheStand {
		return newCacheStand(t, catalog.Cache{StaleIfError: "1h"}, func(o *standOptions) {
			o.cacheRedis, o.cacheNow = mini.Addr(), nil
			if url != "" {
				o.catalog[0].Upstreams = []catalog.Upstream{{URL: url}}
			}
		})
	}
	late := gate("")
	late.wants(late.get("/demo/a", "Host", fleetHost), "1", 1)
	// It restarts: its Redis has the old answer, its table the purge it missed.
	back := gate(late.upstream.URL)
	p := purges.Purge{Service: "demo", Tag: "", All: true}
	p.ID = p.Target()
	back.purges.Replace(map[string]stream.Entry[httpcache.Purge]{p.ID: purgeEntry(t, p, 7)})
	late.wants(back.get("/demo/a", "Host", fleetHost), "2", 2)
	// The late one reads what the other stored, which is newer than all it knows.
	servertest.Eventually(t, cachePatience, "the newer answer", func() bool {
		return late.get("/demo/a", "Cache-Control", "no-cache", "Host", fleetHost).body != "1"
	})
	// It goes on loading and storing without having heard: void to the other.
	asked := late.asked.Load()
	stored := late.get("/demo/late", "Host", fleetHost).body
	if body := back.get("/demo/late", "Host", fleetHost).body; body == stored || late.asked.Load() != asked+2 {
		t.Errorf("served %q, which a gate that knew of no purge stored", body)
	}
	// Having heard of it, it serves nothing older either, with the service down.
	late.get("/demo/b", "Host", fleetHost)
	late.answers(503)
	late.purge(8, purges.Purge{All: true})
	if a := late.get("/demo/b", "Host", fleetHost); a.StatusCode < 500 {
		t.Errorf("answered %d %q", a.StatusCode, a.body)
	}
}

// Before the purges are read, and when they are too old, nothing is served from
// the store and nothing stored.
func TestWithoutPurgesNothingIsCached(t *testing.T) {
	t.Parallel()
	var unread error
	var age time.Duration
	s := newCacheStand(t, catalog.Cache{}, func(o *standOptions) {
		o.cache = func(c *CacheConfig) { c.MaxStaleness = time.Minute }
		o.purgesReady, o.purgesAge = func() error { return unread }, func() time.Duration { return age }
	})
	s.wants(s.get("/demo/a"), "1", 1)
	s.wants(s.get("/demo/a"), "1", 1)
	age = 2 * time.Minute
	s.wants(s.get("/demo/a"), "2", 2)
	age, unread = 0, errEndedByItself
	s.wants(s.get("/demo/a"), "3", 3)
}
