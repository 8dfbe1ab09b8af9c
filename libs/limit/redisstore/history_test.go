package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	script "github.com/sluice-platform/sluice/schemas/redis"
)

// clockKey holds the time, µs, of stores on a clock of the test's own.
const clockKey = "clock"

// generous is a time-out for tests that are not about time-outs.
const generous = 10 * time.Second

// epoch lies in the future, so that no key of a test expires by the server's
// own clock while the test moves its own.
var epoch = time.Date(2050, 1, 31, 23, 59, 50, 0, time.UTC)

// useClock makes a store take the time from a key instead of from Redis TIME.
// Only this test's copy of the script can do so.
func useClock(t testing.TB, s *Store) {
	t.Helper()
	const line = "local now = clock[1] * 1000000 + clock[2]"
	if strings.Count(script.Decide, line) != 1 {
		t.Fatalf("decide.lua no longer has the line %q", line)
	}
	s.useScript(strings.Replace(script.Decide, line,
		"local now = tonumber(redis.call('GET', '"+s.prefix+clockKey+"'))", 1))
}

// history is a random life of a few counters, on a store and on the model.
type history struct {
	store  *Store
	model  *limit.Model
	client redis.UniversalClient
	run    string // separates the keys of rapid's runs
	now    time.Time
	floor  time.Time // the clock does not step back behind an expiry
}

func (h *history) set(t *rapid.T, now time.Time) {
	h.now = now
	if err := h.client.Set(context.Background(), h.store.prefix+clockKey, now.UnixMicro(), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// step draws time and counters, and demands one answer from both.
func (h *history) step(t *rapid.T) {
	jump := rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Map(rapid.Int64Range(0, 3_000_000), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }),
		rapid.Map(rapid.Int64Range(-20, 90), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
	).Draw(t, "jump")
	if next := h.now.Add(jump); !next.Before(h.floor) {
		h.set(t, next)
	}
	counters := rapid.SliceOfN(h.counter(), 1, 4).Draw(t, "counters")
	want, err := h.model.Decide(t.Context(), counters)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.store.Decide(t.Context(), counters)
	if err != nil {
		t.Fatal(err)
	}
	if free := !needsRedis(counters); free {
		got.Now = want.Now // not asked: a guess, by a clock this test does not move
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("at %s, %+v\nscript (+) differs from model (-):\n%s", h.now, counters, diff)
	}
}

// counter draws from few keys, so that they meet, and from numbers that divide
// badly or are as large as they may be.
func (h *history) counter() *rapid.Generator[limit.Counter] {
	return rapid.Custom(func(t *rapid.T) limit.Counter {
		c := limit.Counter{
			Algorithm: rapid.SampledFrom([]limit.Algorithm{limit.GCRA, limit.FixedWindow, limit.RenewingQuota}).Draw(t, "algorithm"),
			Limit:     rapid.SampledFrom([]int64{0, 1, 2, 3, 7, 10, 60, 97, 1_000_003}).Draw(t, "limit"),
			Cost:      rapid.SampledFrom([]int64{0, 1, 1, 1, 2, 3, 5, 50, 1 << 20, limit.MaxInteger}).Draw(t, "cost"),
			Unlimited: rapid.IntRange(0, 15).Draw(t, "unlimited") == 0,
		}
		c.Key = h.run + c.Algorithm.String() + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
		switch c.Algorithm {
		case limit.RenewingQuota:
			return c
		case limit.FixedWindow:
			if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
				c.Limit = limit.MaxInteger
			}
		case limit.GCRA:
			c.Burst = min(c.Limit, 1)
			if c.Limit > 0 {
				c.Burst = rapid.SampledFrom([]int64{1, 2, 10, 13, c.Limit, 1 << 20}).Draw(t, "burst")
			}
		}
		// The window is part of identity; a key has one.
		c.Window = map[byte]time.Duration{'a': 7 * time.Second, 'b': time.Minute}[c.Key[len(c.Key)-1]]
		return c
	})
}

// expire deletes keys whose end has passed by the test's clock, as Redis would.
func (h *history) expire(t *rapid.T) {
	ctx := context.Background()
	keys, err := h.client.Keys(ctx, h.store.prefix+h.run+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		end, err := h.client.PExpireTime(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if end < 0 {
			t.Fatalf("%s has no expiry", key)
		}
		if end <= time.Duration(h.now.UnixMilli())*time.Millisecond {
			if err := h.client.Del(ctx, key).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.floor = h.now
}

func checkHistories(t *testing.T, store *Store, client redis.UniversalClient) {
	useClock(t, store)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		h := &history{store: store, client: client, run: "r" + time.Duration(run).String()}
		h.model = limit.NewModel(func() time.Time { return h.now })
		h.set(rt, epoch)
		rt.Repeat(map[string]func(*rapid.T){"step": h.step, "expire": h.expire})
	})
}
