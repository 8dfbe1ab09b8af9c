//go:build integration

package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/sales"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// statements counts what is sent to Postgres.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// roundTrips counts what is sent to Redis, and keeps the names of commands.
type roundTrips struct{ names []string }

func (*roundTrips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.names = append(r.names, cmd.Name())
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.names = append(r.names, fmt.Sprint("pipeline of ", len(cmds)))
		return next(ctx, cmds)
	}
}

// market is a world of a thousand customers, c000 to c999: all have a quota of
// 1000 calls a month and one of 50 exports a day in Paris, and units are prepaid.
// Customer n has used n calls and given one back, and n of 500 units, of which 7
// have expired; c000 was granted none.
type market struct {
	world
	client     *redis.Client
	prefix     string
	statements *statements
	trips      *roundTrips
}

func newMarket(t *testing.T) market {
	t.Helper()
	addr, prefix := servertest.Redis(t)
	m := market{client: redis.NewClient(&redis.Options{Addr: addr}), prefix: prefix, statements: &statements{}, trips: &roundTrips{}}
	t.Cleanup(func() { _ = m.client.Close() })
	hooked := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = hooked.Close() })
	hooked.AddHook(m.trips)
	c := clockAt(t, "2026-07-16T12:00:00Z")
	m.world = newWorldWith(t, controlplane.Deps{})
	m.Service = newAPIWith(t, m.dsn, controlplane.Deps{Now: c.time, Redis: hooked, KeyPrefix: prefix}, m.statements)
	if _, err := m.db.Exec(t.Context(), `INSERT INTO customers (key, version, document)
		SELECT id, n + 1, jsonb_build_object('id', id, 'name', 'Customer ' || n, 'version', n + 1) FROM (SELECT n, 'c' || lpad(n::text, 3, '0') id FROM generate_series(0, 999) n) x`); err != nil {
		t.Fatal(err)
	}
	quota := `{"id":"%s","subject":{"kind":"tenant","value":"*"},"metric":"%s","limit":{"algorithm":"quota","kind":"renewing","limit":%d,"period":"%s"}}`
	m.must(t, 201, request{method: "POST", path: "/v1/rules", body: fmt.Sprintf(quota, "all-calls", "calls", 1000, "month")})
	m.must(t, 201, request{method: "POST", path: "/v1/rules", body: strings.Replace(fmt.Sprintf(quota, "all-exports", "exports", 50, "day"), `"day"`, `"day","timezone":"Europe/Paris"`, 1)})
	m.must(t, 201, request{method: "POST", path: "/v1/rules", body: `{"id":"all-units","subject":{"kind":"tenant","value":"*"},"metric":"units","limit":{"algorithm":"quota","kind":"prepaid"}}`})
	if _, err := m.db.Exec(t.Context(), `INSERT INTO wallets (key, version, document, forfeited)
		SELECT key || '/units', version, jsonb_build_object('tenantId', key, 'metric', 'units', 'granted', 500), 7 FROM customers WHERE key <> 'c000'`); err != nil {
		t.Fatal(err)
	}
	pipe := m.client.Pipeline()
	for i := range 1000 {
		key := prefix + fmt.Sprintf("{t:c%03d}:t::calls:quota:month:202607", i)
		pipe.Set(t.Context(), key+":c", i, time.Hour)
		pipe.Set(t.Context(), key+":r", min(i, 1), time.Hour)
		purse := prefix + fmt.Sprintf("{t:c%03d}:t::units:quota", i)
		pipe.Set(t.Context(), purse+":c", i, time.Hour)
		pipe.Set(t.Context(), purse+":f", min(i, 1)*7, time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m market) list(t *testing.T, query string) api.Page[sales.CustomerUse] {
	t.Helper()
	return decoded[api.Page[sales.CustomerUse]](t, m.must(t, 200, request{method: "GET", path: "/v1/customers" + query}))
}

// checkpoint writes what the keeper knows of a customer's calls of July.
func (m market) checkpoint(t *testing.T, customer string, consumed int) {
	t.Helper()
	if _, err := m.db.Exec(t.Context(), `INSERT INTO checkpoints (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
		VALUES ('{t:' || $1 || '}:t::calls:quota:month:202607', $1, 'calls', '202607', $2, 0, 0, now(), now())`, customer, consumed); err != nil {
		t.Fatal(err)
	}
}

func used(c sales.CustomerUse, metric string) sales.Use {
	i := slices.IndexFunc(c.Usage, func(u sales.Use) bool { return u.Metric == metric })
	if i < 0 {
		return sales.Use{}
	}
	return c.Usage[i]
}

func TestAThousandCustomersAreOneStatementAndOneRoundTrip(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.list(t, "?limit=1") // connects
	m.statements.n.Store(0)
	m.trips.names = nil
	page := m.list(t, "?limit=1000")
	if n := m.statements.n.Load(); n != 1 {
		t.Errorf("%d statements", n)
	}
	if !slices.Equal(m.trips.names, []string{"mget"}) {
		t.Errorf("Redis was sent %q", m.trips.names)
	}
	if len(page.Items) != 1000 || page.Next != "" {
		t.Fatalf("%d customers, next %q", len(page.Items), page.Next)
	}
	for i, c := range page.Items {
		calls, exports, units := used(c, "calls"), used(c, "exports"), used(c, "units")
		want := int64(i)
		if c.ID != fmt.Sprintf("c%03d", i) || len(c.Usage) != 3 || calls.Consumed != want || calls.Refunded != min(want, 1) || *calls.Limit != 1000 ||
			*calls.Remaining != 1000-want+min(want, 1) || calls.Period.ID != "202607" || calls.Source != "counters" || calls.Rule != "all-calls" {
			t.Fatalf("customer %d: %s %+v", i, c.ID, calls)
		}
		if exports.Period.ID != "20260716" || !exports.Period.End.Equal(time.Date(2026, 7, 16, 22, 0, 0, 0, time.UTC)) || exports.Period.Zone != "Europe/Paris" || calls.Period.Zone != "UTC" || *exports.Remaining != 50 {
			t.Fatalf("customer %d: exports %+v", i, exports)
		}
		granted, balance := 500*min(want, 1), 493*min(want, 1)-want
		if units.Granted != granted || units.Balance == nil || *units.Balance != balance || units.Limit != nil || units.Source != "counters" {
			t.Fatalf("customer %d: units %+v, want a balance of %d", i, units, balance)
		}
	}
	var pages []string
	for cursor := ""; ; {
		page := m.list(t, "?limit=400&cursor="+cursor)
		for _, c := range page.Items {
			pages = append(pages, c.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(pages) != 1000 || !slices.IsSorted(pages) {
		t.Errorf("pages list %d customers", len(pages))
	}
	m.must(t, 400, request{method: "GET", path: "/v1/customers?limit=1001"})
	m.must(t, 400, request{method: "GET", path: "/v1/customers?cursor=!"})
}

// Of each counter the rule is shown that is the customer's own, in the widest
// scope, with the override in force.
func TestUseIsOfTheWidestRule(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	rule := func(id, tenant, rest string, limit int) {
		m.must(t, 201, request{method: "POST", path: "/v1/rules", body: fmt.Sprintf(
			`{"id":"%s","subject":{"kind":"tenant","value":"%s"},"metric":"calls","limit":{"algorithm":"quota","kind":"renewing","limit":%d,"period":"month"}%s}`, id, tenant, limit, rest)})
	}
	rule("narrow", "c001", `,"scope":{"service":"s"}`, 10)
	rule("shadow", "c001", `,"mode":"shadow"`, 11)
	rule("own", "c002", ``, 20)
	rule("past", "c003", `,"validUntil":"2026-07-16T11:50:00Z"`, 30)
	m.must(t, 201, request{method: "POST", path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"c004"},"metric":"calls","limit":40}`})
	m.must(t, 201, request{method: "POST", path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"c004"},"metric":"calls","period":"month","limit":41}`})
	m.must(t, 201, request{method: "POST", path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"c005"},"metric":"calls","unlimited":true}`})
	// One that nobody can read takes nothing else away.
	if _, err := m.db.Exec(t.Context(), `INSERT INTO rules (key, version, document) VALUES
		('broken', 1, '{"id":"broken","subject":{"kind":"tenant","value":"c000"},"metric":"calls","limit":{"algorithm":"quota","kind":"rented"}}')`); err != nil {
		t.Fatal(err)
	}
	page := m.list(t, "?limit=6")
	for i, want := range []struct {
		rule  string
		limit int64 // -1: unlimited
	}{{"all-calls", 1000}, {"all-calls", 1000}, {"own", 20}, {"all-calls", 1000}, {"all-calls", 41}, {"all-calls", -1}} {
		got := used(page.Items[i], "calls")
		limit := int64(-1)
		if got.Limit != nil {
			limit = *got.Limit
		}
		if got.Rule != want.rule || limit != want.limit || len(page.Items[i].Usage) != 3 || got.Consumed != int64(i) {
			t.Errorf("c00%d: %+v, limit %d; want %+v", i, got, limit, want)
		}
	}
}

// A checkpoint is a floor: a counter that was lost shows what was checkpointed,
// and so does every counter while Redis is away. The answer says so.
func TestUseIsNoLessThanItsCheckpoint(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	for i, consumed := range []int{0, 9, 1} { // c001 has lost something, c002 not
		m.checkpoint(t, fmt.Sprintf("c%03d", i), consumed)
	}
	if err := m.client.Del(t.Context(), m.prefix+"{t:c003}:t::calls:quota:month:202607:c").Err(); err != nil {
		t.Fatal(err)
	}
	m.checkpoint(t, "c003", 3)
	hold := func(sources, consumed string) {
		t.Helper()
		var gotSources, gotConsumed []string
		for _, c := range m.list(t, "?limit=4").Items {
			calls := used(c, "calls")
			gotSources, gotConsumed = append(gotSources, calls.Source), append(gotConsumed, fmt.Sprint(calls.Consumed))
		}
		if s, c := strings.Join(gotSources, " "), strings.Join(gotConsumed, " "); s != sources || c != consumed {
			t.Errorf("sources %s, consumed %s; want %s, %s", s, c, sources, consumed)
		}
	}
	hold("counters checkpoint counters checkpoint", "0 9 2 3")
	if _, err := m.db.Exec(t.Context(), `INSERT INTO checkpoints (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
		VALUES ('{t:c001}:t::units:quota', 'c001', 'units', '', 600, 2, 5, now(), now())`); err != nil {
		t.Fatal(err)
	}
	if got := used(m.list(t, "?limit=2").Items[1], "units"); *got.Balance != 500-600+2-7 || got.Source != "checkpoint" {
		t.Errorf("the wallet that lost something: %+v, balance %d", got, *got.Balance)
	}
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = away.Close() })
	c := clockAt(t, "2026-07-16T12:00:00Z")
	for _, client := range []redis.UniversalClient{away, nil} {
		m.Service = newAPIWith(t, m.dsn, controlplane.Deps{Now: c.time, Redis: client, KeyPrefix: m.prefix}, nil)
		hold("checkpoint checkpoint checkpoint checkpoint", "0 9 1 3")
	}
}

// The rules of docs/howto/sell-an-api.md: a customer sees what it was sold, and
// not what the rule for those without a plan would leave it.
func TestUseIsOfThePlanAndNotOfTheRuleItBeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, body := range map[string]string{
		"/v1/customers": `{"id":"acme","name":"Acme Ltd","currency":"EUR","timezone":"Europe/Istanbul"}`,
		"/v1/plans": `{"id":"pro","currency":"EUR","period":"month","proration":"none","rules":[
			{"metric":"calls","scope":{"service":"shop"},"limit":{"algorithm":"quota","kind":"renewing","limit":5}}]}`,
		"/v1/rules": `{"id":"shop-needs-a-plan","subject":{"kind":"tenant","value":"*"},"scope":{"service":"shop"},"metric":"calls",
			"limit":{"algorithm":"quota","kind":"renewing","limit":0,"period":"month"}}`,
	} {
		w.must(t, 201, request{method: "POST", path: path, body: body})
	}
	used := func() []sales.Use {
		t.Helper()
		return decoded[struct{ Usage []sales.Use }](t, w.must(t, 200, request{method: "GET", path: "/v1/customers/acme/use"})).Usage
	}
	if got := used(); len(got) != 1 || got[0].Rule != "shop-needs-a-plan" || *got[0].Limit != 0 {
		t.Errorf("without a plan: %+v", got)
	}
	s, at := w.subscribe(t, toPro)
	if got := used(); len(got) != 1 || !strings.HasPrefix(got[0].Rule, s.ID+":") || *got[0].Limit != 5 || *got[0].Remaining != 5 {
		t.Errorf("with a plan: %+v", got)
	}
	w.delete(t, 204, at, "*")
	if got := used(); len(got) != 1 || got[0].Rule != "shop-needs-a-plan" {
		t.Errorf("after the plan: %+v", got)
	}
}
