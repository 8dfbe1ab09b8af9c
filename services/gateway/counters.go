package gateway

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/share"
)

// counters is the store of the counters and all that stands in for it while it
// is away.
type counters struct {
	store     *redisstore.Store
	heartbeat *breaker.Heartbeat
	members   *membership.Membership
	shares    *share.Limiter
	unsettled charge.Unsettled
	check     *redisCheck
	// debts is the journal of what the store could not do; nil before Run.
	debts atomic.Pointer[journal.Journal]
	// book has reservations; nil before openBook.
	book atomic.Pointer[reserve.Book]
}

// report brings back what this gateway knows of reservations.
func (c *counters) report(ctx context.Context) error {
	if book := c.book.Load(); book != nil {
		return book.HandIn(ctx)
	}
	return nil
}

// owe has what the store could not give back given back later.
func (c *counters) owe(at time.Time, counters []limit.Counter) {
	if debts := c.debts.Load(); debts != nil {
		debts.Append(at, counters)
	}
}

func newCounters(id string, cfg Config, deps Deps, address func() string) (*counters, error) {
	c := &counters{heartbeat: breaker.NewHeartbeat(0, deps.Now).ThroughPoller()}
	var err error
	if c.store, err = redisstore.New(deps.Redis, redisstore.Options{
		KeyPrefix: cfg.Store.KeyPrefix, Budget: cfg.Store.Budget, CallTimeout: cfg.Store.Timeout, Proxied: cfg.Store.Proxied,
		Breaker: breaker.Options{Heartbeat: c.heartbeat}, Owe: c.owe, Report: c.report, Name: id, Now: deps.Now,
	}); err != nil {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	if c.members, err = membership.New(membership.Options{
		Stream: deps.Stream, ID: id, Address: address, Registerer: deps.Registerer, Log: deps.Log, Now: deps.Now,
	}); err != nil {
		return nil, err
	}
	if c.check, err = newRedisCheck(deps.Redis, deps.Registerer, deps.Log); err != nil {
		return nil, err
	}
	c.shares = share.New(share.Options{
		Position: c.members.Position, Reached: func() bool { return c.check.ready() == nil && c.unsettled.Begun() }, Now: deps.Now,
	})
	c.unsettled.Away = func() bool { return !c.store.Available() }
	return c, registerStore(deps.Registerer, c.store)
}

// openDebts opens the journal of what passed uncounted, beside the spool.
func (c *counters) openDebts(id string, cfg Config, deps Deps) (*journal.Journal, error) {
	s, err := journal.Open(journal.Options{
		Dir: filepath.Join(cfg.Spool.Dir, "settle"), Gateway: id, Store: c.store,
		Registerer: deps.Registerer, Log: deps.Log, Now: deps.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("gateway.spool.dir: %w", err)
	}
	c.unsettled.Begin(s, s.Pending() > 0)
	c.debts.Store(s)
	return s, nil
}

// runs are the parts that live as long as requests are decided.
func (c *counters) runs() []func(context.Context) error {
	return []func(context.Context) error{c.heartbeat.Run, c.members.Run, c.check.Run, c.store.Run}
}

// registerStore shows what the store counts; nil registers nothing.
func registerStore(reg prometheus.Registerer, store *redisstore.Store) error {
	if reg == nil {
		return nil
	}
	stats := func() redisstore.Stats {
		if store == nil {
			return redisstore.Stats{}
		}
		return store.Stats()
	}
	counter := func(name, help string, value func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_store_available",
			Help: "1 while the counter store is asked, 0 while the breaker is open.",
		}, func() float64 {
			if store == nil || store.Available() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_store_quotas_whole",
			Help: "1 while the quotas in the counter store are known to be whole, 0 while they are being restored.",
		}, func() float64 {
			if store == nil || store.Whole() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_store_answers_asked",
			Help: "Calls whose answer was lost and is asked for again: what they charged of quotas is not given back yet.",
		}, func() float64 { return float64(stats().Asking) }),
		counter("sluice_store_restoring_total", "Decisions with quotas that were not made, because the quotas were being restored.", func() uint64 { return stats().Restoring }),
		counter("sluice_store_late_total", "Calls to the counter store that were not answered within gateway.store.budget.", func() uint64 { return stats().Left }),
		counter("sluice_store_undone_total", "Charges given back: their answer came too late, or another slot denied.", func() uint64 { return stats().Undone }),
		counter("sluice_store_lost_total", "Calls to the counter store that were sent and never answered.", func() uint64 { return stats().Lost }),
		counter("sluice_store_unknown_total", "Decisions of those calls that charged quotas and of which nobody knows whether they were charged, because Redis lost their answer as well: a counter may be too high by them. sluice reconcile shows the units.", func() uint64 { return stats().Unknown }),
	} {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}
