//go:build integration

package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// server is what a test takes away and brings back.
type server interface {
	Kill()
	Start(ctx context.Context) error
}

func restart(t *testing.T, s server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// privateStack stands on servers of its own, which the test may kill.
type privateStack struct {
	*stack
	pg     *devserver.Postgres
	kafka  *devserver.Kafka
	redis  *devserver.Redis
	index  *devserver.Search
	settle *process // indexer and keeper
}

func newPrivateStack(t *testing.T) *privateStack {
	t.Helper()
	s := &privateStack{
		stack: newStack(t), pg: servertest.StartPostgres(t), kafka: servertest.StartKafka(t),
		redis: servertest.StartRedis(t), index: servertest.StartSearch(t),
	}
	s.postgres, s.brokers = s.pg.URL(), s.kafka.Brokers()
	s.redisAddr, s.redisPrefix = s.redis.Addr(), "e2e:"
	s.search = servertest.SearchServer{URL: s.index.URL(), Flavor: s.index.Flavor(), IndexPrefix: "e2e-"}
	return s
}

// Postgres, Elasticsearch and Kafka are taken away one at a time: decisions go
// on with the same answers, and a gateway that restarts meanwhile is ready,
// or says why it is not.
func TestDecisionsGoOnWithoutEach(t *testing.T) {
	s := newPrivateStack(t)
	s.process("rest", "controlplane,relay,indexer,keeper", nil).start().awaitReady()
	s.service()
	s.mustREST("POST", "/v1/rules", nil, quota("out", "/svc/out", 5), http.StatusCreated)
	first, second := s.gateway("gw-1"), s.gateway("gw-2")
	for _, g := range s.gates {
		g.start().awaitReady()
		s.awaitEqual(g)
	}
	steady := func(t *testing.T, tenant string) {
		t.Helper()
		for i := range 8 {
			got := s.gates[i%2].hit("/svc/out", as(tenant))
			if want := map[bool]int{true: 200, false: 429}[i < 5]; got.code != want {
				t.Errorf("request %d of %s: %d, want %d: %s", i, tenant, got.code, want, got.body)
			}
		}
	}
	steady(t, "nothing-away")

	t.Run("postgres", func(t *testing.T) {
		s.pg.Kill()
		steady(t, "postgres-away")
		second.kill()
		second.start().awaitReady()
		steady(t, "postgres-away-restarted")
		if got := s.rest("GET", "/v1/rules", nil, nil); got.code != http.StatusServiceUnavailable {
			t.Errorf("REST without Postgres: %d, want 503: %s", got.code, got.body)
		}
		restart(t, s.pg)
		servertest.Eventually(t, 30*time.Second, "REST to be back", func() bool {
			return s.rest("GET", "/v1/rules", nil, nil).code == http.StatusOK
		})
	})
	t.Run("elasticsearch", func(t *testing.T) {
		s.index.Kill()
		steady(t, "elasticsearch-away")
		second.kill()
		second.start().awaitReady()
		steady(t, "elasticsearch-away-restarted")
		restart(t, s.index)
	})
	t.Run("kafka", func(t *testing.T) {
		s.kafka.Kill()
		steady(t, "kafka-away")
		second.kill()
		second.start()
		servertest.Eventually(t, 30*time.Second, "the restarted gateway to say that Kafka is away", func() bool {
			code, why := second.readiness()
			return code == http.StatusServiceUnavailable && strings.Contains(why, "kafka")
		})
		if got := second.hit("/svc/out", as("kafka-away")); got.code != http.StatusServiceUnavailable {
			t.Errorf("a gateway without rules answers %d, want 503", got.code)
		}
		if got := first.hit("/svc/out", as("kafka-away")); got.code != http.StatusTooManyRequests {
			t.Errorf("the other gateway answers %d, want 429", got.code)
		}
		restart(t, s.kafka)
		second.awaitReady()
	})
	t.Run("afterwards", func(t *testing.T) {
		s.mustREST("POST", "/v1/rules", nil, fixed("after", "/svc/after", 0), http.StatusCreated)
		s.awaitEqualAll()
		for _, tenant := range []string{"nothing-away", "postgres-away", "elasticsearch-away", "kafka-away"} {
			s.awaitCheckpoint(tenant, "out", 5)
		}
	})
}

// Redis is taken away: open rules let pass and say so, closed ones answer 503
// at once, and both are back by themselves when Redis is.
func TestRedisAway(t *testing.T) {
	s := sharedStack(t)
	redis := servertest.StartRedis(t)
	s.redisAddr = redis.Addr()
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.service()
	g := s.gateway("gw-1")
	g.start().awaitReady()
	open, closed := fixed("open", "/svc/open", 2), fixed("closed", "/svc/closed", 2)
	open.OnStoreLoss, closed.OnStoreLoss = rules.StoreLossOpen, rules.StoreLossClosed
	s.mustREST("POST", "/v1/rules", nil, open, http.StatusCreated)
	s.mustREST("POST", "/v1/rules", nil, closed, http.StatusCreated)
	s.awaitEqual(g)
	redis.Kill()

	for range 20 {
		if got := g.hit("/svc/open", as("acme")); got.code != 200 || got.header.Get("Sluice-Degraded") != "store" {
			t.Fatalf("open rule without Redis: %d, Sluice-Degraded %q", got.code, got.header.Get("Sluice-Degraded"))
		}
		start := time.Now()
		got := g.hit("/svc/closed", as("acme"))
		if got.code != 503 || got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Retry-After") == "" {
			t.Fatalf("closed rule without Redis: %d %v %s", got.code, got.header, got.body)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("closed rule without Redis took %v", took)
		}
	}
	if got := g.metric("ratelimit_redis_fallback_total"); got < 40 {
		t.Errorf("ratelimit_redis_fallback_total is %v after 40 decisions without Redis", got)
	}
	if got := s.served.Load(); got != 20 {
		t.Errorf("the service saw %d requests, want the 20 of the open rule", got)
	}
	restart(t, redis)
	servertest.Eventually(t, 15*time.Second, "both rules to be enforced again", func() bool {
		return g.hit("/svc/open", as("back")).code == 429 && g.hit("/svc/closed", as("back")).code == 429
	})
}
