package gateway

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
)

// A gateway that no event has told of its reservations yet brings them back to a
// Redis that lost them: number, record, and when it falls due.
func TestReservationsAreHandedIn(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	o := &redis.UniversalOptions{Addrs: []string{server.Addr()}}
	redisstore.Configure(o, 10*time.Second)
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = client.Close() })
	whole := func() {
		t.Helper()
		restoretest.Whole(t, client, "p:")
	}
	whole()
	cfg := DefaultConfig()
	cfg.ID, cfg.Listen, cfg.Store = "gw", "127.0.0.1:0", StoreConfig{KeyPrefix: "p:", Budget: 10 * time.Second, Timeout: 10 * time.Second}
	s, err := New(cfg, Deps{Redis: client, Stream: stream.Config{Brokers: []string{"127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	servertest.Run(t, "store", s.counters.store.Run)
	servertest.Eventually(t, 10*time.Second, "the quotas to be known as whole", s.counters.store.Whole)
	c := limit.Counter{Key: "{t:acme}:t::m:fixed:60", Algorithm: limit.FixedWindow, Limit: 100, Window: time.Minute, Cost: 10}
	r := reserve.Record{ID: "a", Tenant: "acme", Cost: 10, MaxCost: 100, Charges: []reserve.Charge{{Rule: "r", Metric: "m"}}}
	if _, err := s.gate.book.Reserve(t.Context(), r, time.Hour, []limit.Counter{c}, func(reserve.Made) {}); err != nil {
		t.Fatal(err)
	}
	server.FlushAll()
	whole()
	members := func(is func(key string) bool) (n int) {
		for _, key := range server.Keys() {
			if all, err := server.ZMembers(key); err == nil && is(key) {
				n += len(all)
			}
		}
		return n
	}
	const places = "p:{t:acme}:reservations"
	servertest.Eventually(t, 10*time.Second, "the reservation to be back, and its place", func() bool {
		found, err := s.gate.book.Get(context.Background(), reserve.Caller{Tenant: "acme"}, "a")
		return err == nil && found.State == reserve.Reserved && found.Cost == 10 && members(func(key string) bool { return key == places }) == 1
	})
	if due := members(func(key string) bool { return key != places }); due != 1 {
		t.Errorf("%d are due", due)
	}
}
