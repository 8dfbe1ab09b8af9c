package settle

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/spool"
)

type metrics struct{ settled, broken prometheus.Counter }

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := newMetrics(reg, func() spool.Stats { return spool.Stats{} }); err != nil {
		panic(err) // the generator's registry is its own
	}
}

func newMetrics(reg prometheus.Registerer, stats func() spool.Stats) (metrics, error) {
	m := metrics{
		settled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_settle_settled_total",
			Help: "Requests that passed while the store was away, and have been charged since.",
		}),
		broken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_settle_broken_total",
			Help: "Sums of what passed while the store was away that cannot be charged: their counter's key holds something else.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	pending := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_settle_pending_records",
		Help: "Requests that passed while the store was away, and are not charged yet.",
	}, func() float64 { return float64(stats().Pending) })
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_settle_dropped_total",
		Help: "Requests that passed while the store was away, and never will be charged: the journal was full.",
	}, func() float64 { return float64(stats().Dropped) })
	return m, errors.Join(reg.Register(m.settled), reg.Register(m.broken), reg.Register(pending), reg.Register(dropped))
}
