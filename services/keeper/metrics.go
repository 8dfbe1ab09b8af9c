package keeper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/services/keeper/internal/restore"
	"github.com/sluice-platform/sluice/services/keeper/internal/threshold"
)

type metrics struct {
	events, bad, rows, failures prometheus.Counter
	pending, last               prometheus.Gauge
	seconds                     prometheus.Histogram
}

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) {
	none := func() float64 { return 0 }
	newMetrics(reg, none)
	threshold.RegisterMetrics(reg)
	restore.RegisterMetrics(reg)
	newForfeitMetrics(reg)
}

// newMetrics takes what computes the lag in seconds.
func newMetrics(reg prometheus.Registerer, lag func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		events:   counter("sluice_keeper_events_total", "Usage events folded, repeated ones included."),
		bad:      counter("sluice_keeper_bad_events_total", "Usage events or charges that could not be folded; the indexer has them as dead letters or documents."),
		rows:     counter("sluice_keeper_checkpoint_rows_total", "Rows of counters sent to Postgres."),
		failures: counter("sluice_keeper_checkpoint_failures_total", "Checkpoints that failed; what they held stays in memory."),
		pending:  gauge("sluice_keeper_pending_counters", "Counters touched since the last checkpoint."),
		last:     gauge("sluice_keeper_last_checkpoint_timestamp_seconds", "When the last checkpoint ended well, Unix time; 0 before the first."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_keeper_checkpoint_seconds", Help: "How long a checkpoint took, failed ones included.",
			Buckets: []float64{.005, .01, .05, .1, .5, 1, 5, 10, 30},
		}),
	}
	reg.MustRegister(m.events, m.bad, m.rows, m.failures, m.pending, m.last, m.seconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_keeper_lag_seconds",
			Help: "Age of the oldest usage event that is read and not in Postgres yet; 0 when all of them are."}, lag))
	return m
}
