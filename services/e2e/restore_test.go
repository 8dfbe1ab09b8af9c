//go:build integration

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// sold stands on a Redis that may lose everything and a Kafka that one gateway
// can be cut off from, each behind a proxy.
type sold struct {
	*stack
	redis  *devserver.Redis
	front  *toxiproxy.Proxy // to the Redis that takes charges
	cut    *toxiproxy.Proxy // between gw-2 and Kafka
	keeper *process
}

func newSold(t *testing.T) *sold {
	t.Helper()
	s := &sold{stack: newStack(t), redis: servertest.StartRedisWith(t, devserver.RedisOptions{AppendOnly: true})}
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := func(name, to string) *toxiproxy.Proxy {
		p := toxiproxy.NewProxy(proxies, name, "127.0.0.1:0", to)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		return p
	}
	s.front = proxy("redis", s.redis.Addr())
	s.redisAddr, s.redisPrefix = s.front.Listen, "e2e:"
	// A second listener of the broker that tells its clients the proxy's address.
	inner := freeAddr(t)
	s.cut = proxy("kafka", inner)
	s.brokers, s.topicPrefix = startKafkaWithTwoDoors(t, inner, s.cut.Listen), "e2e."
	s.postgres = servertest.Postgres(t)
	s.search = servertest.SearchServer{URL: "http://" + freeAddr(t), Flavor: "opensearch", IndexPrefix: "e2e-"} // not asked
	return s
}

func startKafkaWithTwoDoors(t *testing.T, inner, outer string) (brokers []string) {
	t.Helper()
	main, controller := freeAddr(t), freeAddr(t)
	_, port, err := net.SplitHostPort(main)
	if err != nil {
		t.Fatal(err)
	}
	o := devserver.KafkaOptions{Properties: map[string]string{
		"listeners":                      "PLAINTEXT://" + main + ",CUT://" + inner + ",CONTROLLER://" + controller,
		"advertised.listeners":           "PLAINTEXT://" + main + ",CUT://" + outer,
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.quorum.voters":       "1@" + controller,
		"inter.broker.listener.name":     "PLAINTEXT",
	}}
	if _, err := fmt.Sscan(port, &o.Port); err != nil {
		t.Fatal(err)
	}
	return servertest.StartKafkaWith(t, o).Brokers()
}

// buyers send requests of some tenants to every gateway and count what passes.
type buyers struct {
	s       *sold
	stop    chan struct{}
	workers sync.WaitGroup
	passed  [4]atomic.Int64 // by tenant
	refused [4]atomic.Int64
	away    atomic.Int64 // 503
	odd     atomic.Int64
}

func (s *sold) buy() *buyers {
	b := &buyers{s: s, stop: make(chan struct{})}
	for w := range 4 {
		b.workers.Go(func() {
			for i := w; ; i++ {
				select {
				case <-b.stop:
					return
				default:
				}
				pause(2 * time.Millisecond)
				tenant := i % len(b.passed)
				switch got := b.s.gates[(i/2)%2].hit("/svc/sold", as(fmt.Sprintf("tenant-%d", tenant))); got.code {
				case http.StatusOK:
					b.passed[tenant].Add(1)
				case http.StatusTooManyRequests:
					b.refused[tenant].Add(1)
				case http.StatusServiceUnavailable:
					b.away.Add(1)
				default:
					b.odd.Add(1)
				}
			}
		})
	}
	return b
}

// closed is how many requests passed of the tenants whose rules are closed.
func (b *buyers) closed() int64 { return b.passed[0].Load() + b.passed[3].Load() }

// more waits until so many more of those have passed.
func (b *buyers) more(t *testing.T, n int64) {
	t.Helper()
	goal := b.closed() + n
	servertest.Eventually(t, time.Minute, "requests to pass again", func() bool { return b.closed() >= goal })
}

func (b *buyers) finish() {
	close(b.stop)
	b.workers.Wait()
}

// Redis is emptied, killed and restarted, and replaced by a replica, under load,
// with one gateway cut off from Kafka and events that come twice: no counter is
// below the units that were admitted, also by rules that are open or local while
// units are not counted, and all counters together are above them by at most the
// calls in flight at the losses; nobody was admitted beyond a limit that is closed.
func TestQuotasSurviveRedis(t *testing.T) {
	t.Parallel()
	const tight = 1500 // of tenant-0; the others have plenty
	s := newSold(t)
	s.process("rest", "controlplane,relay", nil).start().awaitReady()
	s.keeper = s.process("keeper", "keeper", nil).start()
	s.service()
	s.mustREST("POST", "/v1/rules", nil, quota("sold", "/svc/sold", 1_000_000), http.StatusCreated)
	few := quota("few", "/svc/sold", tight)
	few.Subject.Value, few.Metric = "tenant-0", "sold"
	s.mustREST("POST", "/v1/rules", nil, few, http.StatusCreated)
	// What these let pass while units are not counted is charged afterwards.
	for tenant, policy := range map[string]string{"tenant-1": rules.StoreLossOpen, "tenant-2": rules.StoreLossLocal} {
		lenient := quota(policy, "/svc/sold", 1_000_000)
		lenient.Subject.Value, lenient.Metric, lenient.OnStoreLoss = tenant, "sold", policy
		s.mustREST("POST", "/v1/rules", nil, lenient, http.StatusCreated)
	}
	s.gateway("gw-1").start()
	s.gatewayWith("gw-2", []string{s.cut.Listen}).start()
	for _, g := range s.gates {
		g.awaitReady()
		s.awaitEqual(g)
	}
	s.repeatEvents()
	b := s.buy()
	b.more(t, 50)
	s.cut.Stop() // from now on gw-2 ships nothing
	for round, lose := range []func(){s.flush, s.killAndRestart, s.flushAndKillKeeper, s.killAndRestart, s.failOver} {
		b.more(t, 50)
		before, began := b.away.Load(), time.Now()
		lose()
		b.more(t, 50)
		t.Logf("round %d: units pass %s after the loss, %d requests were answered 503", round, time.Since(began).Round(time.Millisecond), b.away.Load()-before)
	}
	servertest.Eventually(t, 2*time.Minute, "tenant-0 to have used all it has", func() bool { return b.refused[0].Load() > 20 })
	b.finish()
	if n := b.odd.Load(); n > 0 {
		t.Errorf("%d answers are neither 200 nor 429 nor 503", n)
	}
	s.settled()
	// What was given back last is there for whoever comes.
	for s.gates[0].hit("/svc/sold", as("tenant-0")).code == http.StatusOK {
		b.passed[0].Add(1)
	}
	above := int64(0)
	for tenant := range b.passed {
		used, passed := s.used(tenant), b.passed[tenant].Load()
		if used < passed {
			t.Errorf("tenant-%d: the counter says %d, %d were admitted", tenant, used, passed)
		}
		above += used - passed
	}
	unknown := s.unknown()
	t.Logf("%d calls were in flight at a loss, the counters are too high by %d", unknown, above)
	if above > unknown {
		t.Errorf("the counters are too high by %d, want at most the %d calls in flight at a loss", above, unknown)
	}
	if used, passed := s.used(0), b.passed[0].Load(); used != tight || passed > tight {
		t.Errorf("tenant-0 was admitted %d times and has used %d, want its limit of %d", passed, used, tight)
	}
}

// unknown is how many calls lost their answer, and then the Redis that had it:
// nobody knows whether they were charged.
func (s *stack) unknown() (calls int64) {
	for _, g := range s.gates {
		calls += int64(g.metric("sluice_store_unknown_total"))
	}
	return calls
}

// gatewayWith is a gateway that reaches Kafka at brokers of its own.
func (s *stack) gatewayWith(id string, brokers []string) *gate {
	all := s.brokers
	s.brokers = brokers
	defer func() { s.brokers = all }()
	return s.gateway(id)
}

// repeatEvents produces each hundredth usage event once more, until the test ends.
func (s *sold) repeatEvents() {
	topic := s.topicPrefix + "usage.v1"
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-done; client.Close() })
	go func() { // owned by the cleanup, which waits for it
		defer close(done)
		for n := 0; ctx.Err() == nil; {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				if n++; n%100 == 0 {
					client.Produce(ctx, &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value}, nil)
				}
			})
		}
	}()
}

func (s *sold) client() *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *sold) flush() {
	if err := s.client().FlushAll(s.t.Context()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// flushAndKillKeeper kills the keeper in the middle of the restore.
func (s *sold) flushAndKillKeeper() {
	s.flush()
	servertest.Eventually(s.t, 30*time.Second, "a restore to begin", func() bool {
		return s.client().Exists(s.t.Context(), s.redisPrefix+"epoch").Val() == 1
	})
	s.keeper.kill()
	s.keeper.start()
}

func (s *sold) killAndRestart() {
	s.redis.Kill()
	restart(s.t, s.redis)
}

// failOver kills the master and puts a replica, which may be behind, in its place.
func (s *sold) failOver() {
	replica := servertest.StartRedisWith(s.t, devserver.RedisOptions{AppendOnly: true, Args: []string{"--replicaof", fmt.Sprintf("127.0.0.1 %d", s.redis.Port()), "--repl-diskless-sync-delay", "0"}})
	client := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer client.Close()
	servertest.Eventually(s.t, 30*time.Second, "the replica to follow", func() bool {
		return client.Exists(s.t.Context(), s.redisPrefix+"epoch").Val() == 1
	})
	s.redis.Kill()
	s.front.Stop()
	if err := client.Do(s.t.Context(), "replicaof", "no", "one").Err(); err != nil {
		s.t.Fatal(err)
	}
	s.redis, s.front.Upstream = replica, replica.Addr()
	if err := s.front.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// settled waits until nothing is owed any more and the quotas are whole.
func (s *sold) settled() {
	s.t.Helper()
	servertest.Eventually(s.t, time.Minute, "what is owed to be settled", func() bool {
		for _, g := range s.gates {
			// What a lost answer tells of is owed before it is not asked for any more.
			if g.metric("sluice_store_answers_asked") != 0 || g.metric("sluice_settle_pending_records") != 0 || g.metric("sluice_store_quotas_whole") != 1 {
				return false
			}
		}
		return true
	})
}

// used is what Redis says a tenant has used, net.
func (s *sold) used(tenant int) int64 {
	s.t.Helper()
	key := fmt.Sprintf("%s{t:tenant-%d}:t::sold:quota:month:%s:", s.redisPrefix, tenant, time.Now().UTC().Format("200601"))
	client := s.client()
	consumed, err := client.Get(s.t.Context(), key+"c").Int64()
	if err != nil {
		s.t.Fatal(err)
	}
	refunded, _ := client.Get(s.t.Context(), key+"r").Int64() // none: 0
	return consumed - refunded
}
