package indexer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/schemas/events/deadletters"
)

type metrics struct {
	documents, retries, pruned prometheus.Counter
	letters                    *prometheus.CounterVec
}

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg, func() float64 { return 0 }) }

// newMetrics takes what computes the lag in seconds.
func newMetrics(reg prometheus.Registerer, lag func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		documents: counter("sluice_indexer_documents_total", "Usage events that the store has, repeated ones included."),
		retries:   counter("sluice_indexer_retries_total", "Usage events that were put into the store again."),
		pruned:    counter("sluice_indexer_pruned_total", "Indices (Elasticsearch) or rows (Postgres) deleted for their age."),
		letters: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_indexer_dead_letters_total",
			Help: "Usage events written to usage-dead-letters.v1, by reason."}, []string{"reason"}),
	}
	for _, reason := range []string{deadletters.ReasonUndecodable, deadletters.ReasonRefused, deadletters.ReasonLate} {
		m.letters.WithLabelValues(reason)
	}
	reg.MustRegister(m.documents, m.retries, m.pruned, m.letters,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_indexer_lag_seconds",
			Help: "Age of the oldest event in the batch at work; between batches, of the last event when it was settled."}, lag))
	return m
}
