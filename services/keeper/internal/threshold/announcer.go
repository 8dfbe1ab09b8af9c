package threshold

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/keeper/internal/counter"
)

const (
	// rowsPerTransaction keeps a transaction from delaying the WAL that rules
	// travel by.
	rowsPerTransaction = 200
	// attemptLimit ends a transaction that Postgres takes and never answers.
	attemptLimit = 20 * time.Second
)

// Options are what an Announcer uses.
type Options struct {
	Pool *pgxpool.Pool // of a user who may insert into thresholds and outbox
	// MaxStored bounds the rows remembered as stored.
	MaxStored  int
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Announcer announces what charges reached. It is safe for concurrent use.
type Announcer struct {
	o       Options
	metrics *metrics
	woken   chan struct{} // holds a token when something waits
	// writing has one place: whoever holds it has taken waiting rows and has
	// not yet stored or returned them.
	writing chan struct{}

	mu      sync.Mutex
	waiting map[row]*observation
	stored  map[row]struct{}
}

// New makes an Announcer; it starts nothing.
func New(o Options) *Announcer {
	a := &Announcer{
		o: o, woken: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		waiting: map[row]*observation{}, stored: map[row]struct{}{},
	}
	a.metrics = newMetrics(o.Registerer, func() float64 { return float64(a.Waiting()) })
	return a
}

// Observe takes in a charge of the decision, made at that time. The totals of a
// pending charge are not known; counters of shadow rules limit nobody.
func (a *Announcer) Observe(c *usage.Charge, at time.Time, decision string) {
	if c.Pending || !plausible(c) || counter.Shadow(c.Counter) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var o *observation
	for r := range reached(c) {
		if _, known := a.stored[r]; known || a.waiting[r] != nil {
			continue
		}
		if o == nil {
			o = &observation{c.Metric, c.Consumed, c.Refunded, c.Forfeited, at, decision}
		}
		a.waiting[r] = o
	}
	if o != nil {
		select {
		case a.woken <- struct{}{}:
		default:
		}
	}
}

// Waiting is how many rows are not in Postgres yet.
func (a *Announcer) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// take empties what waits.
func (a *Announcer) take() map[row]*observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.waiting
	a.waiting = map[row]*observation{}
	return taken
}

// putBack returns rows that could not be stored; the earlier observation stays.
func (a *Announcer) putBack(rows []row, taken map[row]*observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range rows {
		a.waiting[r] = taken[r]
	}
}

func (a *Announcer) remember(rows []row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.stored)+len(rows) > a.o.MaxStored {
		clear(a.stored) // Postgres knows them
	}
	for _, r := range rows {
		a.stored[r] = struct{}{}
	}
}

// Flush stores everything that waits: rows, and the messages that announce
// them, in one transaction a part. Rows that fail wait on.
func (a *Announcer) Flush(ctx context.Context) error {
	select {
	case a.writing <- struct{}{}:
		defer func() { <-a.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	taken := a.take()
	rows := slices.SortedFunc(maps.Keys(taken), row.compare)
	for len(rows) > 0 {
		part := rows[:min(len(rows), rowsPerTransaction)]
		announced, err := store(ctx, a.o.Pool, part, taken)
		if err != nil {
			a.putBack(rows, taken)
			a.metrics.failures.Inc()
			return fmt.Errorf("store thresholds: %w", err)
		}
		a.metrics.reached.Add(float64(announced))
		a.remember(part)
		rows = rows[len(part):]
	}
	return nil
}

// Run stores whatever waits until ctx ends. What waits then is stored by the
// last Flush.
func (a *Announcer) Run(ctx context.Context) {
	pause := backoff.Backoff{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.woken:
		}
		for err := a.Flush(ctx); err != nil; err = a.Flush(ctx) {
			if ctx.Err() != nil {
				return
			}
			a.o.Log.Warn("thresholds could not be stored and are tried again", "error", err)
			if pause.Wait(ctx) != nil {
				return
			}
		}
		pause.Reset()
	}
}

type metrics struct {
	reached, failures prometheus.Counter
}

// RegisterMetrics registers the package's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg, func() float64 { return 0 }) }

func newMetrics(reg prometheus.Registerer, waiting func() float64) *metrics {
	m := &metrics{
		reached: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_keeper_thresholds_reached_total", Help: "Thresholds of quotas announced on quota-events.v1.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_keeper_threshold_failures_total", Help: "Times reached thresholds could not be stored in Postgres; they are tried again.",
		}),
	}
	reg.MustRegister(m.reached, m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_keeper_thresholds_waiting", Help: "Reached thresholds that are not in Postgres yet.",
	}, waiting))
	return m
}
