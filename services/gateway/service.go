package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/spool"
	"github.com/sluice-platform/sluice/libs/spool/shipper"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/explain"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// Deps are what a gateway uses.
type Deps struct {
	// Redis holds the counters; the caller's to close, after Run returned. Its
	// options should come through redisstore.Configure.
	Redis redis.UniversalClient
	// Cache holds stored answers, nil where each process keeps its own; the
	// caller's to close. Its options should come through cache.ConfigureRedis.
	Cache  redis.UniversalClient
	Stream stream.Config
	Log    *slog.Logger
	// Registerer gets the metrics; two gateways in one process each need one
	// wrapped with a label of their own. nil registers none.
	Registerer prometheus.Registerer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Service is a gateway. Make it with New; Run once. Ready, Addr and
// AdminRoutes may be called at any time, from any goroutine.
type Service struct {
	cfg    Config
	deps   Deps
	gate   *gate
	tables *tables
	// explainer answers POST /v1/explain.
	explainer *explain.Explainer
	// lister and releaser answer operators who list and release reservations.
	lister   *lister
	releaser *releaser
	// counters are the store and what stands in for it.
	counters *counters
	tokens   *jwt.Verifier // nil without issuers
	server   *server
	stopped  atomic.Bool
}

// New checks the configuration and ties the parts together; it opens nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	id, err := cfg.name()
	if err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.Default()
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Log = deps.Log.With("gateway", id)
	s := &Service{cfg: cfg, deps: deps}
	if s.counters, err = newCounters(id, cfg, deps, s.Addr); err != nil {
		return nil, err
	}
	m, err := newMetrics(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	trusted, err := cfg.Identity.prefixes()
	if err != nil {
		return nil, err
	}
	asking, err := cfg.Explain.callers()
	if err != nil {
		return nil, err
	}
	operators, err := cfg.Reservations.operators()
	if err != nil {
		return nil, err
	}
	to := sinks{index: rule.New(), routes: routing.NewTable(deps.Log), keys: identify.NewKeys(), grants: newGrantTable(), purges: purgeSink{httpcache.NewPurges()}}
	if s.tables, err = newTables(deps.Stream, to, deps.Registerer, deps.Log, deps.Now); err != nil {
		return nil, err
	}
	cached := cfg.Cache.HTTPOptions()
	cached.Redis, cached.Metrics, cached.Log = deps.Cache, cache.NewMetrics(deps.Registerer), deps.Log
	cached.Purges, cached.Usable = to.purges.index, cfg.Cache.usable(s.tables.purges.Ready, s.tables.purges.Age)
	s.gate = &gate{
		id: id, now: deps.Now, log: deps.Log, metrics: m, tables: s.tables.ready,
		identifier:   identify.Identifier{Trusted: trusted, Keys: to.keys},
		admission:    routing.Admission{KeysAge: s.tables.keys.Age, MaxStaleness: cfg.Identity.MaxStaleness},
		forwardToken: cfg.Identity.JWT.ForwardToken, answers: cfg.Answers,
		grants: to.grants, routes: to.routes, rules: to.index, charger: charge.Charger{Store: s.counters.store, Shares: s.counters.shares, Unsettled: &s.counters.unsettled}, cache: httpcache.New(cached),
	}
	if s.gate.book, err = s.counters.openBook(cfg, deps, s.gate); err != nil {
		return nil, err
	}
	if len(cfg.Identity.JWT.Issuers) > 0 {
		s.tokens, err = jwt.New(cfg.Identity.JWT.Config, jwt.Deps{Now: deps.Now, Log: deps.Log, Registerer: deps.Registerer})
		if err != nil {
			return nil, fmt.Errorf("gateway.identity.jwt: %w", err)
		}
		s.gate.identifier.Tokens = s.tokens
	}
	s.explainer = newExplainer(s.gate, to.index, s.tables, asking)
	s.lister = &lister{gate: s.gate, operators: operators}
	s.releaser = &releaser{gate: s.gate, operators: operators}
	s.server = newServer(cfg, s.gate, deps.Log)
	return s, nil
}

// Ready returns nil when requests can be matched and counted: each table has
// once equalled a mirror record, Redis was reached once, and the gate is open.
// Redis away later does not make a gateway unready, since rules say what is
// done without it; nor does an issuer of
// tokens, whose tokens alone are answered 503.
func (s *Service) Ready() error {
	switch {
	case s.stopped.Load():
		return errors.New("draining")
	case s.Addr() == "":
		return errors.New("not listening yet")
	}
	return errors.Join(s.tables.ready(), s.counters.check.ready())
}

// Degraded says which rules are not in force as they were written, and whether
// quotas are charged; empty where all is well. It does not make the gateway
// unready: the other rules hold, and the rules of quotas say what holds without.
func (s *Service) Degraded() string {
	told := s.tables.degraded()
	if s.counters.store.Whole() {
		return told
	}
	if told != "" {
		told += "; "
	}
	return told + "quotas are being restored: their rules' onStoreLoss holds"
}

// Addr is the address clients connect to, empty before Run has opened it.
func (s *Service) Addr() string { return s.server.addr() }

// Run reads the tables, serves requests and ships their events until ctx is
// cancelled. Then it stops accepting, waits for requests under way (at most
// DrainTimeout) and for their events to be shipped (at most
// Spool.DrainTimeout), and returns nil. What is not shipped by then waits on
// disk for the next start.
func (s *Service) Run(ctx context.Context) error {
	listener, err := s.server.listen(ctx)
	if err != nil {
		return err
	}
	events, err := spool.Open(spool.Options{Dir: s.cfg.Spool.Dir, SizeBytes: s.cfg.Spool.SizeBytes, Log: s.deps.Log})
	if err != nil {
		return errors.Join(fmt.Errorf("spool of usage events (gateway.spool.dir): %w", err), listener.Close())
	}
	ship, err := shipper.New(shipper.Options{
		Spool: events, Stream: s.deps.Stream, Topic: usage.Topic, DrainTimeout: s.cfg.Spool.DrainTimeout,
		Registerer: s.deps.Registerer, Log: s.deps.Log,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("shipper of usage events: %w", err), events.Close(), listener.Close())
	}
	debts, err := s.counters.openDebts(s.gate.id, s.cfg, s.deps)
	if err != nil {
		return errors.Join(err, events.Close(), listener.Close())
	}
	s.gate.events, s.gate.charger.Journal = events, debts
	transport := proxy.NewTransport(s.cfg.Upstream)
	s.gate.prepare(transport)

	// Each part has its own context: they stop one after the other, not at once.
	background := context.WithoutCancel(ctx)
	readers := []func(context.Context) error{s.tables.rules.Run, s.tables.overrides.Run, s.tables.catalog.Run, s.tables.keys.Run, s.tables.grants.Run, s.tables.purges.Run}
	if s.tokens != nil {
		readers = append(readers, s.tokens.Run)
	}
	reading := start(background, readers...)
	shipping := start(background, ship.Run)
	caching := start(background, s.gate.cache.Run)
	counting := start(background, append(s.counters.runs(), debts.Run)...)
	sweeping := start(background, s.gate.sweepReservations)
	serving := start(background, s.server.serve(listener))

	select {
	case <-ctx.Done():
	case <-reading.failed:
	case <-shipping.failed:
	case <-counting.failed:
	case <-sweeping.failed:
	case <-serving.failed:
	}
	s.stopped.Store(true)
	errs := []error{serving.stop(), sweeping.stop(), caching.stop()}
	transport.CloseIdleConnections()
	// The store goes before the journal: answers under way may owe something.
	errs = append(errs, shipping.stop(), events.Close(), counting.stop(), s.counters.store.Close(), debts.Close(), reading.stop())
	return errors.Join(errs...)
}
