package cache_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// patience is what a test waits for a thing that happens at once on an idle machine.
const patience = 20 * time.Second

// stand is a Redis and the caches of some processes on it, with one clock that the test turns.
type stand struct {
	t      testing.TB
	mini   *miniredis.Miniredis
	offset atomic.Int64 // of the clock
}

func newStand(t testing.TB) *stand {
	t.Helper()
	return &stand{t: t, mini: miniredis.RunT(t)}
}

func (s *stand) now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

// advance turns the processes' clocks and Redis's.
func (s *stand) advance(d time.Duration) {
	s.offset.Add(int64(d))
	s.mini.SetTime(s.now())
	s.mini.FastForward(d)
}

type options = cache.Options[string]

// client is a process's own connection.
func client(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	o := &redis.UniversalOptions{Addrs: []string{addr}}
	cache.ConfigureRedis(o, 2*time.Second)
	c := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// node is one process: a Cache that listens.
func (s *stand) node(change func(*options)) *cache.Cache[string] {
	s.t.Helper()
	o := quick(client(s.t, s.mini.Addr()))
	o.Now = s.now
	if change != nil {
		change(&o)
	}
	return listening(s.t, running(s.t, o), o)
}

// listening waits for a Cache on Redis to hear.
func listening(t testing.TB, c *cache.Cache[string], o options) *cache.Cache[string] {
	t.Helper()
	if o.Redis != nil {
		eventually(t, "the cache to listen", func() bool { return cache.Listening(c) })
	}
	return c
}

// quick are options in which nothing takes long but what the test lets take long.
func quick(c redis.UniversalClient) options {
	return options{
		Family: "test", Redis: c, TTL: time.Minute, Jitter: -1, Retries: -1, RedisTimeout: 2 * time.Second,
		PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond, LoadTimeout: patience,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// running starts a Cache and stops it after the test.
func running[V any](t testing.TB, o cache.Options[V]) *cache.Cache[V] {
	t.Helper()
	c, err := cache.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return c
}

// source is an origin whose answers are versions: value "key@n" for the n-th change.
type source struct {
	mu      sync.Mutex
	version int
	err     error
	hold    chan struct{} // loads wait until it is closed; nil is at once
	begun   chan string   // gets the key of each load that began, when not nil
	loads   atomic.Int64
	running atomic.Int64
	most    atomic.Int64
}

func (s *source) load(ctx context.Context, key string) (cache.Loaded[string], error) {
	s.loads.Add(1)
	if n := s.running.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.running.Add(-1)
	s.mu.Lock()
	version, err, hold, begun := s.version, s.err, s.hold, s.begun
	s.mu.Unlock()
	if begun != nil {
		begun <- key
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return cache.Loaded[string]{}, ctx.Err()
		}
	}
	return cache.Loaded[string]{Value: fmt.Sprintf("%s@%d", key, version)}, err
}

func (s *source) set(change func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// held makes the source's loads wait; release lets them go.
func (s *source) held() (begun chan string, release func()) {
	hold := make(chan struct{})
	begun = make(chan string, 100)
	s.set(func(s *source) { s.hold, s.begun = hold, begun })
	return begun, sync.OnceFunc(func() {
		s.set(func(s *source) { s.hold, s.begun = nil, nil })
		close(hold)
	})
}

// get reads a key that must be there.
func get(t testing.TB, c *cache.Cache[string], key string) cache.Result[string] {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.Fetch(ctx, key)
	if err != nil {
		t.Fatalf("fetch %s: %v", key, err)
	}
	return r
}

func wants(t testing.TB, r cache.Result[string], value string, src cache.Source) {
	t.Helper()
	if r.Value != value || r.Source != src {
		t.Fatalf("got %q from %s, want %q from %s", r.Value, r.Source, value, src)
	}
}

// await receives from ch within patience.
func await[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
	panic("unreachable")
}

// eventually polls a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// counters reads a registry: "name{label values}" to number; histograms by their sample count.
func counters(t testing.TB, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "family" {
					name += "/" + l.GetValue()
				}
			}
			switch {
			case m.GetCounter() != nil:
				out[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				out[name] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				out[name] = float64(m.GetHistogram().GetSampleCount())
				out[name+"/sum"] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return out
}

// readers run fn n times at once and wait.
func readers(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}
