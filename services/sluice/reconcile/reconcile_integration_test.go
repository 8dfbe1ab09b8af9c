//go:build integration

package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore/pgstore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

const (
	july   = "{t:acme}:t::calls:quota:month:202607"
	june   = "{t:acme}:t::calls:quota:month:202606"
	may    = "{t:acme}:t::calls:quota:month:202605"
	others = "{t:globex}:t::calls:quota:month:202607"
	wallet = "{t:acme}:t::sms:quota"
)

// stand has the same in all places: acme used 100 and was given back 10 of July,
// 7 of June, and 30 of a wallet of 50, 5 of which ended.
type stand struct {
	t     *testing.T
	pool  *pgxpool.Pool
	redis *redis.Client
	s     Sources
	n     int
}

func newStand(t *testing.T) *stand {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "keeper", "usage"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	addr, prefix := servertest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	s := &stand{t: t, pool: pool, redis: client, s: Sources{Pool: pool, Redis: client, KeyPrefix: prefix, Usage: pgstore.New(pool)}}
	s.counted(july, 100, 10, 0)
	s.checkpoint(july, 100, 10, 0)
	s.event(july, 100)
	s.event(july, -10)
	s.counted(june, 7, 0, 0)
	s.checkpoint(june, 7, 0, 0)
	s.event(june, 7)
	s.checkpoint(may, 3, 0, 0) // its keys are gone, and so are its events
	s.counted(others, 1, 0, 0)
	s.checkpoint(others, 1, 0, 0)
	s.event(others, 1)
	s.counted(wallet, 30, 0, 5)
	s.checkpoint(wallet, 30, 0, 5)
	s.event(wallet, 30)
	s.exec(`INSERT INTO wallets (key, document, forfeited) VALUES ('acme/sms', '{"tenantId":"acme","metric":"sms","granted":50}', 5)`)
	s.exec(`INSERT INTO grants (id, wallet, amount, "left", priority, note, granted_at) VALUES ('g', 'acme/sms', 50, 20, 0, '', $1)`, noon)
	s.ledger("topup", 50)
	s.ledger("forfeit", 5)
	return s
}

func (s *stand) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) ledger(kind string, amount int64) {
	s.t.Helper()
	s.exec(`INSERT INTO wallet_ledger (wallet, at, kind, grant_id, amount, used, balance, actor) VALUES ('acme/sms', $1, $2, 'g', $3, 0, 0, 'x')`, noon, kind, amount)
}

func (s *stand) counted(counter string, c, r, f int64) {
	s.t.Helper()
	for suffix, n := range map[string]int64{":c": c, ":r": r, ":f": f} {
		if n == 0 {
			continue
		}
		if err := s.redis.Set(s.t.Context(), s.s.KeyPrefix+counter+suffix, n, 0).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stand) checkpoint(counter string, c, r, f int64) {
	s.t.Helper()
	tenant := strings.TrimPrefix(strings.SplitN(counter, "}", 2)[0], "{t:")
	s.exec(`INSERT INTO checkpoints (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
VALUES ($1, $2, 'm', '', $3, $4, $5, now(), now()) ON CONFLICT (counter) DO UPDATE SET consumed = $3, refunded = $4, forfeited = $5`, counter, tenant, c, r, f)
}

func (s *stand) event(counter string, amount int64) {
	s.t.Helper()
	s.n++
	tenant := strings.TrimPrefix(strings.SplitN(counter, "}", 2)[0], "{t:")
	e := usage.Event{ID: fmt.Sprintf("e%d", s.n), TS: noon, TenantID: tenant, Service: "s", Endpoint: "/", Method: "GET", Decision: usage.DecisionAllow, Gateway: "g",
		Charges: []usage.Charge{{Counter: counter, Metric: "m", Amount: amount}}}
	results, err := pgstore.New(s.pool).Put(s.t.Context(), []usage.Event{e})
	if err != nil || results[0].Err != nil {
		s.t.Fatal(err, results)
	}
}

func (s *stand) options() Options {
	return Options{EventsSince: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Every: 5 * time.Millisecond, Now: func() time.Time { return noon }}
}

func (s *stand) run(o Options) Report {
	s.t.Helper()
	report, err := Run(s.t.Context(), s.s, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func brief(r Report) []string {
	out := []string{}
	for _, d := range r.Differences {
		out = append(out, fmt.Sprintf("%s %s %d %s %d", d.Counter, d.Between[0], d.Have[0].Net, d.Between[1], d.Have[1].Net))
		if d.Cause == "" {
			out = append(out, "without a cause")
		}
	}
	return out
}

func TestPlacesThatAgree(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	report := s.run(s.options())
	if report.Counters != 5 || report.Unchecked != 1 || len(report.Differences) != 0 {
		t.Fatalf("%+v", report)
	}
	o := s.options()
	if o.TenantID = "globex"; s.run(o).Counters != 1 {
		t.Fatalf("%+v", s.run(o))
	}
}

// Each kind of difference is found, on its counter and on no other.
func TestEachDifferenceIsFound(t *testing.T) {
	t.Parallel()
	const lonely = "{t:acme}:t::calls:quota:day:20260723"
	for name, c := range map[string]struct {
		spoil func(*stand)
		want  []string
	}{
		"Redis lost a counter": {func(s *stand) { s.redis.Del(t.Context(), s.s.KeyPrefix+july+":c", s.s.KeyPrefix+july+":r") },
			[]string{july + " redis 0 checkpoint 90"}},
		"Redis was restored from less": {func(s *stand) { s.counted(july, 90, 10, 0) }, []string{july + " redis 80 checkpoint 90"}},
		"charged behind the keeper": {func(s *stand) { s.counted(july, 105, 10, 0) },
			[]string{july + " redis 95 checkpoint 90", july + " redis 95 events 90"}},
		"an event is missing":    {func(s *stand) { s.exec(`DELETE FROM usage_events WHERE id = 'e1'`) }, []string{july + " redis 90 events -10"}},
		"an event too many":      {func(s *stand) { s.event(june, 2) }, []string{june + " redis 7 events 9"}},
		"only in Redis":          {func(s *stand) { s.counted(lonely, 4, 0, 0) }, []string{lonely + " redis 4 checkpoint 0", lonely + " redis 4 events 0"}},
		"a hand in the ledger":   {func(s *stand) { s.exec(`UPDATE wallet_ledger SET amount = 60 WHERE kind = 'topup'`) }, []string{wallet + " wallet 0 ledger 0"}},
		"a grant half ended":     {func(s *stand) { s.counted(wallet, 30, 0, 9); s.checkpoint(wallet, 30, 0, 9) }, []string{wallet + " redis 0 ledger 0"}},
		"expired keys are right": {func(s *stand) { s.checkpoint(may, 4, 0, 0) }, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			c.spoil(s)
			if diff := cmp.Diff(c.want, brief(s.run(s.options()))); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// What is only under way is no difference: it is looked at again.
func TestWhatIsUnderWayIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.counted(july, 101, 10, 0)
	o := s.options()
	o.Wait, o.Now = time.Minute, nil
	looks := 0
	o.Progress = func(step string, _ int) {
		if step != "looking again" {
			return
		}
		if looks++; looks == 2 { // the event and the checkpoint arrive
			s.event(july, 1)
			s.checkpoint(july, 101, 10, 0)
		}
	}
	// By the real clock the periods' keys may be gone; nothing else differs.
	report := s.run(o)
	if looks < 2 || len(report.Differences) != 0 {
		t.Fatalf("%d looks, %v", looks, brief(report))
	}
}

func TestAPlaceThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	away := s.s
	away.Redis = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	if _, err := Run(t.Context(), away, s.options()); err == nil {
		t.Fatal("Redis away is no error")
	}
	if _, err := Run(t.Context(), Sources{}, s.options()); err == nil {
		t.Fatal("nothing to read is no error")
	}
}
