package keeper

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// thresholds announces what charges reached. Charges are seen as they are
// folded; a goroutine of its own asks and writes Postgres at once, so neither
// the fold nor the next checkpoint is waited for. Offsets are committed only
// after everything seen up to them is settled.
type thresholds struct {
	deps    Deps
	watch   *watch
	metrics *thresholdMetrics
	// settling has one place: whoever holds it has taken sightings and not yet
	// written or given them back.
	settling chan struct{}
}

func newThresholds(cfg Config, deps Deps) *thresholds {
	t := &thresholds{deps: deps, watch: newWatch(cfg.MaxCounters), settling: make(chan struct{}, 1)}
	t.metrics = newThresholdMetrics(deps.Registerer, func() float64 { return float64(t.watch.size()) })
	return t
}

// run settles whatever comes until ctx ends. What then waits is the last
// checkpoint's to settle.
func (t *thresholds) run(ctx context.Context) {
	pause := backoff.Backoff{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.watch.woken:
		}
		for err := t.settle(ctx); err != nil; err = t.settle(ctx) {
			if ctx.Err() != nil {
				return
			}
			t.deps.Log.Warn("thresholds could not be settled and are tried again", "error", err)
			if pause.Wait(ctx) != nil {
				return
			}
		}
		pause.Reset()
	}
}

type thresholdMetrics struct {
	reached, failures prometheus.Counter
}

func newThresholdMetrics(reg prometheus.Registerer, waiting func() float64) *thresholdMetrics {
	m := &thresholdMetrics{
		reached: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_keeper_thresholds_reached_total", Help: "Thresholds of quotas announced on quota-events.v1.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_keeper_threshold_failures_total", Help: "Times thresholds could not be brought into Postgres; they are tried again.",
		}),
	}
	reg.MustRegister(m.reached, m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_keeper_threshold_sightings", Help: "Counters whose thresholds wait for Postgres.",
	}, waiting))
	return m
}
