//go:build integration

package controlplane_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/sales"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/services/controlplane"
)

const prepaidRule = `{"id":"reports","subject":{"kind":"tenant","value":"*"},"metric":"reports","limit":{"algorithm":"quota","kind":"prepaid"}}`

// till is a world that sells in advance: with a Redis, and customer acme, whose reports
// are prepaid.
type till struct {
	world
	redis  *redis.Client
	prefix string
	now    func() time.Time
}

func newTill(t *testing.T) *till {
	t.Helper()
	return newTillAt(t, nil)
}

// newTillAt is a till whose control planes have that clock; nil is the real one.
func newTillAt(t *testing.T, now func() time.Time) *till {
	t.Helper()
	s := &till{world: newWorld(t), now: now}
	if err := migrate.Up(t.Context(), s.dsn, "keeper"); err != nil {
		t.Fatal(err)
	}
	addr, prefix := servertest.Redis(t)
	s.redis, s.prefix = redis.NewClient(&redis.Options{Addr: addr}), prefix
	t.Cleanup(func() { _ = s.redis.Close() })
	s.Service = s.service(t, nil, nil)
	s.must(t, 201, request{method: "POST", path: "/v1/customers", body: goodCustomer})
	s.must(t, 201, request{method: "POST", path: "/v1/rules", body: prepaidRule})
	return s
}

// service is another control plane on the same servers.
func (s *till) service(t *testing.T, change func(*pgxpool.Config), client redis.UniversalClient) *controlplane.Service {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(cfg)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if client == nil {
		client = s.redis
	}
	api, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: noUsage{}, Redis: client, KeyPrefix: s.prefix, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// forget loses what Redis keeps of this test.
func (s *till) forget(t *testing.T) {
	t.Helper()
	keys, err := s.redis.Keys(t.Context(), s.prefix+"*").Result()
	if err == nil && len(keys) > 0 {
		err = s.redis.Del(t.Context(), keys...).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *till) topUp(t *testing.T, status int, key, body string) *answer {
	t.Helper()
	return s.must(t, status, topUpWith(key, body))
}

// holds holds what was written: so many top-ups, of so many units in all.
func (s *till) holds(t *testing.T, topUps int, units int64) {
	t.Helper()
	for _, sql := range []string{
		`SELECT count(*) FROM grants`, `SELECT count(*) FROM topups`, `SELECT count(*) FROM wallet_ledger WHERE kind = 'topup'`,
		`SELECT count(*) FROM outbox WHERE topic = 'grants.v1'`, `SELECT count(*) FROM audit WHERE kind = 'wallet'`,
	} {
		if n := s.count(t, sql); n != topUps {
			t.Errorf("%s is %d, want %d", sql, n, topUps)
		}
	}
	for _, sql := range []string{
		`SELECT coalesce(sum(granted), 0)::int FROM wallets`, `SELECT coalesce(sum(amount), 0)::int FROM wallet_ledger WHERE kind = 'topup'`,
		`SELECT coalesce(sum((payload::json->>'granted')::bigint), 0)::int FROM grants_v1`,
	} {
		if n := s.count(t, sql); int64(n) != units {
			t.Errorf("%s is %d, want %d", sql, n, units)
		}
	}
	s.holdMirror(t, "grants_v1", grants.Topic)
}

func (s *till) wallet(t *testing.T) (w sales.Wallet) {
	t.Helper()
	got := s.must(t, 200, request{method: "GET", path: strings.TrimSuffix(topUpPath, "/topups")})
	if err := json.Unmarshal(got.Body.Bytes(), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTopUpIsGrantedOnce(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	first := s.topUp(t, 201, "order-1", `{"amount":5,"note":"order 1","priority":2}`)
	var made sales.TopUp
	if err := json.Unmarshal(first.Body.Bytes(), &made); err != nil || made.Amount != 5 || made.Balance != 5 || made.Metric != "reports" {
		t.Fatalf("%s, %v", first.Body, err)
	}
	s.must(t, 200, request{method: "GET", path: first.Header().Get("Location")})
	for _, where := range []string{"redis", "postgres"} {
		again := s.topUp(t, 201, "order-1", `{ "note": "order 1", "priority": 2, "amount": 5 }`)
		if again.Body.String() != first.Body.String() || again.Header().Get("Location") != first.Header().Get("Location") || again.Header().Get("Location") == "" {
			t.Errorf("from %s: %s %v, want %s", where, again.Body, again.Header(), first.Body)
		}
		if p := s.topUp(t, 422, "order-1", `{"amount":6,"note":"order 1","priority":2}`).problem(t); !strings.Contains(p.Detail, "another request") {
			t.Errorf("from %s: %+v", where, p)
		}
		s.forget(t) // what Redis forgets Postgres knows
	}
	s.holds(t, 1, 5)
	s.topUp(t, 201, "order-2", `{"amount":7}`)
	s.holds(t, 2, 12)
	if w := s.wallet(t); w.Balance != 12 || w.Granted != 12 || len(w.Grants) != 2 || w.Grants[0].ID != made.ID || w.Source != "counters" {
		t.Errorf("%+v", w)
	}
}

func TestTopUpRefusesAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	elsewhere := func(path string) request {
		r := topUpWith("k", `{"amount":5}`)
		r.path = path
		return r
	}
	for name, c := range map[string]struct {
		is     request
		status int
		field  string
		says   string
	}{
		"an unknown customer": {elsewhere("/v1/customers/nobody/wallets/reports/topups"), 404, "id", "customer"},
		"an unknown metric":   {elsewhere("/v1/customers/acme/wallets/exports/topups"), 404, "metric", "exports is none"},
		"yesterday":           {topUpWith("k", `{"amount":5,"expiresAt":"2020-01-01T00:00:00Z"}`), 400, "expiresAt", "in the future, as it is 20"},
	} {
		p := s.must(t, c.status, c.is).problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Field != c.field || !strings.Contains(p.Errors[0].Message, c.says) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := s.must(t, 403, request{method: "POST", path: topUpPath, token: "Bearer " + readOnlyToken, body: `{"amount":5}`}).problem(t); p.Detail == "" {
		t.Error("no detail")
	}
	s.holds(t, 0, 0)
	// The total must stay exact, too; the refused one took nothing of it.
	s.topUp(t, 201, "big", `{"amount":9007199254740990}`)
	if p := s.topUp(t, 400, "more", `{"amount":2}`).problem(t); p.Errors[0].Field != "amount" || !strings.Contains(p.Errors[0].Message, "at most 1") {
		t.Errorf("%+v", p)
	}
	s.topUp(t, 201, "more", `{"amount":1}`) // nor did it take the key
	if n := s.count(t, `SELECT count(*) FROM wallet_ledger`); n != 2 {
		t.Errorf("%d rows in the ledger", n)
	}
}

// Clients that repeat without end: one of them writes.
func TestParallelRepeatsWriteOnce(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	other := s.service(t, nil, nil)
	const repeats = 500
	var wait sync.WaitGroup
	var mu sync.Mutex
	bodies, statuses := map[string]int{}, map[int]int{}
	for i := range repeats {
		api := s.Service
		if i%2 == 1 {
			api = other
		}
		wait.Go(func() {
			got := topUpWith("once", `{"amount":5}`).do(t, api)
			mu.Lock()
			defer mu.Unlock()
			if statuses[got.Code]++; got.Code == 201 {
				bodies[got.Body.String()]++
			}
		})
	}
	wait.Wait()
	if len(bodies) != 1 || statuses[201]+statuses[409] != repeats || statuses[201] == 0 {
		t.Fatalf("statuses %v, bodies %v", statuses, bodies)
	}
	s.holds(t, 1, 5)
	t.Logf("statuses %v", statuses)
}

// The first waits for the customer's row; a twin is not made to wait for it.
func TestATwinOfOneUnderWayIsToldSo(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM customers FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	first := make(chan *answer, 1)
	go func() { first <- topUpWith("twin", `{"amount":5}`).do(t, s) }() // the test receives
	servertest.Eventually(t, 5*time.Second, "the first to hold its key", func() bool {
		var held int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&held)
		return err == nil && held > 0
	})
	if got := s.topUp(t, 409, "twin", `{"amount":5}`); got.Header().Get("Retry-After") == "" || !strings.HasSuffix(got.problem(t).Type, "in-progress") {
		t.Errorf("%v %s", got.Header(), got.Body)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got.Code != 201 {
		t.Fatalf("the first: %d %s", got.Code, got.Body)
	}
	s.topUp(t, 201, "twin", `{"amount":5}`)
	s.holds(t, 1, 5)
}

func TestTopUpsGoOnWithoutRedis(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = away.Close() })
	s.Service = s.service(t, nil, away)
	if _, err := s.db.Exec(t.Context(), `INSERT INTO checkpoints (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
		VALUES ('{t:acme}:t::reports:quota', 'acme', 'reports', '', 3, 1, 0, '2026-07-01T00:00:00Z', now())`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.topUp(t, 201, "order-1", `{"amount":5}`)
	}
	s.holds(t, 1, 5)
	if w := s.wallet(t); w.Source != "checkpoint" || w.Consumed != 3 || w.Refunded != 1 || w.Balance != 3 || w.AsOf.Format(time.RFC3339) != "2026-07-01T00:00:00Z" {
		t.Errorf("%+v", w)
	}
}

func TestWalletsAreListedAndTheirLedgerPaged(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	if w := s.wallet(t); w.Granted != 0 || w.Balance != 0 || w.Grants == nil {
		t.Errorf("an empty wallet: %+v", w)
	}
	s.must(t, 404, request{method: "GET", path: "/v1/customers/acme/wallets/exports"})
	s.must(t, 404, request{method: "GET", path: "/v1/customers/nobody/wallets"})
	s.countsFrom(t, "wallet_ledger", 1<<33) // more rows than 32 bits count
	for i := range 5 {
		s.topUp(t, 201, fmt.Sprint("order-", i), fmt.Sprintf(`{"amount":%d}`, i+1))
	}
	var seen []int64
	next := ""
	for {
		var page api.Page[sales.LedgerEntry]
		got := s.must(t, 200, request{method: "GET", path: "/v1/customers/acme/wallets/reports/ledger?limit=2" + next})
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			if seen = append(seen, e.Amount); e.Actor != "alice" || e.Kind != "topup" {
				t.Errorf("%+v", e)
			}
		}
		if page.Next == "" {
			break
		}
		next = "&cursor=" + page.Next
	}
	if fmt.Sprint(seen) != "[5 4 3 2 1]" {
		t.Errorf("pages hold %v", seen)
	}
	s.must(t, 201, request{method: "POST", path: "/v1/rules", body: strings.ReplaceAll(prepaidRule, "reports", "alerts")})
	more := topUpWith("k", `{"amount":1}`)
	more.path = strings.Replace(topUpPath, "reports", "alerts", 1)
	s.must(t, 201, more)
	var page api.Page[sales.Wallet]
	got := s.must(t, 200, request{method: "GET", path: "/v1/customers/acme/wallets?limit=1"})
	if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page.Items) != 1 || page.Items[0].Metric != "alerts" || page.Next == "" {
		t.Fatalf("%s", got.Body)
	}
	got = s.must(t, 200, request{method: "GET", path: "/v1/customers/acme/wallets?limit=1&cursor=" + page.Next})
	if page.Next = ""; json.Unmarshal(got.Body.Bytes(), &page) != nil || page.Items[0].Metric != "reports" || page.Items[0].Granted != 15 || page.Next != "" {
		t.Fatalf("%s", got.Body)
	}
}

// A grant may be given a life in place of an end: then no clock but ours has a
// say, and a repetition is still one.
func TestAGrantsLifeIsCountedHere(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 16, 12, 0, 0, 0, time.UTC)
	s := newTillAt(t, func() time.Time { return now })
	made := decoded[sales.TopUp](t, s.topUp(t, 201, "k", `{"amount":5,"expiresIn":"720h"}`))
	if made.ExpiresAt == nil || !made.ExpiresAt.Equal(now.Add(720*time.Hour)) {
		t.Fatalf("made %+v", made)
	}
	now = now.Add(time.Minute)
	s.forget(t)
	if again := decoded[sales.TopUp](t, s.topUp(t, 201, "k", `{"amount":5,"expiresIn":"720h"}`)); again.ID != made.ID {
		t.Errorf("a repetition made %+v, after %+v", again, made)
	}
	s.topUp(t, 422, "k", `{"amount":5,"expiresIn":"721h"}`)
}

// A top-up that was granted is answered so again, though its grant has ended
// meanwhile and wherever the answer lies: a caller that is told it was refused
// buys twice.
func TestALateRepetitionIsAnsweredAsTheFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 16, 12, 0, 0, 0, time.UTC)
	s := newTillAt(t, func() time.Time { return now })
	const body = `{"amount":5,"expiresAt":"2026-07-16T12:10:00Z"}`
	first := s.topUp(t, 201, "order-1", body)
	now = now.Add(20 * time.Minute)
	for _, where := range []string{"redis", "postgres"} {
		again := s.topUp(t, 201, "order-1", body)
		if again.Body.String() != first.Body.String() || again.Header().Get("Location") != first.Header().Get("Location") {
			t.Errorf("from %s: %s, was %s", where, again.Body, first.Body)
		}
		s.forget(t)
	}
	// The same request under a new key is no repetition.
	if p := s.topUp(t, 400, "order-2", body).problem(t); p.Errors[0].Field != "expiresAt" {
		t.Errorf("%+v", p)
	}
	s.holds(t, 1, 5)
}
