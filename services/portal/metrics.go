package portal

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	pages   *prometheus.CounterVec
	refused *prometheus.CounterVec
}

// Values of the label result.
const (
	resultShown    = "shown"
	resultNotFound = "not_found"
	resultAway     = "api_away"
)

// Values of the label why; none is what was shown without a ticket.
const (
	whyNone    = "no_ticket"
	whyExpired = "expired"
	whyForged  = "forged"
	whyTooLong = "too_long"
)

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		pages:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_portal_pages_total", Help: "Pages asked for with a good ticket."}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_portal_refused_total", Help: "Requests refused at the ticket, before anything was asked."}, []string{"why"}),
	}
	for _, result := range []string{resultShown, resultNotFound, resultAway} {
		m.pages.WithLabelValues(result)
	}
	for _, why := range []string{whyNone, whyExpired, whyForged, whyTooLong} {
		m.refused.WithLabelValues(why)
	}
	reg.MustRegister(m.pages, m.refused)
	return m
}
