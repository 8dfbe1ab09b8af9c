//go:build integration

package gateway

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// Sixty-four clients on two gateways' stores, in a process whose processors are
// busy with other things: waiting for our own turn is nobody's absence, so that
// with the settings as they come no rule that is open lets anything pass
// uncounted.
func TestOverloadedProcessLetsNothingPassUncounted(t *testing.T) {
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	var stores []*counters
	for _, id := range []string{"gw-1", "gw-2"} {
		stores = append(stores, runCounters(t, d, id, addr, prefix))
	}
	counter := limit.Counter{Key: "{t:acme}:t::calls:fixed:31536000", Algorithm: limit.FixedWindow, Limit: 1000, Window: 365 * 24 * time.Hour, Cost: 1}
	burn(t)
	var (
		passed, uncounted atomic.Int64
		clients           sync.WaitGroup
		why               sync.Map // what the store said
	)
	for client := range 64 {
		clients.Go(func() {
			for range 50 {
				d, err := stores[client%2].store.Decide(t.Context(), []limit.Counter{counter})
				switch {
				case errors.Is(err, limit.ErrUnavailable):
					uncounted.Add(1)
					why.Store(err.Error(), true)
				case err != nil:
					t.Error(err)
				case d.Allowed:
					passed.Add(1)
				}
			}
		})
	}
	clients.Wait()
	// A machine can always be busier than a budget of 5 ms allows for; a few of
	// the 3200 may then go by their rules' policy, a stampede of them may not.
	if p, u := passed.Load(), uncounted.Load(); p > 1000 || p+u < 1000 || u > 3200/50 {
		t.Errorf("%d passed and %d would pass uncounted, want 1000 and hardly any", p, u)
	}
	why.Range(func(text, _ any) bool { t.Log(text); return true })
	for _, c := range stores {
		if st := c.store.Stats(); !c.store.Available() || st.Lost != 0 {
			t.Errorf("available %t, %+v", c.store.Available(), st)
		}
	}
}

// runCounters runs a gateway's part that counts, with the settings as they come.
func runCounters(t *testing.T, d *deployment, id, addr, prefix string) *counters {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Store.KeyPrefix = prefix
	o := &redis.UniversalOptions{Addrs: []string{addr}}
	redisstore.Configure(o, cfg.Store.Timeout)
	client := redis.NewUniversalClient(o)
	c, err := newCounters(id, cfg, Deps{Redis: client, Stream: d.stream, Log: d.logger(), Now: time.Now}, func() string { return "" })
	must(t, err)
	parts := start(context.WithoutCancel(t.Context()), c.runs()...)
	t.Cleanup(func() {
		if err := errors.Join(parts.stop(), c.store.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	servertest.Eventually(t, patience, "Redis to be reached", func() bool { return c.check.ready() == nil })
	return c
}

// burn keeps every processor of this process busy until the test ends.
func burn(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var burning sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		burning.Go(func() {
			for x := uint64(1); ctx.Err() == nil; {
				for range 100_000 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); burning.Wait() })
}
