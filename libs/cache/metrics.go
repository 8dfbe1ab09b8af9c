package cache

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of any number of caches, told apart by the label family. Other labels have a fixed vocabulary.
type Metrics struct {
	requests      *prometheus.CounterVec
	waiters       *prometheus.HistogramVec
	loads         *prometheus.CounterVec
	loadSeconds   *prometheus.HistogramVec
	inFlight      *prometheus.GaugeVec
	overlaps      *prometheus.CounterVec
	invalidations *prometheus.CounterVec
	drops         *prometheus.CounterVec
	lost          *prometheus.CounterVec
	redisUp       *prometheus.GaugeVec
	nearLimit     *prometheus.CounterVec
	sourceUp      *prometheus.GaugeVec
}

// NewMetrics registers with reg; nil registers nowhere. It panics when a name is taken.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"family"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"family"})
	}
	m := &Metrics{
		requests: counter("cache_requests_total", "Reads by where the answer came from: hit_l1, hit_l2, miss, coalesced, stale, fallback, error.", "result"),
		waiters: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cache_load_waiters", Help: "Readers of this process that waited for one load, by whether this process led it.",
			Buckets: []float64{0, 1, 2, 5, 10, 20, 50, 100, 500, 1000, 10000},
		}, []string{"family", "role"}),
		loads: counter("cache_loads_total", "Calls of the loader by outcome: ok, not_found, answer, error, panic, timeout.", "outcome"),
		loadSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cache_load_seconds", Help: "Time of one call of the loader.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"family"}),
		inFlight:      gauge("cache_loads_in_flight_per_key_max", "The most cacheable loads of one key that ran at once in this process, in its lifetime; above 1 the guarantee is broken (a loader outlived its time-out)."),
		overlaps:      counter("cache_loads_overlapping_total", "Cacheable loads that began in this process while another one of their key ran: each breaks the guarantee (a loader outlived its time-out)."),
		invalidations: counter("cache_invalidations_total", "Invalidations heard, by kind: soft, hard.", "kind"),
		drops:         counter("cache_l1_drops_total", "Times all of L1 was dropped because invalidations may have been missed."),
		lost:          counter("cache_lock_lost_total", "Runs that found their lock lost or their value invalidated when they wrote, by reason: lost, superseded.", "reason"),
		nearLimit:     counter("cache_stale_near_limit_total", "Stale answers given in the last tenth of the time in which they may be; what follows waits, or fails."),
		sourceUp:      gauge("cache_source_up", "1 while loads are let through, 0 while the breaker holds them back after failures in a row over all keys."),
		redisUp:       gauge("cache_redis_up", "1 while Redis answers, 0 while loads are limited to this process."),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.waiters, m.loads, m.loadSeconds, m.inFlight, m.overlaps, m.invalidations, m.drops, m.lost, m.nearLimit, m.sourceUp, m.redisUp)
	}
	return m
}

// familyMetrics are resolved once, so that the hot path looks nothing up.
type familyMetrics struct {
	bySource         [Fallback + 1]prometheus.Counter
	errors           prometheus.Counter
	leaders, follows prometheus.Observer
	loads            map[string]prometheus.Counter
	loadSeconds      prometheus.Observer
	soft, hard       prometheus.Counter
	drops            prometheus.Counter
	lost, superseded prometheus.Counter
	nearLimit        prometheus.Counter
	sourceUp         prometheus.Gauge
	redisUp          prometheus.Gauge

	mu       sync.Mutex
	inFlight prometheus.Gauge
	overlaps prometheus.Counter
	running  map[string]int // cacheable loads that have not returned, by key
	most     int
}

func (m *Metrics) family(name string) *familyMetrics {
	f := &familyMetrics{
		errors:  m.requests.WithLabelValues(name, "error"),
		leaders: m.waiters.WithLabelValues(name, "leader"), follows: m.waiters.WithLabelValues(name, "follower"),
		loads: map[string]prometheus.Counter{}, loadSeconds: m.loadSeconds.WithLabelValues(name),
		soft: m.invalidations.WithLabelValues(name, "soft"), hard: m.invalidations.WithLabelValues(name, "hard"),
		drops: m.drops.WithLabelValues(name),
		lost:  m.lost.WithLabelValues(name, "lost"), superseded: m.lost.WithLabelValues(name, "superseded"),
		nearLimit: m.nearLimit.WithLabelValues(name), sourceUp: m.sourceUp.WithLabelValues(name), redisUp: m.redisUp.WithLabelValues(name), inFlight: m.inFlight.WithLabelValues(name), overlaps: m.overlaps.WithLabelValues(name), running: map[string]int{},
	}
	f.sourceUp.Set(1) // until it fails
	for s := HitL1; s <= Fallback; s++ {
		f.bySource[s] = m.requests.WithLabelValues(name, s.String())
	}
	for _, outcome := range []string{"ok", "not_found", "answer", "error", "panic", "timeout"} {
		f.loads[outcome] = m.loads.WithLabelValues(name, outcome)
	}
	return f
}

func (f *familyMetrics) setSource(up bool) {
	if up {
		f.sourceUp.Set(1)
	} else {
		f.sourceUp.Set(0)
	}
}

func (f *familyMetrics) begin(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[key]++
	if f.running[key] > 1 {
		f.overlaps.Inc()
	}
	if n := f.running[key]; n > f.most {
		f.most = n
		f.inFlight.Set(float64(n))
	}
}

func (f *familyMetrics) end(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[key]--; f.running[key] == 0 {
		delete(f.running, key)
	}
}
