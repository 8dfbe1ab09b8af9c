package redisstore

import (
	"context"
	"fmt"
	"reflect"
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
	script "github.com/sluice-platform/sluice/schemas/redis"
)

// clockKey holds the time, µs, of stores on a clock of the test's own.
const clockKey = "clock"

// generous is a time-out for tests that are not about time-outs.
const generous = 10 * time.Second

// start2050 lies in the future, so that no key of a test expires by the server's
// own clock while the test moves its own.
var start2050 = time.Date(2050, 1, 31, 23, 59, 50, 0, time.UTC)

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
	// sides are lives side by side: keys of their own, one clock, and one call.
	// most is how many decisions each has in a call, at most.
	sides, most int

	salt     uint64
	lived    []moment
	steps    int
	stripped map[string]bool
	clock    *atomic.Int64 // the store's own, µs
	now      time.Time
	floor    time.Time // the clock does not step back behind an expiry
}

func (h *history) set(t *rapid.T, now time.Time) {
	h.now = now
	h.clock.Store(now.UnixMicro())
	if err := h.client.Set(context.Background(), h.store.o.KeyPrefix+clockKey, now.UnixMicro(), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// move draws a time.
func (h *history) move(t *rapid.T) {
	next := h.now.Add(newDice(h.salt, rapid.Uint64().Draw(t, "time")).jump())
	if !next.Before(h.floor) {
		h.set(t, next)
	}
}

// one decision, as a request makes it.
func (h *history) one(t *rapid.T) {
	h.move(t)
	counters := h.decision(0, h.salt, rapid.Uint64().Draw(t, "decision"))
	got, err := h.store.Decide(t.Context(), counters)
	h.compare(t, counters, got, err)
}

// many decisions travel in one call, one upon the other.
func (h *history) many(t *rapid.T) {
	h.move(t)
	salt := h.salt ^ rapid.Uint64().Draw(t, "salt")
	var decisions [][]limit.Counter
	for side := range h.sides {
		for _, seed := range seeds(h.most).Draw(t, "decisions") {
			decisions = append(decisions, h.decision(side, salt, seed))
		}
	}
	b := new(batch)
	asked := make([]asking, len(decisions))
	for i, counters := range decisions {
		asked[i].layOut(h.store, counters, h.now)
		for _, p := range asked[i].parts {
			b.add(p)
		}
	}
	if len(b.parts) > 0 {
		b.lay(h.store)
		h.store.servers.only.calls([]*batch{b})
		b.hand(h.store)
		for _, p := range b.parts {
			<-p.done
		}
	}
	for i, counters := range decisions {
		if !needsRedis(counters) {
			h.compare(t, counters, limit.Decision{Allowed: true, States: freeStates(counters)}, nil)
			continue
		}
		got, err := asked[i].judge(counters)
		h.compare(t, counters, got, err)
		asked[i].reset(h.store)
	}
}

// compare asks the model and demands what the store said.
func (h *history) compare(t *rapid.T, counters []limit.Counter, got limit.Decision, err error) {
	t.Helper()
	h.lived, h.steps = append(h.lived, moment{now: h.now, counters: counters}), h.steps+1
	if err != nil {
		t.Log(h.story(), err)
		t.Fatal("the script does not answer")
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
	t.Logf("%s\nscript (+), model (-):\n%s", h.story(), cmp.Diff(want, got))
	t.Fatal("script and model differ") // rapid looks for the shortest history that ends in these words
}

// moment is a decision and when it was, or what its key lost then.
type moment struct {
	now      time.Time
	counters []limit.Counter
	lost     string
}

// story tells what the keys of the last decision have lived through.
func (h *history) story() string {
	var b strings.Builder
	last := h.lived[len(h.lived)-1].counters
	for _, m := range h.lived {
		if !slices.ContainsFunc(m.counters, func(c limit.Counter) bool {
			return slices.ContainsFunc(last, func(l limit.Counter) bool { return strings.HasPrefix(c.Key, l.Key) })
		}) {
			continue
		}
		fmt.Fprintf(&b, "\n%s", m.now.Format("02 15:04:05.000000"))
		for _, c := range m.counters {
			fmt.Fprintf(&b, " · %s%s", tell(&c), m.lost)
		}
	}
	return b.String()
}

// tell names what a counter has that is not the zero value.
func tell(c *limit.Counter) string {
	text := c.Key
	for v, i := reflect.ValueOf(*c), 0; i < v.NumField(); i++ {
		if f := v.Type().Field(i); f.Name != "Key" && f.Name != "Algorithm" && !v.Field(i).IsZero() {
			text += fmt.Sprintf(" %s=%v", f.Name, v.Field(i))
		}
	}
	return text
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
	l.now.Store(start2050.UnixMicro())
	l.store = newStore(t, client, Options{KeyPrefix: prefix, Now: func() time.Time { return time.UnixMicro(l.now.Load()) }})
	useClock(t, l.store)
	for _, text := range []string{l.store.text, expiryScript} {
		if err := client.ScriptLoad(t.Context(), text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// live lives one more, and returns how many decisions it had.
func (l *lives) live(t *rapid.T, sides, most int, algorithms ...limit.Algorithm) int {
	l.runs++
	h := &history{
		store: l.store, clock: &l.now, client: l.client, run: "r" + strconv.Itoa(l.runs) + "{x}",
		algorithms: algorithms, sides: sides, most: most,
		salt: rapid.Uint64().Draw(t, "salt"), stripped: map[string]bool{},
	}
	h.model = limit.NewModel(func() time.Time { return h.now })
	h.set(t, start2050)
	t.Repeat(map[string]func(*rapid.T){"one": h.one, "many": h.many, "expire": h.expire, "strip": h.strip})
	return h.steps
}

func checkHistories(t *testing.T, client redis.UniversalClient, prefix string, algorithms ...limit.Algorithm) {
	t.Helper()
	l := newLives(t, client, prefix)
	rapid.Check(t, func(t *rapid.T) { l.live(t, 2, 6, algorithms...) })
}
