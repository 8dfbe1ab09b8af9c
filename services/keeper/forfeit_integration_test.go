//go:build integration

package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/wallet"
	"github.com/sluice-platform/sluice/libs/wallet/ledger"
)

// purse is acme's wallet of units, in servers that the test shares.
type purse struct {
	t       *testing.T
	pool    *pgxpool.Pool
	redis   redis.UniversalClient
	prefix  string
	counter string
	now     time.Time
}

const purseKey = "acme/units"

func newPurse(t *testing.T) *purse {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "keeper"); err != nil {
		t.Fatal(err)
	}
	addr, prefix := servertest.Redis(t)
	p := &purse{t: t, pool: newPool(t, dsn), redis: newRedisClient(t, addr), prefix: prefix, counter: rule.WalletCounter("acme", "units"), now: time.Now()}
	p.whole()
	if _, err := p.pool.Exec(t.Context(), `INSERT INTO wallets (key, version, document) VALUES ($1, 1, '{"tenantId":"acme","metric":"units","granted":0}')`, purseKey); err != nil {
		t.Fatal(err)
	}
	return p
}

// whole says of the Redis that nothing is to be restored.
func (p *purse) whole() {
	p.t.Helper()
	restoretest.Whole(p.t, p.redis, p.prefix)
}

// lose loses all that Redis keeps of this test, its marker too.
func (p *purse) lose() {
	p.t.Helper()
	keys, err := p.redis.Keys(p.t.Context(), p.prefix+"*").Result()
	if err == nil {
		err = p.redis.Del(p.t.Context(), keys...).Err()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *purse) in(f func(ctx context.Context, tx pgx.Tx, a ledger.Account) error) {
	p.t.Helper()
	err := pgx.BeginFunc(p.t.Context(), p.pool, func(tx pgx.Tx) error {
		a, err := ledger.Lock(p.t.Context(), tx, purseKey)
		if err != nil {
			return err
		}
		return f(p.t.Context(), tx, a)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// grant grants units as a top-up does, at the use that the counters tell.
func (p *purse) grant(id string, units int64, expires time.Time) {
	p.t.Helper()
	p.in(func(ctx context.Context, tx pgx.Tx, a ledger.Account) error {
		if _, err := tx.Exec(ctx, `UPDATE wallets SET document = jsonb_set(document, '{granted}', to_jsonb($2::bigint)) WHERE key = $1`, purseKey, a.Granted+units); err != nil {
			return err
		}
		a.Wallet, a.Granted = a.At(p.totals().Used()), a.Granted+units
		_, err := ledger.Grant(ctx, tx, a, wallet.Grant{ID: id, Amount: units, ExpiresAt: expires, GrantedAt: p.now}, "", "alice")
		return err
	})
}

func (p *purse) use(consumed, refunded int64) {
	p.t.Helper()
	c, r, _, _ := redisstore.Keys(p.prefix, p.counter)
	for key, n := range map[string]int64{c: consumed, r: refunded} {
		if err := p.redis.IncrBy(p.t.Context(), key, n).Err(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *purse) totals() redisstore.Totals {
	p.t.Helper()
	all, err := redisstore.ReadTotals(p.t.Context(), p.redis, p.prefix, []string{p.counter})
	if err != nil {
		p.t.Fatal(err)
	}
	return all[0]
}

func (p *purse) keeper() *forfeiter {
	return newForfeiter(Deps{Pool: p.pool, Redis: p.redis, KeyPrefix: p.prefix, Log: slog.New(slog.NewTextHandler(p.t.Output(), nil)), Registerer: prometheus.NewRegistry(), Now: time.Now})
}

func (p *purse) look() error { return p.keeper().look(p.t.Context()) }

// holds holds what was forfeited, in the ledger, in Redis and in the checkpoint,
// and that what is left of the grants is the balance.
func (p *purse) holds(ended int, forfeited, balance int64) {
	p.t.Helper()
	var rows int
	var sum, floor int64
	err := p.pool.QueryRow(p.t.Context(), `SELECT count(*), coalesce(sum(amount), 0)::bigint, coalesce((SELECT forfeited FROM checkpoints WHERE counter = $1), 0)
		FROM wallet_ledger WHERE kind = 'forfeit'`, p.counter).Scan(&rows, &sum, &floor)
	if err != nil {
		p.t.Fatal(err)
	}
	a, _, err := ledger.Get(p.t.Context(), p.pool, purseKey)
	if err != nil {
		p.t.Fatal(err)
	}
	use := p.totals()
	if rows != ended || sum != forfeited || floor != forfeited || a.Forfeited != forfeited || use.Forfeited != forfeited {
		p.t.Fatalf("%d grants ended; forfeited: ledger %d, wallet %d, checkpoint %d, redis %d; want %d and %d", rows, sum, a.Forfeited, floor, use.Forfeited, ended, forfeited)
	}
	if left := a.At(use.Used()).Balance(); left != balance || a.Granted-use.Used()-use.Forfeited != balance {
		p.t.Fatalf("left %d, balance %d, want %d: %+v", left, a.Granted-use.Used()-use.Forfeited, balance, a)
	}
}

func past() time.Time   { return time.Now().Add(-time.Second) }
func future() time.Time { return time.Now().Add(time.Hour) }

// Of two grants one ends: what was used came from it first, the other stays.
func TestAnExpiredGrantIsForfeitedOnce(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	p.grant("a", 100, past())
	p.grant("b", 100, future())
	p.use(65, 5)
	f := p.keeper()
	for range 3 {
		if err := f.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.holds(1, 40, 100)
	}
	if ended, units := testutil.ToFloat64(f.metrics.ended), testutil.ToFloat64(f.metrics.units); ended != 1 || units != 40 {
		t.Errorf("metrics say %v grants and %v units", ended, units)
	}
	p.use(0, 10) // units of it that come back later stay
	p.holds(1, 40, 110)
	p.grant("c", 5, past()) // ended before anything was used of it
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	p.holds(2, 45, 110)
}

func TestKeepersThatLookAtOnceForfeitOnce(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	for n := range 8 {
		p.grant(fmt.Sprint("g", n), 10, past())
	}
	p.use(35, 0)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if err := p.look(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	p.holds(8, 45, 0)
}

// die does what a keeper does for the grant that is due, up to its commit.
func (p *purse) die() {
	p.t.Helper()
	tx, err := p.pool.Begin(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // as Postgres does for a connection that is gone
	a, err := ledger.Lock(p.t.Context(), tx, purseKey)
	if err != nil {
		p.t.Fatal(err)
	}
	grant, _ := a.Due(time.Now())
	if _, err := p.keeper().charge(p.t.Context(), tx, a, grant); err != nil {
		p.t.Fatal(err)
	}
}

// A keeper dies after Redis and before Postgres; units are used and topped up
// before the next one looks.
func TestAKillBetweenRedisAndTheLedgerForfeitsOnce(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	p.grant("a", 100, past())
	p.grant("b", 100, future())
	p.use(60, 0)
	p.die()
	p.use(30, 0)
	p.grant("c", 50, future())
	p.die() // and once more
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	p.holds(1, 40, 120)
}

// Redis is lost between the two. Until it is restored nothing is judged by what
// it has; then by what was restored.
func TestRedisLostBetweenTheTwo(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	p.grant("a", 100, past())
	p.use(60, 0)
	p.die()
	p.lose()
	if err := p.look(); err == nil {
		t.Fatal("a grant was ended by a Redis that lost its use")
	}
	p.use(60, 0)
	p.whole()
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	p.holds(1, 40, 0)
}

func TestRedisAwayAtTheEndOfAGrant(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	p.grant("a", 100, past())
	f := p.keeper()
	f.deps.Redis = newRedisClient(t, "127.0.0.1:1")
	if err := f.look(t.Context()); err == nil {
		t.Fatal("ended without Redis")
	}
	p.holds(0, 0, 100)
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	p.holds(1, 100, 0)
}

// Use and the end of grants race: no unit is both used and forfeited.
func TestUseBesideTheEndOfGrants(t *testing.T) {
	t.Parallel()
	p := newPurse(t)
	for n := range 10 {
		p.grant(fmt.Sprint("g", n), 100, past())
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 100 {
				p.use(1, 0)
			}
		})
	}
	for range 2 {
		wait.Go(func() {
			if err := p.look(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	forfeited := p.totals().Forfeited
	p.holds(10, forfeited, 1000-400-forfeited)
}
