package keeper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/services/keeper/internal/threshold"
)

type metrics struct {
	events, bad, rows, failures prometheus.Counter
	pending, last               prometheus.Gauge
	seconds                     prometheus.Histogram
	restoring                   prometheus.Gauge
	restores, restoreFailures   prometheus.Counter
	raised                      prometheus.Counter
	lostUnits                   *prometheus.CounterVec
	restoreSeconds              prometheus.Histogram
}

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) {
	none := func() float64 { return 0 }
	newMetrics(reg, none)
	threshold.RegisterMetrics(reg)
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
	m.restoring = gauge("sluice_keeper_restoring", "Redis processes whose quotas are not known to be whole; decisions with quotas follow onStoreLoss there.")
	m.restores = counter("sluice_keeper_restores_total", "Restores of a Redis process's quotas that this keeper finished.")
	m.restoreFailures = counter("sluice_keeper_restore_failures_total", "Attempts at one that failed and were begun anew.")
	m.raised = counter("sluice_keeper_restored_numbers_total", "Numbers of quotas in Redis that were below what is known of them, and were raised.")
	m.restoreSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "sluice_keeper_restore_seconds", Help: "From when quotas were seen not to be whole to when they were again.",
		Buckets: []float64{.5, 1, 2, 3, 5, 10, 20, 30, 60, 300},
	})
	m.lostUnits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_keeper_lost_units_total",
		Help: "Units of calls whose answers were lost together with Redis, by what became of them: returned, for the totals that came back held them; or unknown, because nobody could tell, so that they may be counted though they were not admitted.",
	}, []string{"result"})
	for _, result := range []string{"returned", "unknown"} {
		m.lostUnits.WithLabelValues(result)
	}
	reg.MustRegister(m.lostUnits, m.restoring, m.restores, m.restoreFailures, m.raised, m.restoreSeconds)
	reg.MustRegister(m.events, m.bad, m.rows, m.failures, m.pending, m.last, m.seconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_keeper_lag_seconds",
			Help: "Age of the oldest usage event that is read and not in Postgres yet; 0 when all of them are."}, lag))
	return m
}
