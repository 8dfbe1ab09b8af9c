package journal

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/spool"
)

type metrics struct{ settled, broken, unknown, inflightUnknown prometheus.Counter }

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := newMetrics(reg, func() spool.Stats { return spool.Stats{} }, func() uint64 { return 0 }); err != nil {
		panic(err) // the generator's registry is its own
	}
}

func newMetrics(reg prometheus.Registerer, stats func() spool.Stats, pending func() uint64) (metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := metrics{
		settled:         counter("sluice_settle_settled_total", "Requests settled: those that passed while the store was away, corrected costs, failed calls that were given back, calls in flight when the process before died."),
		broken:          counter("sluice_settle_broken_total", "Sums of the journal that cannot be charged or given back: their counter's key holds something else."),
		unknown:         counter("sluice_settle_unknown_units_total", "Units that were to be given back when Redis was lost before it answered: they are not given back again, so that counters may be too high by them. sluice reconcile shows them."),
		inflightUnknown: counter("sluice_settle_inflight_unknown_total", "Requests that may have been in flight when the machine crashed: what they were charged stands."),
	}
	if reg == nil {
		return m, nil
	}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_settle_pending_records",
		Help: "Records of the journal that are not settled yet.",
	}, func() float64 { return float64(pending()) })
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_settle_dropped_total",
		Help: "Records of the journal that never will be settled, because it was full.",
	}, func() float64 { return float64(stats().Dropped) })
	return m, errors.Join(reg.Register(m.settled), reg.Register(m.broken), reg.Register(m.unknown), reg.Register(m.inflightUnknown), reg.Register(gauge), reg.Register(dropped))
}
