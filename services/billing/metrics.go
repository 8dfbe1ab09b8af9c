package billing

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	invoices    *prometheus.CounterVec
	corrections prometheus.Counter
	failures    prometheus.Counter
	last        prometheus.Gauge
	seconds     prometheus.Histogram
}

// Values of the label wrote.
const (
	wroteDraft = "draft"
	wroteFinal = "final"
)

// RegisterMetrics registers the room's metrics, for the reference.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		invoices:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_billing_invoices_total", Help: "Invoices written, as drafts that changed or as final."}, []string{"wrote"}),
		corrections: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_billing_corrections_total", Help: "Lines on final invoices that correct earlier ones: use that became known after the days of grace."}),
		failures:    prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_billing_failures_total", Help: "Customers whose invoices could not be worked out in a pass; the log says why. They are tried again in the next."}),
		last:        prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_billing_last_pass_timestamp_seconds", Help: "When the last pass over all customers ended, Unix time; 0 before the first."}),
		seconds:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sluice_billing_pass_seconds", Help: "How long a pass over all customers took.", Buckets: []float64{.01, .1, 1, 10, 60, 300, 1800}}),
	}
	m.invoices.WithLabelValues(wroteDraft)
	m.invoices.WithLabelValues(wroteFinal)
	reg.MustRegister(m.invoices, m.corrections, m.failures, m.last, m.seconds)
	return m
}
