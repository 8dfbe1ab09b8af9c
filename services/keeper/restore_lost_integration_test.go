//go:build integration

package keeper

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// deafLoss is a loss with a gateway that its Redis hears and that hears nothing,
// or is not heard, for a while.
type deafLoss struct {
	*loss
	a, b  *gateway
	front *toxiproxy.Proxy // before a
}

func newDeafLoss(t *testing.T) *deafLoss {
	t.Helper()
	l := &deafLoss{loss: newLoss(t)}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	l.front = toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", l.server.Addr())
	if err := l.front.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.front.Stop)
	direct := l.client
	l.client = func() redis.UniversalClient { return connected(t, newRedisClient(t, l.front.Listen)) }
	l.a = l.gateway("a", false)
	l.client = direct
	l.b = l.gateway("b", false)
	return l
}

// connected dials as many connections as calls are to be lost at once: while
// nothing is heard of Redis none can be.
func connected(t *testing.T, client redis.UniversalClient) redis.UniversalClient {
	t.Helper()
	var dialled sync.WaitGroup
	for range 12 {
		dialled.Go(func() { _ = client.BLPop(t.Context(), time.Second, "nothing").Err() })
	}
	dialled.Wait()
	return client
}

// drop has nothing come through in a direction until the returned function is
// called.
func (l *deafLoss) drop(direction string) (heal func()) {
	l.t.Helper()
	toxic := `{"name": "` + direction + `", "type": "timeout", "stream": "` + direction + `", "attributes": {"timeout": 0}}`
	if _, err := l.front.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		if err := l.front.Toxics.RemoveToxic(l.t.Context(), direction); err != nil {
			l.t.Fatal(err)
		}
	}
}

// costing is a tenant's counter with a cost.
func costing(tenant int, cost int64) []limit.Counter {
	c := monthly(tenant, 1000)
	c.Cost = cost
	return []limit.Counter{c}
}

func (l *deafLoss) net(tenant int) int64 {
	l.t.Helper()
	all, err := redisstore.ReadTotals(l.t.Context(), l.redis, l.prefix, []string{counterNow(tenant)})
	if err != nil {
		l.t.Fatal(err)
	}
	return all[0].Used()
}

// A gateway's calls are lost together with the Redis that charged them. Where
// another gateway saw what they charged it comes back with the rest, and is taken
// out again; where nobody did it stays lost; what is sent once more is charged
// once. The limit's units are those that somebody was admitted by.
func TestLostCallsAreTakenOutOfWhatComesBack(t *testing.T) {
	t.Parallel()
	const (
		seen, unseen, unheard, noted, settled, refunded = 1, 2, 3, 4, 5, 6
		tenants                                         = 6
	)
	l := newDeafLoss(t)
	keepers := []*Service{l.newKeeper(100 * time.Millisecond), l.newKeeper(100 * time.Millisecond)}
	for _, s := range keepers {
		l.start(s)
	}
	l.awaitAcquainted()
	for tenant := 1; tenant <= tenants; tenant++ {
		l.a.charge(costing(tenant, 5)[0])
		l.b.charge(costing(tenant, 5)[0])
	}
	l.awaitRest()
	note := limit.Note{Name: "slot", Number: 7, Of: 1, At: l.a.Clock()}
	calls := map[int]func() error{
		seen:   func() error { return l.lost(costing(seen, 3)) },
		unseen: func() error { return l.lost(costing(unseen, 3)) },
		noted: func() error {
			_, open, err := l.a.DecideNoted(t.Context(), costing(noted, 3), note)
			if err != nil && !open {
				err = errors.New("the note is not open")
			}
			return err
		},
		settled:  func() error { return l.settle("s", settled, 3) },
		refunded: func() error { return l.settle("r", refunded, -3) },
	}
	heal := l.drop("downstream")
	done := make(chan error, len(calls)+1)
	for _, call := range calls {
		go func() { done <- call() }()
	}
	want := map[int]int64{seen: 13, unseen: 13, noted: 13, settled: 13, refunded: 7}
	servertest.Eventually(t, patience, "redis to have charged what was sent", func() bool {
		for tenant, n := range want {
			if l.net(tenant) != n {
				return false
			}
		}
		return true
	})
	unsent := l.drop("upstream")
	go func() { done <- l.lost(costing(unheard, 3)) }()
	for _, tenant := range []int{seen, unheard, noted, settled, refunded} {
		l.b.charge(costing(tenant, 2)[0]) // it sees what a's call left
	}
	for range len(calls) + 1 {
		if err := <-done; !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v, want ErrUnavailable", err)
		}
	}
	restores := func() (n float64) {
		for _, s := range keepers {
			n += testutil.ToFloat64(s.metrics.restores)
		}
		return n
	}
	before := restores()
	l.flush()
	unsent()
	heal()
	servertest.Eventually(t, patience, "the restore", func() bool { return restores() > before })
	want = map[int]int64{seen: 12, unseen: 10, unheard: 12, noted: 12, settled: 12, refunded: 12}
	l.equal("after the restore", want)
	// What is not done is done once more, and once only.
	for range 2 {
		servertest.Eventually(t, patience, "the settlements", func() bool {
			_, err := l.a.TakeBack(t.Context(), note, costing(noted, -3))
			return errors.Join(err, l.settle("s", settled, 3), l.settle("r", refunded, -3)) == nil
		})
	}
	want[settled], want[refunded] = 15, 9
	l.equal("after what was sent once more", want)
	returned := 0.0
	for _, s := range keepers {
		returned = max(returned, testutil.ToFloat64(s.metrics.lostUnits.WithLabelValues("returned")))
		if n := testutil.ToFloat64(s.metrics.lostUnits.WithLabelValues("unknown")); n != 0 {
			t.Errorf("%v units are unknown", n)
		}
	}
	if returned == 0 {
		t.Error("no keeper has counted what it took out")
	}
}

// lost is a decision that is not answered.
func (l *deafLoss) lost(counters []limit.Counter) error {
	_, err := l.a.Decide(l.t.Context(), counters)
	return err
}

func (l *deafLoss) settle(id string, tenant int, cost int64) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	_, err := l.a.Settle(ctx, id, 1, costing(tenant, cost))
	return err
}

func (l *deafLoss) equal(when string, want map[int]int64) {
	l.t.Helper()
	for tenant, n := range want {
		if used := l.net(tenant); used != n {
			l.t.Errorf("%s tenant %d has used %d, want %d", when, tenant, used, n)
		}
	}
}

// awaitRest waits until whatever a sends was sent after what was charged so far,
// also by a's guess of Redis's clock.
func (l *deafLoss) awaitRest() {
	l.t.Helper()
	charged, err := l.redis.Time(l.t.Context()).Result()
	if err != nil {
		l.t.Fatal(err)
	}
	servertest.Eventually(l.t, patience, "time to pass", func() bool { return l.a.Clock().Sub(charged) > 300*time.Millisecond })
}

// awaitAcquainted waits until the gateways have known each other for so long that
// nobody else can have charged what they charge from now on.
func (l *deafLoss) awaitAcquainted() {
	l.t.Helper()
	servertest.Eventually(l.t, patience, "the gateways to know each other", func() bool { return l.a.Whole() && l.b.Whole() })
	met := time.Now()
	servertest.Eventually(l.t, patience, "time to pass", func() bool { return time.Since(met) > 4*time.Second })
}
