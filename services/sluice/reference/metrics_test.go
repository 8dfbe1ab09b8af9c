package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRowsAreWhatWasRegistered(t *testing.T) {
	t.Parallel()
	c := new(catcher)
	c.MustRegister(
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "d_seconds", Help: `Says "how long", in s\.`}, []string{"a", "b"}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "c_total", Help: "Counts."}, func() float64 { return 1 }),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "b", Help: "Rises and falls.", ConstLabels: prometheus.Labels{"x": "y"}}),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a", Help: "Empty."}, []string{"topic"}),
	)
	rows, err := c.rows()
	if err != nil {
		t.Fatal(err)
	}
	want := []metricRow{
		{"a", "gauge", "topic", "Empty."},
		{"b", "gauge", "", "Rises and falls."},
		{"c_total", "counter", "", "Counts."},
		{"d_seconds", "histogram", "a, b", `Says "how long", in s\.`},
	}
	if len(rows) != len(want) {
		t.Fatalf("rows %v", rows)
	}
	for i := range want {
		if rows[i] != want[i] {
			t.Errorf("row %+v, want %+v", rows[i], want[i])
		}
	}
}
