package settle

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/spool"
)

type metrics struct{ settled, broken, unheld prometheus.Counter }

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := newMetrics(reg, func() spool.Stats { return spool.Stats{} }, func() uint64 { return 0 }); err != nil {
		panic(err) // the generator's registry is its own
	}
}

func newMetrics(reg prometheus.Registerer, stats func() spool.Stats, pending func() uint64) (metrics, error) {
	m := metrics{
		settled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_settle_settled_total",
			Help: "What was settled: requests that passed while the store was away, corrected costs, failed calls that were given back, calls in flight when the process before died.",
		}),
		broken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_settle_broken_total",
			Help: "Sums of the journal that cannot be charged or given back: their counter's key holds something else.",
		}),
		unheld: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_settle_unheld_total",
			Help: "Decisions asked for without a note on disk, because it took none: if the process is killed while their requests are in flight, what they charged is not given back.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_settle_pending_records",
		Help: "What is not settled yet: requests that passed while the store was away, corrected costs, failed calls to be given back, calls in flight when the process before died.",
	}, func() float64 { return float64(pending()) })
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_settle_dropped_total",
		Help: "Records of the journal that never will be settled, because it was full.",
	}, func() float64 { return float64(stats().Dropped) })
	return m, errors.Join(reg.Register(m.settled), reg.Register(m.broken), reg.Register(m.unheld), reg.Register(gauge), reg.Register(dropped))
}
