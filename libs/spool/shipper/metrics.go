package shipper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/spool"
)

type metrics struct {
	shipped, refused, retries prometheus.Counter
}

// RegisterMetrics registers the shipper's and its spool's metrics; a nil
// registerer makes them without. stats may be nil, for a reference of names.
func RegisterMetrics(reg prometheus.Registerer, stats func() spool.Stats) error {
	_, err := newMetrics(reg, stats)
	return err
}

func newMetrics(reg prometheus.Registerer, stats func() spool.Stats) (*metrics, error) {
	if stats == nil {
		stats = func() spool.Stats { return spool.Stats{} }
	}
	m := &metrics{
		shipped: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_spool_shipped_total",
			Help: "Records of the spool that Kafka acknowledged."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_spool_refused_total",
			Help: "Records of the spool that Kafka refused for good; they were skipped."}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_spool_retries_total",
			Help: "Records of the spool that were produced again after an error."}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range append(spoolMetrics(stats), m.shipped, m.refused, m.retries) {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func spoolMetrics(stats func() spool.Stats) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_spool_pending_records",
			Help: "Records in the spool that Kafka has not acknowledged."},
			func() float64 { return float64(stats().Pending) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_spool_pending_bytes",
			Help: "Bytes in the spool that Kafka has not acknowledged, frames included."},
			func() float64 { return float64(stats().PendingBytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_spool_capacity_bytes",
			Help: "Bytes the spool can hold."},
			func() float64 { return float64(stats().CapacityBytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_spool_dropped_total",
			Help: "Records lost because the spool was full, they were too large or damaged; kept across restarts."},
			func() float64 { return float64(stats().Dropped) }),
	}
}
