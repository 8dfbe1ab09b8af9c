//go:build integration

package reserve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// onRedis has books on a Redis of the test's own.
func onRedis(t *testing.T) *bench {
	t.Helper()
	client := redis.NewUniversalClient(configured(&redis.UniversalOptions{Addrs: []string{servertest.StartRedis(t).Addr()}}))
	t.Cleanup(func() { _ = client.Close() })
	return (&bench{t: t}).on(client, 2)
}

func onCluster(t *testing.T) *bench {
	t.Helper()
	o := configured(&redis.UniversalOptions{IsClusterMode: true, Addrs: servertest.StartRedisCluster(t).Addrs()})
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return (&bench{t: t}).on(client, 2)
}

// ofServices are counters that the tenant shares with others, in slots of their
// own on a Cluster.
func ofServices(t *testing.T) []limit.Counter {
	t.Helper()
	var all []limit.Counter
	for _, service := range []string{"llm", "bytes", "batch"} {
		all = append(all, limit.Counter{
			Key: "{s:" + service + "}:s::all:quota", Algorithm: limit.RenewingQuota, Limit: 1000, Calendar: calendar(t, period.Spec{Unit: "never"}),
		})
	}
	return all
}

// swept waits until nothing is due.
func (b *bench) swept() {
	b.t.Helper()
	servertest.Eventually(b.t, 20*time.Second, "what is due to be swept", func() bool {
		b.sweep(0)
		return b.due() == 0
	})
}

// A hundred reservations in all ways at once, on two gateways: what was used is
// what was committed, and what was told comes to the same.
func (b *bench) race(counters []limit.Counter) {
	b.t.Helper()
	var all sync.WaitGroup
	var committed atomic.Int64
	for i := range 100 {
		all.Go(func() {
			w := wish{id: fmt.Sprint("r", i), cost: 5, ttl: 300 * time.Millisecond, counters: counters}
			if _, err := b.reserve(i%2, w); err != nil {
				b.t.Error(err)
				return
			}
			for j := range 3 {
				var err error
				var repeated bool
				cost := int64(i+j) % 8
				switch (i + j) % 4 {
				case 0, 1:
					if _, repeated, err = b.books[j%2].Commit(context.Background(), ofAcme, w.id, cost); err == nil && !repeated {
						committed.Add(cost)
					}
				case 2:
					_, _, err = b.books[j%2].Release(context.Background(), ofAcme, w.id)
				default:
					_, _, err = b.books[j%2].Sweep(context.Background())
				}
				if err != nil && !errors.As(err, new(*EndedError)) {
					b.t.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.swept()
	want := make([]int64, len(counters))
	for i := range want {
		want[i] = committed.Load()
		if got := b.tolds(fmt.Sprint("m", i)); got != want[i] {
			b.t.Errorf("%d told of counter %d, want %d", got, i, want[i])
		}
	}
	b.check("after the race", counters, want...)
	if committed.Load() == 0 {
		b.t.Error("nothing was committed")
	}
}

func TestReservationsRaceOnRedis(t *testing.T) {
	t.Parallel()
	b := onRedis(t)
	b.race(append(ofServices(t), b.quota(1000), wallet(1000)))
}

func TestReservationsRaceOnACluster(t *testing.T) {
	t.Parallel()
	b := onCluster(t)
	b.race(append(ofServices(t), b.quota(1000), wallet(1000)))
}

// Of counters in several slots all are charged or none, the tenant's decides, and
// wherever a gateway dies the others follow it.
func TestOtherSlotsFollow(t *testing.T) {
	t.Parallel()
	b := onCluster(t)
	counters := append(ofServices(t), b.quota(1000))
	zero := []int64{0, 0, 0, 0}
	ten := []int64{10, 10, 10, 10}
	seven := []int64{7, 7, 7, 7}
	deny := func(i int) {
		t.Helper()
		some := append([]limit.Counter(nil), counters...)
		some[i].Limit = 5
		m, err := b.reserve(0, wish{id: "denied", cost: 10, counters: some})
		if err != nil || m.Decision.Allowed || m.Decision.States[i].Allowed {
			t.Fatalf("counter %d denies: %+v, %v", i, m.Decision, err)
		}
		b.check("denied", counters, zero...)
	}
	deny(2)
	deny(3)
	if b.due() != 0 {
		t.Fatalf("%d are due after denials", b.due())
	}
	for i, point := range []string{pointIntent, pointOthers, pointCharged, pointTold} {
		b.dieAt(0, point)
		if _, err := b.reserve(0, wish{id: fmt.Sprint("dies", i), cost: 10, ttl: 100 * time.Millisecond, counters: counters}); !errors.Is(err, errDied) {
			t.Fatalf("%s: %v", point, err)
		}
		b.revive(0)
		b.swept()
		b.check(point, counters, zero...)
	}
	b.mustReserve(wish{id: "a", cost: 10, ttl: time.Second, counters: counters})
	b.check("reserved", counters, ten...)
	b.dieAt(0, pointEnded)
	if _, _, err := b.books[0].Commit(t.Context(), ofAcme, "a", 7); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	b.check("the tenant's slot alone", counters, 10, 10, 10, 7)
	if _, repeated, err := b.books[1].Commit(t.Context(), ofAcme, "a", 7); err != nil || !repeated {
		t.Fatal(repeated, err)
	}
	b.check("all have followed", counters, seven...)
	for i := range counters {
		if got := b.tolds(fmt.Sprint("m", i)); got != 7 {
			t.Errorf("%d told of counter %d", got, i)
		}
	}
}

// A call that was under way when its time was over, by the clock of another slot,
// finds that it has been forgotten.
func TestForgottenAttemptsStayForgotten(t *testing.T) {
	t.Parallel()
	b := onCluster(t)
	counters := append(ofServices(t), b.quota(1000))
	b.dieAt(0, pointIntent)
	w := wish{id: "a", cost: 10, ttl: time.Millisecond, counters: counters}
	if _, err := b.reserve(0, w); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	f := theDue(b)
	st, err := b.books[1].look(t.Context(), f.name, f.attempt)
	if err != nil {
		t.Fatal(err)
	}
	b.swept()
	_, followers := split(b.client, st.record)
	late := *st.record
	late.Until = time.Now().Add(time.Hour).UnixMicro() // as a clock behind has it
	if _, err := b.books[0].chargeFollower(t.Context(), &late, &followers[0], counters); !errors.Is(err, redisstore.ErrAdvanced) {
		t.Fatalf("the late call: %v", err)
	}
	b.check("after it", counters, 0, 0, 0, 0)
}

// theDue waits for the one attempt to be due, and returns it.
func theDue(b *bench) (e entry) {
	b.t.Helper()
	servertest.Eventually(b.t, 10*time.Second, "an attempt to be due", func() bool {
		f, err := b.books[0].due(b.t.Context(), 10)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(f.entries) == 1 {
			e = f.entries[0]
		}
		return len(f.entries) == 1
	})
	return e
}

// Also of a real server that does not know the script yet, and of a Cluster, where
// the index lies elsewhere.
func TestManyOpenAtOnceOnRedis(t *testing.T) {
	t.Parallel()
	b := onRedis(t)
	b.crowd(50)
	if err := b.client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	b.bounded(51)
	b.mustReserve(wish{id: "after the flush", cost: 1, counters: []limit.Counter{b.quota(100_000)}})
	b.takes("after the flush", 51)
}

func TestManyOpenAtOnceOnCluster(t *testing.T) {
	t.Parallel()
	onCluster(t).crowd(50)
}

func TestOpenOnesAreListedOnRedis(t *testing.T) {
	t.Parallel()
	onRedis(t).listsOpen()
}

func TestOpenOnesAreListedOnACluster(t *testing.T) {
	t.Parallel()
	onCluster(t).listsOpen()
}
