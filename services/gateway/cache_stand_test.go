package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// newTestCache is a stand's cache of answers, running.
func newTestCache(t testing.TB, o standOptions, reg prometheus.Registerer, log *slog.Logger) *httpcache.Cache {
	t.Helper()
	var client redis.UniversalClient
	if o.cacheRedis != "" {
		connection := &redis.UniversalOptions{Addrs: []string{o.cacheRedis}}
		cache.ConfigureRedis(connection, 2*time.Second)
		client = redis.NewUniversalClient(connection)
		t.Cleanup(func() { _ = client.Close() })
	}
	cfg := DefaultCacheConfig()
	cfg.RedisTimeout = 2 * time.Second
	if o.cache != nil {
		o.cache(&cfg)
	}
	options := cfg.HTTPOptions()
	options.Redis, options.Metrics, options.Log, options.Now = client, cache.NewMetrics(reg), log, o.cacheNow
	options.Purges, options.Usable = o.purges.index, cfg.usable(o.purgesReady, o.purgesAge)
	c := httpcache.New(options)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-c.Running()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// clock is one that the test turns, for gate, cache and origin. With a Redis, which
// has the real time, it begins at the real time.
type clock struct {
	real   bool
	offset atomic.Int64
}

func (c *clock) now() time.Time {
	begin := noon
	if c.real {
		begin = time.Now()
	}
	return begin.Add(time.Duration(c.offset.Load()))
}

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// cacheStand is a gate whose service demo is cached, and its origin. A body is
// the number of the origin's answer, so that each tells which one it is.
type cacheStand struct {
	*stand
	clock *clock

	origin sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request) // before the body; nil is 200 for a minute
	asked  atomic.Int64
}

func newCacheStand(t testing.TB, route catalog.Cache, change func(*standOptions)) *cacheStand {
	t.Helper()
	s := &cacheStand{clock: &clock{}}
	o := standOptions{
		now: s.clock.now, cacheNow: s.clock.now,
		catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/", Cache: &route}},
		handler: s.serve,
	}
	if change != nil {
		change(&o)
	}
	s.clock.real = o.cacheRedis != ""
	s.stand = newStand(t, o)
	return s
}

func (s *cacheStand) serve(w http.ResponseWriter, r *http.Request) {
	n := s.asked.Add(1)
	s.origin.Lock()
	answer := s.answer
	s.origin.Unlock()
	w.Header().Set("Date", s.clock.now().Format(http.TimeFormat))
	if answer == nil {
		w.Header().Set("Cache-Control", "max-age=60")
	} else {
		answer(w, r)
	}
	_, _ = fmt.Fprint(w, n) // refused after a 304
}

// answers sets what the origin answers from now on: a status and fields.
func (s *cacheStand) answers(status int, fields ...string) {
	s.script(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == "Date" {
				w.Header().Del("Date")
			}
			w.Header().Add(fields[i], s.dates(fields[i+1]))
		}
		w.WriteHeader(status)
	})
}

// dates writes {+60s} as the HTTP date a minute from now.
func (s *cacheStand) dates(text string) string {
	begin, end := strings.IndexByte(text, '{'), strings.IndexByte(text, '}')
	if begin < 0 || end < begin {
		return text
	}
	d, err := time.ParseDuration(text[begin+1 : end])
	if err != nil {
		s.t.Error(err)
	}
	return text[:begin] + s.clock.now().Add(d).Format(http.TimeFormat) + text[end+1:]
}

func (s *cacheStand) script(answer func(w http.ResponseWriter, r *http.Request)) {
	s.origin.Lock()
	defer s.origin.Unlock()
	s.answer = answer
}

// wants checks whose answer it is: the n-th of the origin, which was asked that
// often so far.
func (s *cacheStand) wants(a answer, body string, asked int64) {
	s.t.Helper()
	if a.body != body || s.asked.Load() != asked {
		s.t.Errorf("answered %d %q, origin asked %d times, want %q and %d; %v", a.StatusCode, a.body, s.asked.Load(), body, asked, a.Header)
	}
}

// cacheMetric is the sum of a counter of the cache's.
func (s *stand) cacheMetric(name string) (sum float64) {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// held is a channel for the origin to wait on. Call it behind the stand: a test
// that fails releases it before the servers are closed.
func held(t testing.TB) (hold chan struct{}, release func()) {
	hold = make(chan struct{})
	release = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	return hold, release
}

// gauge counts what is under way.
type gauge struct{ n atomic.Int64 }

func (g *gauge) add(d int64) int { return int(g.n.Add(d)) }
