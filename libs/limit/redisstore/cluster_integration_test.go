//go:build integration

package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// clusterClient returns a cluster client as the gateway makes it.
func clusterClient(t testing.TB, c *servertest.RedisCluster) *redis.ClusterClient {
	t.Helper()
	o := &redis.UniversalOptions{IsClusterMode: true, Addrs: c.Addrs()}
	Configure(o, generous)
	client := redis.NewUniversalClient(o).(*redis.ClusterClient)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// tagOn returns an owner whose keys lie on a node.
func tagOn(node, n int) string {
	for i := 0; ; i++ {
		tag := fmt.Sprintf("{t:n%d-%d}", n, i)
		if slot := epoch.SlotOf(tag); slot >= epoch.NumSlots*node/3 && slot < epoch.NumSlots*(node+1)/3 {
			return tag
		}
	}
}

func TestSlotsAreRedis(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: servertest.StartRedisCluster(t).Nodes[0].Addr()})
	defer client.Close()
	for _, key := range []string{"a", "{t:acme}:x", "x{t:acme}", "{}x", "{", "}{a}", "{a}{b}", "", "p:{s:pay}:e:GET%20/x"} {
		want, err := client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := epoch.SlotOf(key); int64(got) != want {
			t.Errorf("slot of %q is %d, Redis says %d", key, got, want)
		}
	}
}

// spread are counters of one algorithm on all three nodes.
func spread(c limit.Counter, n int) []limit.Counter {
	counters := make([]limit.Counter, 3)
	for node := range counters {
		counters[node] = c
		counters[node].Key = tagOn(node, n) + ":t::m:" + c.Algorithm.String()
	}
	return counters
}

// An advance is of one slot; the marker it waits for is that slot's.
func TestAdvanceIsOfOneSlot(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	s := newStore(t, clusterClient(t, c), Options{})
	counters := spread(longCounter(limit.RenewingQuota, 10), 0)
	step := Step{Key: epoch.Tag(counters[0].Key), From: 0, To: 1}
	step.Key = "{" + step.Key + "}:step"
	if d, err := s.Advance(t.Context(), Advance{Steps: []Step{step}, Counters: counters[:1], At: time.Now()}); err != nil || d.States[0].Consumed != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.Advance(t.Context(), Advance{Steps: []Step{step}, Counters: counters[:1], At: time.Now()}); !errors.Is(err, ErrAdvanced) {
		t.Fatalf("once more: %v", err)
	}
	for _, v := range []Advance{{Steps: []Step{step}, Counters: counters}, {Steps: []Step{step, {Key: counters[1].Key, To: 1}}}} {
		v.At = time.Now()
		if _, err := s.Advance(t.Context(), v); err == nil {
			t.Errorf("over two slots: %+v", v)
		}
	}
}

// A request whose counters lie in several slots is all or nothing: what one
// slot charged is given back when another denies.
func TestSlotsAreAllOrNothing(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	s := newStore(t, clusterClient(t, c), Options{})
	for i, algorithm := range everyAlgorithm {
		counters := spread(longCounter(algorithm, 10), i)
		counters[2] = capacity(counters[2], 3)
		passed := 0
		for range 10 {
			d, err := s.Decide(t.Context(), counters)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				passed++
				continue
			}
			for j, st := range d.States[:2] {
				if st.Remaining != 7 {
					t.Fatalf("%s: counter %d has %d left after what was denied elsewhere: %+v", algorithm, j, st.Remaining, st)
				}
			}
			if d.States[2].Allowed || d.States[2].Remaining != 0 {
				t.Fatalf("%s: %+v", algorithm, d.States[2])
			}
		}
		if passed != 3 {
			t.Errorf("%s: %d passed, want 3", algorithm, passed)
		}
		if left := remaining(t, s, counters); left[0] != 7 || left[1] != 7 || left[2] != 0 {
			t.Errorf("%s: %v left", algorithm, left)
		}
	}
}

// A slot on its way to another node: nothing is lost, nothing counted twice.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	s := newStore(t, clusterClient(t, c), Options{})
	counter := longCounter(limit.FixedWindow, 1<<40)
	counter.Key = tagOn(0, 99) + ":t::m:fixed"
	other := longCounter(limit.SlidingWindow, 1<<40)
	other.Key = tagOn(0, 99) + ":t::m:sliding"
	pair := []limit.Counter{counter, other}
	ctx := t.Context()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var passed [4]int64
	for i := range passed {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d, err := s.Decide(ctx, pair)
				if err != nil && !errors.Is(err, limit.ErrUnavailable) {
					t.Error(err)
					return
				}
				if err == nil && d.Allowed {
					passed[i]++
				}
			}
		})
	}
	servertest.Eventually(t, 60*time.Second, "traffic", func() bool { return remaining(t, s, pair)[0] < 1<<40-50 })
	// With one key there and one here every call is refused with TRYAGAIN.
	c.Move(t, epoch.SlotOf(counter.Key), 0, 1)
	before := remaining(t, s, pair)[0]
	servertest.Eventually(t, 60*time.Second, "traffic after it", func() bool { return remaining(t, s, pair)[0] < before-50 })
	close(stop)
	wg.Wait()
	var sum int64
	for _, n := range passed {
		sum += n
	}
	left := remaining(t, s, pair)
	if used := 1<<40 - left[0]; used != sum || 1<<40-left[1] != sum {
		t.Errorf("%d passed, %d and %d were charged", sum, used, 1<<40-left[1])
	}
}

// spoiled makes a quota's key hold something else.
func spoiled(t *testing.T, client redis.UniversalClient, s *Store, c limit.Counter) {
	t.Helper()
	key := s.o.KeyPrefix + c.Key + ":" + c.Calendar.At(s.Clock()).Name() + suffixConsumed
	if err := client.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.RPush(t.Context(), key, "x").Err(); err != nil {
		t.Fatal(err)
	}
}

// Several tenants' counters are settled in one call; one key that holds something
// else keeps only its own from being charged, and has no other charged twice.
func TestJournalChargesOnceBesideABrokenSlot(t *testing.T) {
	t.Parallel()
	client := clusterClient(t, servertest.StartRedisCluster(t))
	s := newStore(t, client, Options{})
	counters := spread(withCost(longCounter(limit.RenewingQuota, 100), 5), 9)
	spoiled(t, client, s, counters[2])
	for range 2 {
		broken, err := s.Settle(t.Context(), limit.Once{ID: "gw", Seq: 1000}, counters)
		if err != nil || !slices.Equal(broken, []int{2}) {
			t.Fatalf("%v broken, %v", broken, err)
		}
	}
	if left := remaining(t, s, counters[:2]); !slices.Equal(left, []int64{95, 95}) {
		t.Errorf("%v left, want 95 each", left)
	}
}
