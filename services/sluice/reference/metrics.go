package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/spool/shipper"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/services/billing"
	"github.com/sluice-platform/sluice/services/controlplane"
	"github.com/sluice-platform/sluice/services/demo"
	"github.com/sluice-platform/sluice/services/gateway"
	"github.com/sluice-platform/sluice/services/indexer"
	"github.com/sluice-platform/sluice/services/keeper"
	"github.com/sluice-platform/sluice/services/portal"
	"github.com/sluice-platform/sluice/services/relay"
	"github.com/sluice-platform/sluice/services/webhooks"
)

// origins are all that register metrics of ours, in the order of the document.
var origins = []struct {
	name, about string
	register    func(prometheus.Registerer) error
}{
	{"controlplane", "", always(controlplane.RegisterMetrics)},
	{"relay", "", always(relay.RegisterMetrics)},
	{"gateway", "", always(gateway.RegisterMetrics)},
	{"keeper", "", always(keeper.RegisterMetrics)},
	{"billing", "", always(billing.RegisterMetrics)},
	{"portal", "", always(portal.RegisterMetrics)},
	{"indexer", "", always(indexer.RegisterMetrics)},
	{"webhooks", "", always(webhooks.RegisterMetrics)},
	{"demo", "", always(demo.RegisterMetrics)},
	{"tables and groups", "Of each room that reads Kafka (libs/stream).", always(stream.RegisterMetrics)},
	{"cache", "Of each gateway, for each service that is cached (libs/cache).", always(func(r prometheus.Registerer) { cache.NewMetrics(r) })},
	{"spool", "Of each gateway (libs/spool/shipper).", func(r prometheus.Registerer) error { return shipper.RegisterMetrics(r, nil) }},
}

func always(register func(prometheus.Registerer)) func(prometheus.Registerer) error {
	return func(r prometheus.Registerer) error { register(r); return nil }
}

// Metrics is metrics.md.
func Metrics() ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + notice + `On the admin port, ` + "`GET /metrics`" + `. Each of these carries, besides its own labels, ` + "`module`" + `: the module of the process it comes from
(a second gateway in one process is ` + "`gateway-2`" + `). No label ever holds a tenant, user or key. The Go runtime's (` + "`go_…`" + `), the process's (` + "`process_…`" + `)
and the metrics handler's own (` + "`promhttp_…`" + `) come with them.
`)
	for _, o := range origins {
		c := new(catcher)
		if err := o.register(c); err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", o.name, err)
		}
		rows, err := c.rows()
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", o.name, err)
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", o.name)
		if o.about != "" {
			b.WriteString(o.about + "\n\n")
		}
		b.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, r.kind, code(r.labels), cell(r.help))
		}
	}
	return []byte(b.String()), nil
}

// catcher is a Registerer that keeps what is registered.
type catcher struct{ all []prometheus.Collector }

func (c *catcher) Register(x prometheus.Collector) error { c.all = append(c.all, x); return nil }
func (c *catcher) MustRegister(xs ...prometheus.Collector) {
	c.all = append(c.all, xs...)
}
func (c *catcher) Unregister(prometheus.Collector) bool { return false }

type metricRow struct{ name, kind, labels, help string }

func (c *catcher) rows() ([]metricRow, error) {
	var rows []metricRow
	for _, x := range c.all {
		descs := make(chan *prometheus.Desc)
		go func() { defer close(descs); x.Describe(descs) }()
		for d := range descs {
			r, err := describe(d)
			if err != nil {
				return nil, err
			}
			if r.kind = kind(x, d); r.kind == "" {
				return nil, fmt.Errorf("%s: no type to be found in %T", r.name, x)
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b metricRow) int { return cmp.Compare(a.name, b.name) })
	return rows, nil
}

// descText is all that a Desc tells of itself; strings are quoted as in Go.
var descText = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),(?: unit: "[^"]*",)? constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func describe(d *prometheus.Desc) (metricRow, error) {
	m := descText.FindStringSubmatch(d.String())
	if m == nil {
		return metricRow{}, fmt.Errorf("cannot read %s", d)
	}
	name, nameErr := strconv.Unquote(m[1])
	help, helpErr := strconv.Unquote(m[2])
	if err := errors.Join(nameErr, helpErr); err != nil {
		return metricRow{}, fmt.Errorf("cannot read %s: %w", d, err)
	}
	return metricRow{name: name, help: help, labels: strings.ReplaceAll(m[3], ",", ", ")}, nil
}

// kind is a vector's by its Go type, since an empty one collects nothing, else
// that of a collected metric.
func kind(x prometheus.Collector, d *prometheus.Desc) string {
	switch x.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	metrics := make(chan prometheus.Metric)
	go func() { defer close(metrics); x.Collect(metrics) }()
	found := ""
	for m := range metrics {
		var written dto.Metric
		if m.Desc() == d && m.Write(&written) == nil {
			found = kindOf(&written)
		}
	}
	return found
}

func kindOf(m *dto.Metric) string {
	v := reflect.ValueOf(m).Elem()
	for _, name := range []string{"Counter", "Gauge", "Histogram", "Summary"} {
		if !v.FieldByName(name).IsNil() {
			return strings.ToLower(name)
		}
	}
	return ""
}
