package gateway

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// reservation is what became of one, or of a repeat.
type reservation uint8

const (
	reservationReserved reservation = iota
	reservationDenied
	reservationCommitted
	reservationReleased
	reservationExpired
	reservationRepeated
	reservationFull
	reservations
)

var reservationNames = [reservations]string{"reserved", "denied", "committed", "released", "expired", "repeated", "full"}

// metrics holds each counter resolved, so that the data path looks none up by
// its labels (that takes a lock all requests would share).
type metrics struct {
	decisions      [charge.Outcomes]prometheus.Counter
	charging       charge.Metrics
	latency        prometheus.Histogram
	refused        [reject.Reasons]prometheus.Counter
	reservations   [reservations]prometheus.Counter
	reservationLag prometheus.Gauge
	upstreamErrors prometheus.Counter
}

// RegisterMetrics registers the room's metrics, for the generated reference.
// Gateways that share a registry wrap it with a label of their own.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := newMetrics(reg); err != nil {
		panic(err) // the generator's registry is its own
	}
	if err := registerStore(reg, nil); err != nil {
		panic(err)
	}
	if err := jwt.RegisterMetrics(reg); err != nil {
		panic(err)
	}
	journal.RegisterMetrics(reg)
	if _, err := newRedisCheck(nil, reg, nil); err != nil {
		panic(err)
	}
	membership.RegisterMetrics(reg)
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ratelimit_decision_latency_seconds",
			Help: "The gate's own time for a decision, without the upstream's.",
			Buckets: []float64{
				50e-6, 100e-6, 200e-6, 300e-6, 500e-6, 750e-6, 1e-3, 1.5e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1,
			},
		}),
		charging: charge.Metrics{Refunds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_gateway_refunded_calls_total",
			Help: "Calls that failed and whose charge is given back, as refundOn of their rules says; of requests in flight at a kill, sluice_settle_settled_total alone tells.",
		}), Broken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_gateway_broken_counters_total",
			Help: "Counters that could not be judged because their key holds something else; their rules' onStoreLoss held.",
		})},
		upstreamErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_gateway_upstream_errors_total",
			Help: "Requests that were let pass and that the upstream did not answer (502, 504).",
		}),
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ratelimit_decisions_total",
		Help: "Decisions by outcome; error is a 503 of a rule that is closed while the store is away.",
	}, []string{"outcome"})
	fallback := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ratelimit_redis_fallback_total",
		Help: "Decisions made without the store, by the policy that held.",
	}, []string{"policy"})
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_gateway_refused_total",
		Help: "Requests answered without a decision, by reason.",
	}, []string{"reason"})
	corrected := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_gateway_cost_corrections_total",
		Help: "Costs named by answers of services (costHeader) that differed from what was charged: charged, refunded, malformed, too-large (above the service's maxCost, and ignored), owed until the counters can be reached, or lost because one of them is broken.",
	}, []string{"result"})
	reserved := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_gateway_reservations_total",
		Help: "Reservations by what became of them: reserved, denied (not to be had, or the counters away), committed, released, expired (given back by this gateway's sweep), repeated (asked for once more, and found as it was), or full (refused, as the tenant has gateway.reservations.maxOpen open).",
	}, []string{"outcome"})
	m.reservationLag = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_gateway_reservations_lag_seconds",
		Help: "For how long the oldest reservation that is due was due at the last sweep, 0 where none was.",
	})
	resolve(reserved, reservationNames[:], m.reservations[:])
	resolve(decisions, charge.OutcomeNames[:], m.decisions[:])
	resolve(fallback, charge.PolicyNames[:], m.charging.Fallback[:])
	resolve(refused, reject.ReasonNames[:], m.refused[:])
	resolve(corrected, charge.CorrectionNames[:], m.charging.Corrections[:])
	if reg == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.latency, m.charging.Refunds, m.upstreamErrors, m.charging.Broken, m.reservationLag, decisions, fallback, refused, corrected, reserved} {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}

func resolve(vec *prometheus.CounterVec, names []string, into []prometheus.Counter) {
	for i, name := range names {
		into[i] = vec.WithLabelValues(name)
	}
}
