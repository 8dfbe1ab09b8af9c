package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// fleet is gates before one origin and one Redis of the cache.
func newFleet(t *testing.T, n int, route catalog.Cache) (gates []*cacheStand, origin *cacheStand) {
	t.Helper()
	mini := miniredis.RunT(t)
	for i := range n {
		gates = append(gates, newCacheStand(t, route, func(o *standOptions) {
			// Redis and the processes have one clock, which the test cannot turn.
			o.cacheRedis, o.cacheNow = mini.Addr(), nil
			if i > 0 {
				o.catalog[0].Upstreams = []catalog.Upstream{{URL: gates[0].upstream.URL}}
			}
		}))
	}
	return gates, gates[0]
}

// Many ask for one cold answer at several gates: the service is asked once, and
// each event says whose load it was.
func TestOneLoadInTheFleet(t *testing.T) {
	t.Parallel()
	gates, origin := newFleet(t, 3, catalog.Cache{})
	hold, release := held(t)
	origin.script(func(w http.ResponseWriter, _ *http.Request) {
		<-hold
		w.Header().Set("Cache-Control", "max-age=60")
	})
	const each = 40
	var wait sync.WaitGroup
	for range each {
		for _, g := range gates {
			wait.Go(func() {
				if a := get(g.front.URL + "/demo/a"); a != "1" {
					t.Errorf("answered %q", a)
				}
			})
		}
	}
	servertest.Eventually(t, cachePatience, "all to be under way", func() bool {
		n := int64(0)
		for _, g := range gates {
			n += g.gate.inFlight.Load()
		}
		return n == int64(each*len(gates)) && origin.asked.Load() == 1
	})
	release()
	wait.Wait()
	cached := map[string]int{}
	for _, g := range gates {
		for _, e := range g.events() {
			cached[e.Cached]++
		}
	}
	if origin.asked.Load() != 1 || cached[""] != 1 || cached[usage.CachedCoalesced]+cached[usage.CachedHit] != each*len(gates)-1 || cached[usage.CachedCoalesced] == 0 {
		t.Errorf("asked %d times; events %v", origin.asked.Load(), cached)
	}
}

// fleetHost is the name that clients know all gates by: it is part of the key.
const fleetHost = "shop.example"

func get(url string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	req.Host = fleetHost
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// What one gate stored another serves; what one changed none serves.
func TestGatesShareAnswers(t *testing.T) {
	t.Parallel()
	gates, origin := newFleet(t, 2, catalog.Cache{StaleIfError: "1h"})
	origin.wants(gates[0].get("/demo/a", "Host", fleetHost), "1", 1)
	origin.wants(gates[1].get("/demo/a", "Host", fleetHost), "1", 1)
	do(t, http.MethodPost, gates[1].front.URL+"/demo/a", "Host", fleetHost)
	origin.wants(gates[1].get("/demo/a", "Host", fleetHost), "3", 3)
	servertest.Eventually(t, cachePatience, "the other gate to hear of it", func() bool { return get(gates[0].front.URL+"/demo/a") == "3" })
}

// roundTripper is an origin without sockets.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Ten thousand wait for what turns out to be theirs alone: all go on at once,
// each with an answer of its own, and for a while nobody waits.
func TestWaitersOnAnUncacheableAnswerGoOnAtOnce(t *testing.T) {
	t.Parallel()
	const waiters = 10_000
	s := newCacheStand(t, catalog.Cache{}, nil)
	var asked atomic.Int64
	hold, release := held(t)
	together := make(chan struct{})
	s.gate.prepare(roundTripper(func(r *http.Request) (*http.Response, error) {
		n := asked.Add(1)
		switch {
		case n == 1:
			<-hold
		case n == waiters:
			close(together) // all the others are at the origin at this instant
		case n > waiters:
		default:
			<-together
		}
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Cache-Control": {"private"}}, Body: io.NopCloser(strings.NewReader(fmt.Sprint(n))), Request: r,
		}, nil
	}))
	var mu sync.Mutex
	bodies := map[string]bool{}
	var wait sync.WaitGroup
	for range waiters {
		wait.Go(func() {
			w := httptest.NewRecorder()
			s.gate.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/demo/a", nil))
			mu.Lock()
			defer mu.Unlock()
			bodies[w.Body.String()] = true
		})
	}
	servertest.Eventually(t, cachePatience, "all to wait", func() bool { return s.gate.inFlight.Load() == waiters && asked.Load() == 1 })
	release()
	wait.Wait()
	if len(bodies) != waiters || asked.Load() != waiters {
		t.Errorf("%d answers by %d loads, want %d", len(bodies), asked.Load(), waiters)
	}
}

// The first caller goes away: its load goes on for the others, and for later.
func TestFirstCallerGoesAway(t *testing.T) {
	t.Parallel()
	for name, waiters := range map[string]int{"others wait": 3, "nobody waits": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{}, nil)
			hold, release := held(t)
			s.script(func(w http.ResponseWriter, _ *http.Request) {
				<-hold
				w.Header().Set("Cache-Control", "max-age=60")
			})
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+"/demo/a", nil)
				req.Host = fleetHost
				_, err := http.DefaultClient.Do(req) //nolint:bodyclose // it has none
				gone <- err
			}()
			servertest.Eventually(t, cachePatience, "the load", func() bool { return s.asked.Load() == 1 })
			answers := make(chan string, waiters)
			for range waiters {
				go func() { answers <- get(s.front.URL + "/demo/a") }()
			}
			servertest.Eventually(t, cachePatience, "the others", func() bool { return s.gate.inFlight.Load() == int64(waiters+1) })
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller got %v", err)
			}
			servertest.Eventually(t, cachePatience, "the first to be gone", func() bool { return s.gate.inFlight.Load() == int64(waiters) })
			release()
			for range waiters {
				if body := <-answers; body != "1" {
					t.Errorf("a waiter got %q", body)
				}
			}
			servertest.Eventually(t, cachePatience, "the answer to be stored", func() bool {
				a := s.get("/demo/a", "Cache-Control", "only-if-cached", "Host", fleetHost)
				return a.StatusCode == 200 && a.body == "1"
			})
			if n := s.asked.Load(); n != 1 {
				t.Errorf("the service was asked %d times", n)
			}
		})
	}
}

// A body that is too large to be stored passes as it comes, its first bytes
// before its last are there; its end is the client's.
func TestLargeBodiesPassThrough(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{MaxObjectBytes: 10}, nil)
	more, ended := make(chan struct{}), make(chan struct{}, 2)
	s.script(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "0123456789abc")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		ended <- struct{}{}
	})
	for _, leave := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+"/demo/a", nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 13)
		if _, err := io.ReadFull(res.Body, head); err != nil || string(head) != "0123456789abc" {
			t.Errorf("the beginning is %q, %v", head, err)
		}
		if leave {
			cancel() // the service is let go, too
		} else {
			more <- struct{}{}
			if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "1" {
				t.Errorf("the rest is %q, %v", rest, err)
			}
		}
		_ = res.Body.Close()
		cancel()
		select {
		case <-ended:
		case <-time.After(cachePatience):
			t.Fatal("the request to the service goes on without its client")
		}
	}
}

// An answer that breaks off is not stored, and is the service's failure.
func TestTruncatedAnswersAreNotStored(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, nil)
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "100")
	})
	if a := s.get("/demo/a"); a.StatusCode != 502 {
		t.Errorf("answered %d %q", a.StatusCode, a.body)
	}
	s.script(nil)
	s.wants(s.get("/demo/a"), "2", 2)
}

// A request that a rule denies never touches the cache.
func TestDeniedRequestsDoNotTouchTheCache(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, nil)
	s.get("/demo/a")
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"demo"},"metric":"m","limit":{"algorithm":"gcra","limit":0,"window":"1m"}}`)
	before := s.cacheMetric("cache_requests_total")
	a := s.get("/demo/a")
	if a.StatusCode != 429 || a.Header.Get("Cache-Status") != "" || s.cacheMetric("cache_requests_total") != before {
		t.Errorf("answered %d %v", a.StatusCode, a.Header)
	}
}

// What a service says an answer cost is charged to the request that was its load,
// and is not part of what is stored.
func TestCostOfALoad(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{}, func(o *standOptions) { o.catalog[0].CostHeader = "X-Cost" })
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"demo"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","period":"month","limit":100}}`)
	s.answers(200, "Cache-Control", "max-age=60", "X-Cost", "7")
	for i, want := range []int64{7, 8, 9} {
		if a := s.get("/demo/a"); a.Header.Get("X-Cost") != "" {
			t.Errorf("the client sees the cost: %v", a.Header)
		}
		if e := s.event(); len(e.Charges) != 1 || e.Charges[0].Consumed != want {
			t.Errorf("call %d: %+v", i, e)
		}
	}
}
