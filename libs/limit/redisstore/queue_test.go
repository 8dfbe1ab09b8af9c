package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// takes queues parts named owner and number, and returns those that each of
// some calls with room for n takes. Those in left are no longer waited for.
func takes(whole bool, n int, left string, names ...string) (calls []string) {
	q := newQueue()
	parts := map[*part]string{}
	for _, name := range names {
		p := &part{owner: int(name[0])}
		parts[p] = name
		q.add(p)
	}
	for q.length > 0 {
		var took []string
		q.take(whole, func(p *part) offer {
			switch {
			case strings.Contains(left, parts[p]):
				return gone
			case len(took) == n:
				return refused
			}
			took = append(took, parts[p])
			return placed
		})
		calls = append(calls, strings.Join(took, " "))
	}
	return calls
}

func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		whole bool
		n     int
		left  string
		names string
		want  string
	}{
		{false, 9, "", "a1 a2 b1 a3 c1", "a1 b1 c1 a2 a3"},
		{false, 2, "", "a1 a2 a3 a4 b1", "a1 b1|a2 a3|a4"},
		{false, 2, "", "a1 a2 a3 b1 c1 b2", "a1 b1|c1 a2|b2 a3"},
		{false, 2, "a1 a2 b1", "a1 a2 a3 b1 b2 a4", "a3 b2|a4"},
		{false, 2, "a1 b1", "a1 b1", ""},
		{true, 3, "", "a1 a2 b1 a3 b2", "a1 a2 a3|b1 b2"},
		{true, 2, "", "a1 a2 a3 b1", "a1 a2|b1 a3"},
	} {
		if got := strings.Join(takes(c.whole, c.n, c.left, strings.Fields(c.names)...), "|"); got != c.want {
			t.Errorf("%s, %d a call: %s, want %s", c.names, c.n, got, c.want)
		}
	}
}

// Whatever comes and goes, an owner's parts keep their order and none is lost.
func TestQueueKeepsOrder(t *testing.T) {
	t.Parallel()
	q := newQueue()
	var next, seen [7]int64
	added := 0
	for round := range 2000 {
		for i := range round % 13 {
			owner := (round*i + i) % len(next)
			next[owner]++
			q.add(&part{owner: owner, now: next[owner]})
			added++
		}
		room := round % 11
		q.take(round%2 == 0, func(p *part) offer {
			if room--; room < 0 {
				return refused
			}
			if seen[p.owner]++; seen[p.owner] != p.now {
				t.Fatalf("owner %d: %d follows %d", p.owner, p.now, seen[p.owner]-1)
			}
			added--
			return placed
		})
		if q.length != added {
			t.Fatalf("%d wait, want %d", q.length, added)
		}
	}
}

// A tenant that has more waiting than fits in a call waits behind itself: who
// comes after all that travels in the very next call, and a queue that is full
// of one tenant's has room for another's.
func TestAFloodWaitsBehindItself(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	g := newGate(srv)
	s := newStore(t, newClient(t, srv.Addr()), Options{Lanes: 1, Queue: 400})
	a, b := fixed(1000), fixed(1000)
	b.Key = strings.Replace(b.Key, "{t:a}", "{t:b}", 1)
	if _, err := s.Decide(t.Context(), []limit.Counter{a}); err != nil {
		t.Fatal(err)
	}
	before := g.calls.Load()
	open := g.shut()
	defer open()
	var wg sync.WaitGroup
	decide := func(c limit.Counter) {
		wg.Go(func() {
			if _, err := s.Decide(t.Context(), []limit.Counter{c}); err != nil {
				t.Error(err)
			}
		})
	}
	decide(a)
	servertest.Eventually(t, 60*time.Second, "a call to be under way", func() bool { return g.calls.Load() > before })
	for range 200 {
		decide(a)
	}
	servertest.Eventually(t, 60*time.Second, "a's to wait", func() bool { return s.queued() == 200 })
	if _, err := s.Decide(t.Context(), []limit.Counter{a}); !errors.Is(err, errQueueFull) {
		t.Errorf("beyond half of the queue: %v", err)
	}
	decide(b)
	servertest.Eventually(t, 60*time.Second, "b's to wait", func() bool { return s.queued() == 201 })
	open()
	wg.Wait()
	calls := g.keys()[before:]
	if i := slices.IndexFunc(calls, func(keys string) bool { return strings.Contains(keys, b.Key) }); i != 1 {
		t.Errorf("b travels in call %d of %d, want the one after that under way", i, len(calls))
	}
	if n := fmt.Sprint(calls); strings.Count(n, a.Key) != len(calls) {
		t.Errorf("a is held up: %s", n)
	}
}
