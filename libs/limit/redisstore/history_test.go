package redisstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
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
		"local now = tonumber(redis.call('GET', '"+s.o.KeyPrefix+clockKey+"'))", 1))
}

// history is a random life of a few counters, on a store and on the model.
type history struct {
	store  *Store
	model  *limit.Model
	client redis.UniversalClient
	run    string // separates the keys of rapid's runs

	algorithms []limit.Algorithm
	most       int // decisions in a call
	steps      int
	stripped   map[string]bool
	clock      *atomic.Int64 // the store's own, µs
	now        time.Time
	floor      time.Time // the clock does not step back behind an expiry
}

func (h *history) set(t *rapid.T, now time.Time) {
	h.now = now
	h.clock.Store(now.UnixMicro())
	if err := h.client.Set(context.Background(), h.store.o.KeyPrefix+clockKey, now.UnixMicro(), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// step draws a time and decisions, and demands one answer from both. Several
// decisions travel in one call, one upon the other.
func (h *history) step(t *rapid.T) {
	jump := rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Map(rapid.Int64Range(0, 3_000_000), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }),
		rapid.Map(rapid.Int64Range(-20, 90), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
	).Draw(t, "jump")
	if next := h.now.Add(jump); !next.Before(h.floor) {
		h.set(t, next)
	}
	decisions := rapid.SliceOfN(rapid.SliceOfN(h.counter(), 1, 4), 1, h.most).Draw(t, "decisions")
	h.steps += len(decisions)
	if len(decisions) == 1 {
		got, err := h.store.Decide(t.Context(), decisions[0])
		h.compare(t, decisions[0], got, err)
		return
	}
	b := new(batch)
	asked := make([]*asking, len(decisions))
	for i, counters := range decisions {
		asked[i] = new(asking)
		asked[i].layOut(h.store, counters, h.now)
		for _, p := range asked[i].parts {
			b.add(p)
		}
	}
	if len(b.parts) > 0 {
		b.lay()
		b.text = true
		h.store.calls(nil, []*batch{b}, 1)
		b.hand(h.store)
	}
	for i, counters := range decisions {
		if !needsRedis(counters) {
			h.compare(t, counters, limit.Decision{Allowed: true, States: freeStates(counters)}, nil)
			continue
		}
		got, err := asked[i].judge(counters)
		h.compare(t, counters, got, err)
	}
}

// compare asks the model and demands what the store said.
func (h *history) compare(t *rapid.T, counters []limit.Counter, got limit.Decision, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%+v: %v", counters, err)
	}
	want, err := h.model.Decide(t.Context(), counters)
	if err != nil {
		t.Fatal(err)
	}
	if !needsRedis(counters) {
		got.Now = want.Now // not asked: a guess
	}
	if got.Allowed == want.Allowed && got.Now.Equal(want.Now) && slices.Equal(got.States, want.States) {
		return
	}
	t.Fatalf("at %s, %+v\nscript (+) differs from model (-):\n%s", h.now, counters, cmp.Diff(want, got))
}

var everyAlgorithm = []limit.Algorithm{
	limit.GCRA, limit.TokenBucket, limit.FixedWindow, limit.SlidingWindow,
	limit.RenewingQuota, limit.PrepaidQuota, limit.OverdraftQuota,
}

// historySets are each algorithm alone, and all in one.
func historySets() map[string][]limit.Algorithm {
	sets := map[string][]limit.Algorithm{"all": everyAlgorithm}
	for _, a := range everyAlgorithm {
		sets[a.String()] = []limit.Algorithm{a}
	}
	return sets
}

// calendars are those of the keys a and b.
var calendars = map[byte]period.Calendar{'a': period.Month(), 'b': mustCalendar(period.Spec{Unit: period.NameHour})}

func mustCalendar(s period.Spec) period.Calendar {
	c, err := period.New(s)
	if err != nil {
		panic(err)
	}
	return c
}

// counter draws from few keys, so that they meet, and from numbers that divide
// badly or are as large as they may be.
func (h *history) counter() *rapid.Generator[limit.Counter] {
	return rapid.Custom(func(t *rapid.T) limit.Counter {
		c := limit.Counter{
			Algorithm: rapid.SampledFrom(h.algorithms).Draw(t, "algorithm"),
			Limit:     rapid.SampledFrom([]int64{0, 1, 2, 3, 7, 10, 60, 97, 1_000_003}).Draw(t, "limit"),
			Cost:      rapid.SampledFrom([]int64{0, 1, 1, 1, 2, 3, 5, 50, -1, -2, -7, -100, 1 << 20, limit.MaxInteger}).Draw(t, "cost"),
			Unlimited: rapid.IntRange(0, 15).Draw(t, "unlimited") == 0,
			Shadow:    rapid.IntRange(0, 9).Draw(t, "shadow") == 0,
			Force:     rapid.IntRange(0, 9).Draw(t, "force") == 0,
		}
		if c.Force {
			c.Cost = min(c.Cost, 1000) // times that go on adding up
		}
		if (c.Force || c.Cost < 0) && rapid.Bool().Draw(t, "dated") {
			c.At = h.now.Add(-time.Duration(rapid.SampledFrom([]int64{0, 1, 5, 10, 50, 80, 3600, 7200, 86400}).Draw(t, "at")) * time.Second)
		}
		id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
		c.Key = h.run + c.Algorithm.String() + id
		// What is part of identity: a key has one.
		c.Window = map[string]time.Duration{"a": 7 * time.Second, "b": time.Minute}[id]
		if c.Algorithm.Quota() {
			h.quota(t, &c, id[0])
			return c
		}
		switch {
		case c.Algorithm.Bucket():
			c.Burst = min(c.Limit, 1)
			if c.Limit > 0 {
				c.Burst = rapid.SampledFrom([]int64{1, 2, 10, 13, c.Limit, 1 << 20}).Draw(t, "burst")
			}
		case rapid.IntRange(0, 9).Draw(t, "large") == 0:
			c.Limit = limit.MaxInteger
		}
		return c
	})
}

func (h *history) quota(t *rapid.T, c *limit.Counter, id byte) {
	c.Window, c.Calendar = 0, calendars[id]
	c.Prepaid = c.Algorithm == limit.OverdraftQuota && id == 'b'
	if c.Prepaid {
		c.Key += "prepaid"
	}
	if c.Wallet() {
		c.Granted = rapid.SampledFrom([]int64{0, 10, 100, 1_000_000}).Draw(t, "granted")
		return
	}
	c.Rollover = rapid.SampledFrom([]int64{0, 0, 1, 5, 1000}).Draw(t, "rollover")
	if rapid.Bool().Draw(t, "since") {
		c.Since = epoch.Add(-time.Duration(rapid.Int64Range(-3, 3).Draw(t, "hours")) * time.Hour)
	}
}

// keys returns the run's keys with their expiry, 0 where there is none.
func (h *history) keys(t *rapid.T) map[string]time.Duration {
	ctx := context.Background()
	keys, err := h.client.Keys(ctx, h.store.o.KeyPrefix+h.run+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	ends := make(map[string]time.Duration, len(keys))
	for _, key := range keys {
		end, err := h.client.PExpireTime(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		ends[key] = max(0, end)
	}
	return ends
}

// expire deletes keys whose end has passed by the test's clock, as Redis would.
func (h *history) expire(t *rapid.T) {
	for key, end := range h.keys(t) {
		if wallet := strings.Contains(key, "PREPAID") || strings.Contains(key, "prepaid"); wallet != (end == 0) && !h.stripped[key] {
			t.Fatalf("%s expires at %s", key, end)
		}
		if end > 0 && end <= time.Duration(h.now.UnixMilli())*time.Millisecond {
			if err := h.client.Del(context.Background(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.floor = h.now
}

// strip takes the expiry from a key.
func (h *history) strip(t *rapid.T) {
	for _, key := range slices.Sorted(maps.Keys(h.keys(t))) {
		if rapid.IntRange(0, 3).Draw(t, "strip") > 0 {
			continue
		}
		if h.stripped == nil {
			h.stripped = map[string]bool{}
		}
		h.stripped[key] = true
		if err := h.client.Persist(context.Background(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// lives is where histories are lived: a store whose own clock is Redis's, since
// where it guesses wrong the groups of a decision may be asked in another order.
type lives struct {
	store  *Store
	client redis.UniversalClient
	now    atomic.Int64 // µs
	runs   int
}

func newLives(t testing.TB, client redis.UniversalClient, prefix string) *lives {
	t.Helper()
	l := &lives{client: client}
	l.now.Store(epoch.UnixMicro())
	l.store = newStore(t, client, Options{KeyPrefix: prefix, Now: func() time.Time { return time.UnixMicro(l.now.Load()) }})
	useClock(t, l.store)
	return l
}

// live lives one more, and returns how many decisions it had.
func (l *lives) live(t *rapid.T, most int, algorithms ...limit.Algorithm) int {
	l.runs++
	h := &history{
		store: l.store, clock: &l.now, client: l.client, run: "r" + strconv.Itoa(l.runs) + "{x}",
		algorithms: algorithms, most: most,
	}
	h.model = limit.NewModel(func() time.Time { return h.now })
	h.set(t, epoch)
	t.Repeat(map[string]func(*rapid.T){"step": h.step, "expire": h.expire, "strip": h.strip})
	return h.steps
}

func checkHistories(t *testing.T, client redis.UniversalClient, prefix string, algorithms ...limit.Algorithm) {
	t.Helper()
	l := newLives(t, client, prefix)
	rapid.Check(t, func(t *rapid.T) { l.live(t, 6, algorithms...) })
}
