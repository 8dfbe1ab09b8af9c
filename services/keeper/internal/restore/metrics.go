package restore

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	restoring          prometheus.Gauge
	restores, failures prometheus.Counter
	raised             prometheus.Counter
	seconds            prometheus.Histogram
}

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		restoring: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_keeper_restoring",
			Help: "Redis processes whose quotas are not known to be whole; decisions with quotas follow onStoreLoss there.",
		}),
		restores: counter("sluice_keeper_restores_total", "Restores of a Redis process's quotas that this keeper finished."),
		failures: counter("sluice_keeper_restore_failures_total", "Attempts at one that failed and were begun anew."),
		raised:   counter("sluice_keeper_restored_numbers_total", "Numbers of quotas in Redis that were below what is known of them, and were raised."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_keeper_restore_seconds", Help: "From when quotas were seen not to be whole to when they were again.",
			Buckets: []float64{.5, 1, 2, 3, 5, 10, 20, 30, 60, 300},
		}),
	}
	reg.MustRegister(m.restoring, m.restores, m.failures, m.raised, m.seconds)
	return m
}
