package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/usagestore"
)

// counters of one read of Redis.
const readAtOnce = 500

// gather reads all places.
func (r *run) gather(ctx context.Context) (map[string]*counter, error) {
	all := map[string]*counter{}
	for _, step := range []struct {
		name string
		read func(context.Context, map[string]*counter) error
	}{
		{"checkpoints", r.checkpoints}, {"wallets", r.wallets}, {"events", r.events},
		{"counters in Redis", r.scan}, {"their numbers", r.counted},
	} {
		if err := step.read(ctx, all); err != nil {
			return nil, fmt.Errorf("read %s: %w", step.name, err)
		}
		r.Progress("read "+step.name, len(all))
	}
	return all, nil
}

func at(all map[string]*counter, name string) *counter {
	c := all[name]
	if c == nil {
		c = newCounter(name)
		all[name] = c
	}
	return c
}

func (r *run) checkpoints(ctx context.Context, all map[string]*counter) error {
	return r.readCheckpoints(ctx, all, nil)
}

// readCheckpoints reads those of the counters, nil of all.
func (r *run) readCheckpoints(ctx context.Context, all map[string]*counter, only []string) error {
	rows, err := r.Pool.Query(ctx, `SELECT counter, consumed, refunded, forfeited FROM checkpoints
WHERE ($1 = '' OR tenant = $1) AND ($2::text[] IS NULL OR counter = ANY ($2))`, r.TenantID, only)
	if err != nil {
		return err
	}
	var (
		name string
		t    redisstore.Totals
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &t.Consumed, &t.Refunded, &t.Forfeited}, func() error {
		at(all, name).checkpoint = t
		return nil
	})
	return err
}

const walletsSQL = `SELECT w.customer, w.metric, w.granted, w.forfeited,
    coalesce(sum(l.amount) FILTER (WHERE l.kind = 'topup'), 0)::bigint, coalesce(sum(l.amount) FILTER (WHERE l.kind = 'forfeit'), 0)::bigint,
    coalesce(min(l.at), 'epoch')
FROM wallets w LEFT JOIN wallet_ledger l ON l.wallet = w.key
WHERE w.document IS NOT NULL AND ($1 = '' OR w.customer = $1) GROUP BY w.key`

func (r *run) wallets(ctx context.Context, all map[string]*counter) error {
	rows, err := r.Pool.Query(ctx, walletsSQL, r.TenantID)
	if err != nil {
		return err
	}
	var (
		customer, metric string
		l                ledger
		since            time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&customer, &metric, &l.granted, &l.forfeited, &l.sumGranted, &l.sumForfeited, &since}, func() error {
		c := at(all, rule.WalletCounter(customer, metric))
		c.wallet, c.ledger = true, l
		c.ledger.since = since
		return nil
	})
	return err
}

// events adds up the search store's; a tenant's, or everyone's.
func (r *run) events(ctx context.Context, all map[string]*counter) error {
	q := usagestore.TotalsQuery{TenantID: r.TenantID, Limit: usagestore.MaxLimit}
	for {
		page, err := r.Usage.Totals(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range page.Sums {
			at(all, s.Counter).events = s.Amount
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// scan finds counters that only Redis knows.
func (r *run) scan(ctx context.Context, all map[string]*counter) error {
	var mu sync.Mutex // nodes of a Cluster are scanned at once
	node := func(ctx context.Context, client *redis.Client) error {
		found := client.Scan(ctx, 0, escapeGlob(r.KeyPrefix)+"{*:quota*", 1000).Iterator()
		for found.Next(ctx) {
			name, number := cutNumber(strings.TrimPrefix(found.Val(), r.KeyPrefix))
			if !number {
				continue
			}
			mu.Lock()
			if c := newCounter(name); all[name] == nil && (r.TenantID == "" || c.tenant == r.TenantID) {
				all[name] = c
			}
			mu.Unlock()
		}
		return found.Err()
	}
	switch client := r.Redis.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, node)
	case *redis.Client:
		return node(ctx, client)
	}
	return fmt.Errorf("a client of type %T", r.Redis)
}

// cutNumber takes the number's letter off a key.
func cutNumber(key string) (name string, ok bool) {
	n := len(key)
	if n < 2 || key[n-2] != ':' || !strings.ContainsRune("crf", rune(key[n-1])) {
		return "", false
	}
	return key[:n-2], true
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

func (r *run) counted(ctx context.Context, all map[string]*counter) error {
	return r.readCounted(ctx, all, slices.Sorted(maps.Keys(all)))
}

func (r *run) readCounted(ctx context.Context, all map[string]*counter, names []string) error {
	for part := range slices.Chunk(names, readAtOnce) {
		totals, err := redisstore.ReadTotals(ctx, r.Redis, r.KeyPrefix, part)
		if err != nil {
			return err
		}
		for i, name := range part {
			all[name].redis = totals[i]
		}
	}
	return nil
}

// again reads anew what is known of the counters that differ.
func (r *run) again(ctx context.Context, found []Difference, all map[string]*counter) error {
	var names []string
	for _, d := range found {
		names = append(names, d.Counter)
	}
	names = slices.Compact(names) // they are sorted
	// Events first and Redis last: what is charged meanwhile must not look like
	// an event that is missing for good, and is looked at once more.
	if err := r.eventsOf(ctx, all, names); err != nil {
		return fmt.Errorf("read events again: %w", err)
	}
	if err := r.readCheckpoints(ctx, all, names); err != nil {
		return fmt.Errorf("read checkpoints again: %w", err)
	}
	if err := r.wallets(ctx, all); err != nil {
		return fmt.Errorf("read wallets again: %w", err)
	}
	if err := r.readCounted(ctx, all, names); err != nil {
		return fmt.Errorf("read counters again: %w", err)
	}
	return nil
}

// eventsOf adds up the events of the counters' tenants.
func (r *run) eventsOf(ctx context.Context, all map[string]*counter, names []string) error {
	tenants := map[string]bool{}
	for _, name := range names {
		tenants[all[name].tenant] = true
	}
	if tenants[""] && r.TenantID == "" {
		return r.events(ctx, all) // counters of services: anyone's events
	}
	one := *r
	for tenant := range tenants {
		one.TenantID = tenant
		if err := one.events(ctx, all); err != nil {
			return err
		}
	}
	return nil
}
