//go:build integration

package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

func TestCaseManyKeysTwoWindowsLaterNoneLeft(t *testing.T) {
	t.Parallel()
	noneLeft(t, 20_000)
}

// noneLeft charges a counter of each of so many tenants, and waits for all of
// them to be gone, on a Redis of its own.
func noneLeft(t *testing.T, tenants int) {
	t.Helper()
	const window = 2 * time.Second
	server := servertest.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	s := newStore(t, newClient(t, server.Addr()), Options{})
	var wg sync.WaitGroup
	const clients = 64
	for n := range clients {
		wg.Go(func() {
			for i := n; i < tenants; i += clients {
				c := rates(window)[i%4]
				c.Key = fmt.Sprintf("{t:%d}:t::m:%s", i, c.Algorithm)
				if _, err := s.Decide(context.Background(), []limit.Counter{c}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	last := time.Now()
	// Redis removes what has expired in its own time; reading it says so at once.
	servertest.Eventually(t, time.Minute+4*window, "all keys to be gone", func() bool {
		n, err := client.DBSize(context.Background()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1 // the epoch
	})
	t.Logf("%d keys gone %s after the last charge, windows of %s", tenants, time.Since(last).Round(time.Millisecond), window)
}

// rates are a counter of each algorithm with a window.
func rates(window time.Duration) []limit.Counter {
	all := []limit.Counter{fixed(10), sliding(10), gcra(10, 10), bucket(10, 10)}
	for i := range all {
		all[i].Window = window
	}
	return all
}
