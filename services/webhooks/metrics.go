package webhooks

import "github.com/prometheus/client_golang/prometheus"

// Outcomes of an attempt.
const (
	outcomeDelivered = "delivered"
	outcomeRetried   = "retried"
	outcomeDead      = "dead"
	outcomeGone      = "gone"
)

type metrics struct {
	events, bad, failures prometheus.Counter
	attempts              *prometheus.CounterVec
	seconds               prometheus.Histogram
	pending, dead, oldest prometheus.Gauge
}

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		events:   counter("sluice_webhooks_events_total", "Events fanned out, repeated ones included."),
		bad:      counter("sluice_webhooks_bad_events_total", "Records of quota-events.v1 that are no CloudEvents and were passed over."),
		failures: counter("sluice_webhooks_database_failures_total", "Times deliveries could not be read from or written to Postgres."),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_webhooks_attempts_total",
			Help: "Attempts to deliver, by outcome: delivered, retried (not taken, due again), dead (not taken, given up), gone (410).",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_webhooks_attempt_seconds", Help: "How long attempts took, failed ones included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		pending: gauge("sluice_webhooks_pending", "Deliveries that are not done, of all processes."),
		dead:    gauge("sluice_webhooks_dead", "Dead letters: deliveries given up, kept until they are redelivered or too old."),
		oldest:  gauge("sluice_webhooks_oldest_pending_seconds", "Age of the oldest delivery that is not done; 0 without one."),
	}
	for _, outcome := range []string{outcomeDelivered, outcomeRetried, outcomeDead, outcomeGone} {
		m.attempts.WithLabelValues(outcome)
	}
	reg.MustRegister(m.events, m.bad, m.failures, m.attempts, m.seconds, m.pending, m.dead, m.oldest)
	return m
}
