package jwt

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of all verifiers of a process, which share the collectors.
type metrics struct {
	verifications *prometheus.CounterVec
	cacheHits     prometheus.Counter
	fetches       *prometheus.CounterVec
	keys          *prometheus.GaugeVec
	fetched       *prometheus.GaugeVec

	// Looked up once: the request path only adds.
	accepted prometheus.Counter
	refused  [reasons]prometheus.Counter
}

// issuerMetrics are those of one issuer.
type issuerMetrics struct {
	changed, unchanged, failed prometheus.Counter
	keys, fetched              prometheus.Gauge
}

// RegisterMetrics registers all metrics of this package, for the reference.
func RegisterMetrics(reg prometheus.Registerer) error {
	_, err := newMetrics(reg)
	return err
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := &metrics{
		verifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_jwt_verifications_total", Help: "Tokens that were looked at, by result: accepted, or why not.",
		}, []string{"result"}),
		cacheHits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_jwt_cache_hits_total", Help: "Accepted tokens that had been verified before and were not verified anew.",
		}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_jwt_fetches_total", Help: "Fetches of an issuer's keys, by result: changed, unchanged, failed.",
		}, []string{"issuer", "result"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_jwt_keys", Help: "Usable keys of an issuer that are held.",
		}, []string{"issuer"}),
		fetched: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_jwt_keys_fetched_timestamp_seconds", Help: "When an issuer's keys were last fetched or confirmed, in Unix seconds; 0 before the first time.",
		}, []string{"issuer"}),
	}
	err := errors.Join(share(reg, &m.verifications), share(reg, &m.cacheHits), share(reg, &m.fetches), share(reg, &m.keys), share(reg, &m.fetched))
	m.accepted = m.verifications.WithLabelValues("accepted")
	for reason, label := range reasonLabels {
		m.refused[reason] = m.verifications.WithLabelValues(label)
	}
	return m, err
}

func (m *metrics) of(issuer string) issuerMetrics {
	return issuerMetrics{
		changed:   m.fetches.WithLabelValues(issuer, "changed"),
		unchanged: m.fetches.WithLabelValues(issuer, "unchanged"),
		failed:    m.fetches.WithLabelValues(issuer, "failed"),
		keys:      m.keys.WithLabelValues(issuer),
		fetched:   m.fetched.WithLabelValues(issuer),
	}
}

// refuse counts a refusal by its Reason.
func (m *metrics) refuse(err error) {
	var reason Reason
	if errors.As(err, &reason) && reason < reasons {
		m.refused[reason].Inc()
	}
}

// share registers a collector, or takes the one an earlier verifier registered.
func share[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if !errors.As(err, &already) {
		return err
	}
	existing, ok := already.ExistingCollector.(C)
	if !ok {
		return fmt.Errorf("metric is registered with another type: %w", err)
	}
	*c = existing
	return nil
}
