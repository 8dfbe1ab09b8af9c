package stream

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of tables and groups. Several of them in one process share the
// collectors and differ by the label topic.
type metrics struct {
	records     *prometheus.GaugeVec
	age         *prometheus.GaugeVec
	ready       *prometheus.GaugeVec
	stale       *prometheus.CounterVec
	bad         *prometheus.CounterVec
	unread      *prometheus.GaugeVec
	rebuilds    *prometheus.CounterVec
	propagation *prometheus.HistogramVec
	batches     *prometheus.CounterVec
	retries     *prometheus.CounterVec
	outOfRange  *prometheus.CounterVec
}

// RegisterMetrics registers all metrics of this package, for the reference.
// It panics where one of their names is taken by something else.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := newMetrics(reg); err != nil {
		panic(err)
	}
}

// propagationBuckets: from a tenth of the budget of 35 ms to a minute of trouble.
var propagationBuckets = []float64{.0025, .005, .01, .015, .025, .035, .05, .1, .25, .5, 1, 2.5, 5, 15, 60}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	topic := []string{"topic"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, topic)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, topic)
	}
	m := &metrics{
		records:  gauge("sluice_table_records", "Live records of a compacted topic that are held in memory."),
		age:      gauge("sluice_table_age_seconds", "Seconds since the newest mirror record that this table equalled; +Inf before the first."),
		ready:    gauge("sluice_table_ready", "1 once the table has equalled a mirror record."),
		stale:    counter("sluice_table_stale_records_total", "Records older than what was held for their key; ignored."),
		bad:      counter("sluice_table_bad_records_total", "Records that could not be read; their key keeps its last good value."),
		unread:   gauge("sluice_table_unread_records", "Live keys of a compacted topic of which no version could be read."),
		rebuilds: counter("sluice_table_rebuilds_total", "Copies of a topic that could not be continued and were built anew."),
		propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_rule_propagation_seconds", Help: "From the commit in Postgres to the table of this process.", Buckets: propagationBuckets,
		}, topic),
		batches:    counter("sluice_group_batches_total", "Batches of a consumer group that were handled."),
		retries:    counter("sluice_group_retries_total", "Batches of a consumer group that failed and are tried again."),
		outOfRange: counter("sluice_group_lost_positions_total", "Committed offsets that no longer exist: records were deleted before they were read."),
	}
	return m, errors.Join(
		share(reg, &m.records), share(reg, &m.age), share(reg, &m.ready), share(reg, &m.stale), share(reg, &m.bad), share(reg, &m.unread),
		share(reg, &m.rebuilds), share(reg, &m.propagation), share(reg, &m.batches), share(reg, &m.retries), share(reg, &m.outOfRange),
	)
}

// share registers a collector, or takes the one registered by an earlier table.
func share[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		existing, ok := already.ExistingCollector.(C)
		if !ok {
			return fmt.Errorf("metric is registered with another type: %w", err)
		}
		*c = existing
		return nil
	}
	return err
}
