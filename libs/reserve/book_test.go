package reserve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/period"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

const (
	acme   = "acme"
	prefix = "p:"
)

var ofAcme = Caller{Tenant: acme}

// bench is some books on one server, as several gateways have them.
type bench struct {
	t      testing.TB
	server *miniredis.Miniredis // nil on a real one
	client redis.UniversalClient
	store  *redisstore.Store
	books  []*Book

	mu   sync.Mutex
	now  time.Time
	told map[string]News // by id
	news int
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, server: miniredis.RunT(t), now: noon}
	b.server.SetTime(noon)
	client := redis.NewUniversalClient(configured(&redis.UniversalOptions{Addrs: []string{b.server.Addr()}}))
	t.Cleanup(func() { _ = client.Close() })
	return b.on(client, 2)
}

// patient is for tests that are not about time-outs.
const patient = 10 * time.Second

func configured(o *redis.UniversalOptions) *redis.UniversalOptions {
	redisstore.Configure(o, patient)
	return o
}

// on makes books on a client.
func (b *bench) on(client redis.UniversalClient, books int) *bench {
	b.t.Helper()
	b.client, b.told = client, map[string]News{}
	b.declareWhole()
	for range books {
		o := redisstore.Options{KeyPrefix: prefix, Budget: patient}
		if b.server != nil {
			o.Now = b.clock
		}
		store, err := redisstore.New(client, o)
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = store.Close() })
		book, err := New(Options{Store: store, Client: client, KeyPrefix: prefix, Tell: b.tell})
		if err != nil {
			b.t.Fatal(err)
		}
		b.store, b.books = store, append(b.books, book)
	}
	return b
}

func (b *bench) declareWhole() {
	b.t.Helper()
	restoretest.Whole(b.t, b.client, prefix)
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) wait(d time.Duration) {
	b.mu.Lock()
	b.now = b.now.Add(d)
	b.server.SetTime(b.now)
	b.mu.Unlock()
	b.server.FastForward(d)
}

func (b *bench) tell(n News) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news++
	if before, ok := b.told[n.ID]; ok && (before.At != n.At || sum(before.Amounts) != sum(n.Amounts) || before.Step != n.Step) {
		b.t.Errorf("%s was told otherwise: %+v, %+v", n.ID, before, n)
	}
	b.told[n.ID] = n
}

func sum(all []Amount) (units int64) {
	for _, a := range all {
		units += a.Units
	}
	return units
}

// tolds is how many units of a counter's metric all that was told comes to, each
// step once.
func (b *bench) tolds(metric string) (units int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.told {
		for _, a := range n.Amounts {
			if a.Metric == metric {
				units += a.Units
			}
		}
	}
	return units
}

func calendar(t testing.TB, spec period.Spec) period.Calendar {
	t.Helper()
	c, err := period.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bench) quota(n int64) limit.Counter {
	return limit.Counter{Key: "{t:acme}:t::tokens:quota", Algorithm: limit.RenewingQuota, Limit: n, Calendar: calendar(b.t, period.Spec{Unit: "month"})}
}

func wallet(granted int64) limit.Counter {
	return limit.Counter{Key: "{t:acme}:t::money:quota", Algorithm: limit.PrepaidQuota, Prepaid: true, Granted: granted}
}

func rate(n int64) limit.Counter {
	return limit.Counter{Key: "{t:acme}:t::calls:fixed:3600", Algorithm: limit.FixedWindow, Limit: n, Window: time.Hour}
}

func bucket(n int64) limit.Counter {
	return limit.Counter{Key: "{t:acme}:t::burst:gcra:3600", Algorithm: limit.GCRA, Limit: 1, Burst: n, Window: time.Hour}
}

// wish is a reservation of some counters, all at its cost.
type wish struct {
	id       string
	cost     int64
	ttl      time.Duration
	counters []limit.Counter
	own      map[int]int64 // by counter: its rule's own cost
	shadow   map[int]bool
	request  string
}

func (w wish) record() (Record, []limit.Counter) {
	r := Record{
		ID: w.id, Tenant: acme, Service: "llm", Endpoint: "/v1/chat", Method: "POST", Cost: w.cost, MaxCost: 1_000_000, Request: w.request,
	}
	counters := make([]limit.Counter, len(w.counters))
	for i, c := range w.counters {
		c.Cost, c.Shadow = w.cost, w.shadow[i]
		charge := Charge{Rule: fmt.Sprintf("rule-%d", i), Metric: fmt.Sprintf("m%d", i), Shadow: w.shadow[i]}
		if own, ok := w.own[i]; ok {
			c.Cost, charge.Own = own, true
		}
		counters[i], r.Charges = c, append(r.Charges, charge)
	}
	return r, counters
}

// reserve tells like a gateway: the amounts that were charged.
func (b *bench) reserve(book int, w wish) (Made, error) {
	r, counters := w.record()
	if w.ttl == 0 {
		w.ttl = time.Minute
	}
	return b.books[book].Reserve(context.Background(), r, w.ttl, counters, func(m Made) {
		news := News{Reservation: m.Reservation, Step: Reserved, ID: ChargeID(m.Record), At: m.ReservedAt()}
		for i := range m.Charges {
			if c := &m.Charges[i]; m.Decision.States[i].Allowed && c.Cost != 0 {
				news.Amounts = append(news.Amounts, Amount{Charge: c, Units: c.Cost, State: &m.Decision.States[i]})
			}
		}
		b.tell(news)
	})
}

func (b *bench) mustReserve(w wish) Made {
	b.t.Helper()
	m, err := b.reserve(0, w)
	if err != nil || !m.Decision.Allowed {
		b.t.Fatalf("reserve %+v: %+v, %v", w, m.Decision, err)
	}
	return m
}

// used is what counters have used.
func (b *bench) used(counters ...limit.Counter) []int64 {
	b.t.Helper()
	all := make([]int64, len(counters))
	for i, c := range counters {
		c.Cost, c.Shadow = 0, false
		d, err := b.store.Decide(b.t.Context(), []limit.Counter{c})
		if err != nil {
			b.t.Fatal(err)
		}
		if st := d.States[0]; c.Algorithm.Quota() {
			all[i] = st.Consumed - st.Refunded
		} else {
			all[i] = c.Capacity() - st.Remaining
		}
	}
	return all
}

func (b *bench) sweep(book int) int {
	b.t.Helper()
	n, _, err := b.books[book].Sweep(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// due is how many attempts the index holds.
func (b *bench) due() (n int64) {
	b.t.Helper()
	for shard := range dueShards {
		size, err := b.client.ZCard(b.t.Context(), prefix+dueKey(shard)).Result()
		if err != nil {
			b.t.Fatal(err)
		}
		n += size
	}
	return n
}

var errDied = errors.New("it dies here")

// dieAt has a book end at a point.
func (b *bench) dieAt(book int, point string) {
	b.books[book].die = func(at string) error {
		if at == point {
			return errDied
		}
		return nil
	}
}

func (b *bench) revive(book int) { b.books[book].die = func(string) error { return nil } }
