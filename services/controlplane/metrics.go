package controlplane

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	panics   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_http_requests_total",
			Help: "Requests to the control plane's REST API, by route pattern, method and status code.",
		}, []string{"route", "method", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sluice_http_request_duration_seconds",
			Help:    "Time to answer a request to the control plane's REST API, by route pattern and method.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route", "method"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_http_panics_total",
			Help: "Requests to the control plane's REST API that panicked and were answered with 500.",
		}),
	}
	reg.MustRegister(m.requests, m.latency, m.panics)
	return m
}

// RegisterMetrics registers the room's metrics; the reference of metrics is
// generated with it.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

// Observe counts an answer. Labels come from our own routes and a closed list
// of methods: nothing that a caller sends can add a series.
func (m *metrics) Observe(routed *http.Request, method string, status int, took time.Duration) {
	route := "none" // refused before routing, or a path that is none of ours
	if routed != nil && routed.Pattern != "" && routed.Pattern != "/" {
		_, route, _ = strings.Cut(routed.Pattern, " ")
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route, method).Observe(took.Seconds())
}

// Panicked counts a request that panicked.
func (m *metrics) Panicked() { m.panics.Inc() }
