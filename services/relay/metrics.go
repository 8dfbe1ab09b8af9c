package relay

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	active      prometheus.Gauge
	sessions    prometheus.Counter
	inFlight    prometheus.Gauge
	parked      prometheus.Gauge
	slotLag     prometheus.Gauge
	ackSeconds  prometheus.Histogram
	reconcile   prometheus.Histogram
	published   *prometheus.CounterVec
	skipped     *prometheus.CounterVec
	differences *prometheus.CounterVec
	surprises   *prometheus.CounterVec
	records     *prometheus.GaugeVec
}

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	perTopic := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"topic"})
	}
	m := &metrics{
		active:   gauge("sluice_relay_active", "1 while this relay holds the replication slot, 0 while it stands by."),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_relay_sessions_total", Help: "Times this relay took the replication slot."}),
		inFlight: gauge("sluice_relay_in_flight", "Outbox rows handed to Kafka and not acknowledged yet."),
		parked:   gauge("sluice_relay_parked", "Outbox rows that Kafka refuses for good; they stay in the outbox and are skipped."),
		slotLag:  gauge("sluice_relay_slot_lag_bytes", "WAL that Postgres keeps for the relay's replication slot."),
		ackSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_relay_ack_seconds", Help: "From the commit of an outbox row to Kafka's acknowledgement.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60},
		}),
		reconcile: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_relay_reconcile_seconds", Help: "Time one comparison of all compacted topics with their views took.",
			Buckets: []float64{.005, .01, .05, .1, .5, 1, 5, 15, 60},
		}),
		published:   perTopic("sluice_relay_published_total", "Records handed to Kafka, mirror records not counted."),
		skipped:     perTopic("sluice_relay_skipped_total", "Outbox rows not published because the topic holds the same or newer."),
		differences: perTopic("sluice_relay_differences_total", "Keys that reconciliation found to differ from Postgres, and published."),
		surprises:   perTopic("sluice_relay_surprises_total", "Records in a compacted topic that this relay did not expect, such as those of a stalled relay."),
		records:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "sluice_relay_records", Help: "Live records of a compacted topic by the relay's account."}, []string{"topic"}),
	}
	reg.MustRegister(m.active, m.sessions, m.inFlight, m.parked, m.slotLag, m.ackSeconds, m.reconcile,
		m.published, m.skipped, m.differences, m.surprises, m.records)
	return m
}
