//go:build integration

package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/settle"
)

// onItsWay is the call of a decision as it lies on a connection whose process
// has died: send has Redis come to it.
func onItsWay(t *testing.T, s *Store, note limit.Note, counters []limit.Counter) (send func()) {
	t.Helper()
	a, b := &asking{note: note}, new(batch)
	a.layOut(s, counters, note.At)
	b.add(a.parts[0])
	b.lay(s)
	b.stamp(s, runID(t, s))
	cmd := b.command(s)
	return func() {
		t.Helper()
		if err := s.client.Process(context.Background(), cmd); err != nil {
			t.Fatal(err)
		}
	}
}

// A gateway dies with its charge on the way. Whichever Redis comes to first, the
// charge or the next start, which may come more than once: nothing is charged in
// the end, and nothing given back that was not.
func TestLateChargesComeToNothing(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	s := newStore(t, newClient(t, addr), Options{KeyPrefix: prefix})
	counters := []limit.Counter{withCost(longCounter(limit.FixedWindow, 100), 5), withCost(longCounter(limit.RenewingQuota, 100), 5), withCost(gcra(100, 100), 5)}
	if _, err := s.Decide(t.Context(), counters); err != nil { // the script is known
		t.Fatal(err)
	}
	before := remaining(t, s, counters[:2])
	for order, starts := range []int{0, 1, 2} { // before the charge; two after it
		note := noteOf(s, uint64(order+1))
		charge := onItsWay(t, s, note, counters)
		start := func() {
			t.Helper()
			if _, err := s.TakeBack(t.Context(), note, back(note, counters...)); err != nil {
				t.Fatal(err)
			}
		}
		for range starts {
			start()
		}
		charge()
		for range 2 {
			start()
		}
		if left := remaining(t, s, counters[:2]); !slices.Equal(left, before) {
			t.Errorf("%d starts before the charge: %v left, want %v", starts, left, before)
		}
	}
	totals, err := ReadTotals(t.Context(), s.client, prefix, []string{counters[1].Key + ":" + counters[1].Calendar.At(s.Clock()).Name()})
	if err != nil || totals[0].Consumed != 10 || totals[0].Refunded != 5 { // the first, and the one that Redis came to
		t.Errorf("%+v, %v", totals, err)
	}
}

// Redis forgets all, and what is known of the quotas is brought back, between a
// gateway's death and its next start: what it charged stands, for nobody knows
// whether it is among what came back.
func TestNothingIsGivenBackThatRedisHasForgotten(t *testing.T) {
	t.Parallel()
	client := newClient(t, servertest.StartRedis(t).Addr())
	dead, other := newStore(t, client, Options{}), newStore(t, client, Options{})
	c, note := withCost(quota(100), 5), noteOf(dead, 1)
	if d, open, err := dead.DecideNoted(t.Context(), []limit.Counter{c}, note); !d.Allowed || open || err != nil {
		t.Fatalf("%+v, %v, %v", d, open, err)
	}
	if _, err := other.Decide(t.Context(), []limit.Counter{withCost(quota(100), 1)}); err != nil { // and learns of it
		t.Fatal(err)
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	declareWhole(t, client, "")
	// The other's next call brings back what it has seen. A start without and after it:
	for range 2 {
		if _, err := other.TakeBack(t.Context(), note, back(note, c)); err != nil && !errors.Is(err, limit.ErrRestoring) {
			t.Fatal(err)
		}
		if d, err := other.Decide(t.Context(), []limit.Counter{withCost(quota(100), 1)}); err != nil || d.States[0].Refunded != 0 || d.States[0].Consumed < 7 {
			t.Errorf("%+v, %v", d, err)
		}
	}
}

// A gateway's next start finds Redis away: what it held waits, and is given back
// once when Redis answers again, by whichever start that is.
func TestHeldChargesWaitForRedis(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	s := newStore(t, newStoreClient(t, server.Addr()), Options{Budget: DefaultBudget})
	dir := t.TempDir()
	start := func() *settle.Settler {
		t.Helper()
		settler, err := settle.Open(settle.Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: s})
		if err != nil {
			t.Fatal(err)
		}
		return settler
	}
	killed := func(settler *settle.Settler) {
		t.Helper()
		if err := settler.Close(); err != nil {
			t.Fatal(err)
		}
	}
	settler := start()
	c := withCost(longCounter(limit.RenewingQuota, 100), 5)
	held := 0
	for range 3 {
		servertest.Eventually(t, 10*time.Second, "a charge", func() bool {
			d, _, err := settler.Decide(t.Context(), []limit.Counter{c}, 1)
			return err == nil && d.Allowed
		})
		held++
	}
	killed(settler)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		settler = start()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- settler.Run(ctx) }()
		servertest.Eventually(t, 10*time.Second, "the breaker to open", func() bool { return !s.Available() })
		cancel()
		if err := <-done; err != nil || settler.Pending() < uint64(held) {
			t.Fatalf("%v, %d pending", err, settler.Pending())
		}
		killed(settler)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 10*time.Second, "the breaker to close", s.Available)
	settler = start()
	servertest.Run(t, "settler", settler.Run)
	servertest.Eventually(t, 10*time.Second, "what was held to be given back", func() bool { return settler.Pending() == 0 })
	d, err := newStore(t, newClient(t, server.Addr()), Options{}).Decide(t.Context(), []limit.Counter{withCost(c, 0)})
	if err != nil || d.States[0].Consumed < int64(5*held) || d.States[0].Refunded != d.States[0].Consumed {
		t.Errorf("%+v, %v", d, err)
	}
}

// On a Cluster a note lies in each slot that it is about. What one slot charged
// and another denied is given back at once or by whoever takes back; whether a
// gateway died in between is all the same.
func TestNotesOfSeveralSlots(t *testing.T) {
	t.Parallel()
	cluster := servertest.StartRedisCluster(t)
	client := clusterClient(t, cluster)
	s := newStore(t, client, Options{})
	for i, algorithm := range everyAlgorithm {
		counters := spread(longCounter(algorithm, 10), 100+i)
		counters[2] = capacity(counters[2], 1)
		if _, err := s.Decide(t.Context(), counters); err != nil {
			t.Fatal(err)
		}
		note := noteOf(s, uint64(2*i+1))
		note.Of = 1<<0 | 1<<2
		want := []int64{9, 9, 0}
		check := func(when string) {
			t.Helper()
			if left := remaining(t, s, counters); !slices.Equal(left, want) {
				t.Errorf("%s, %s: %v left, want %v", algorithm, when, left, want)
			}
		}
		takeBack := func(note limit.Note) {
			t.Helper()
			if _, err := s.TakeBack(t.Context(), note, back(note, counters[0], counters[2])); err != nil {
				t.Fatal(err)
			}
		}
		d, open, err := s.DecideNoted(t.Context(), counters, note)
		if d.Allowed || open || err != nil {
			t.Fatalf("%s: %+v, %v, %v", algorithm, d, open, err)
		}
		check("denied by the third")
		takeBack(note)
		check("taken back though it was given back")

		note.Number++ // killed with the first slot charged, and the second still to be asked
		if d, _, err := s.DecideNoted(t.Context(), counters[:1], note); !d.Allowed || err != nil {
			t.Fatalf("%s: %+v, %v", algorithm, d, err)
		}
		for range 2 {
			takeBack(note)
			check("taken back from one slot of two")
		}
		late := note
		late.Of = 1
		if d, _, err := s.DecideNoted(t.Context(), counters[2:], late); d.Allowed || !errors.Is(err, limit.ErrUnavailable) {
			t.Errorf("%s: the second slot was charged late: %+v, %v", algorithm, d, err)
		}
		check("late in the other slot")
	}
	if n := notedKeys(t, client, "gw/j:1"); n != 3*len(everyAlgorithm) {
		t.Errorf("%d notes, want one in each slot of each algorithm", n)
	}
}

// What a slot without a counter of the note charged is taken back as well, where
// the decision has no answer: it did not pass.
func TestTakenBackWhereNoCounterIsToComeBack(t *testing.T) {
	t.Parallel()
	s := newStore(t, clusterClient(t, servertest.StartRedisCluster(t)), Options{})
	counters := spread(longCounter(limit.RenewingQuota, 100), 13)
	note := noteOf(s, 1)
	note.Of = 1 << 0
	if d, _, err := s.DecideNoted(t.Context(), counters, note); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	for range 2 {
		if left, err := s.TakeBack(t.Context(), note, back(note, counters...)); err != nil || len(left) > 0 {
			t.Fatalf("left %v, %v", left, err)
		}
		if left := remaining(t, s, counters); !slices.Equal(left, []int64{100, 100, 100}) {
			t.Errorf("%v left, want all", left)
		}
	}
}

// dying is a store whose process is killed with one slot still to be asked.
type dying struct {
	*Store
	unasked int // the place of its counter
}

func (d dying) DecideNoted(ctx context.Context, counters []limit.Counter, note limit.Note) (limit.Decision, bool, error) {
	return d.Store.DecideNoted(ctx, slices.Delete(slices.Clone(counters), d.unasked, d.unasked+1), note)
}

// On a Cluster each slot has an end of its own. What is broken in one leaves only
// what was charged there to the journal: a slot that was given back is not given
// back twice, and one that was never charged not at all.
func TestABrokenSlotIsTakenBackAlone(t *testing.T) {
	t.Parallel()
	client := clusterClient(t, servertest.StartRedisCluster(t))
	s := newStore(t, client, Options{})
	counters := spread(withCost(longCounter(limit.RenewingQuota, 100), 5), 7)
	if _, err := s.Decide(t.Context(), counters[:2]); err != nil { // another's, which is to stand
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(store settle.Store) *settle.Settler {
		t.Helper()
		settler, err := settle.Open(settle.Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return settler
	}
	killed := start(dying{s, 1})
	if d, _, err := killed.Decide(t.Context(), counters, 1<<0|1<<1|1<<2); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	spoiled(t, client, s, counters[2])
	for range 2 {
		settled(t, start(s))
		d, err := s.Decide(t.Context(), []limit.Counter{withCost(counters[0], 0), withCost(counters[1], 0)})
		if err != nil {
			t.Fatal(err)
		}
		if st := d.States; st[0].Consumed != 10 || st[0].Refunded != 5 || st[1].Consumed != 5 || st[1].Refunded != 0 {
			t.Errorf("%+v, want 10 and 5, 5 and 0", st)
		}
	}
}

// notedKeys counts the keys of a note on a cluster.
func notedKeys(t *testing.T, client *redis.ClusterClient, name string) int {
	t.Helper()
	found := make(chan int, 16)
	err := client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, "*").Result()
		found <- len(slices.DeleteFunc(keys, func(key string) bool { return !strings.HasSuffix(key, ":noted:"+name) }))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	close(found)
	n := 0
	for more := range found {
		n += more
	}
	return n
}
