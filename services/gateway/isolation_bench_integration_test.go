//go:build integration

package gateway

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// How the two sides of BenchmarkNoisyTenant are measured: by turns, so that what
// else the machine does falls on both, and long enough that the 99th of a
// hundred is one of a hundred.
const (
	stretches   = 36 // of each side, for each b.N
	stretch     = time.Second
	quietOnes   = 8 // tenants beside the noisy one
	perSecond   = 40
	floodOthers = 10 // clients of the noisy one, a hundred a second each
)

// How long requests of tenants within their limits wait alone, and beside one
// that floods at ten times its limit; the aim is that the 99th of a hundred
// waits at most 1.5 times as long. The gateway is a process of its own. The same
// clients ask the upstream without a gateway, too: how much longer that takes
// beside the flood (client-ratio) is the machine's doing, not the gateway's.
//
//	make bench PKG=./services/gateway ARGS='-run ^$ -bench NoisyTenant -benchtime 1x'
func BenchmarkNoisyTenant(b *testing.B) {
	d := onSharedKafka(b)
	rule := func(tenant string, limit int) {
		n := strconv.Itoa(limit)
		d.putRule(`{"id":"` + tenant + `","subject":{"kind":"tenant","value":"` + tenant + `"},"metric":"calls","limit":{"algorithm":"gcra","limit":` +
			n + `,"window":"1s","burst":` + n + `}}`)
	}
	rule("a", 100)
	for i := range quietOnes {
		rule("b"+strconv.Itoa(i), 50)
	}
	_, base, _ := startChild(b, child{d.stream.Brokers, d.stream.TopicPrefix, servertest.StartRedis(b).Addr(), b.TempDir(), time.Second})
	n := &neighbours{gate: base + "/demo/x", upstream: d.upstream.URL, quiet: newClients(), noisy: newClients()}
	n.stretch(b, nil) // warm
	var quiet, noisy waits
	b.ResetTimer()
	for range b.N {
		for range stretches {
			n.stretch(b, &quiet)
			stop := n.flood(b)
			n.stretch(b, &noisy)
			stop()
		}
	}
	if passed, denied := n.passed.Load(), n.denied.Load(); denied < 2*passed {
		b.Errorf("a had %d passed and %d denied: that is no flood", passed, denied)
	}
	b.ReportMetric(0, "ns/op")
	for side, w := range map[string]*waits{"quiet": &quiet, "noisy": &noisy} {
		b.ReportMetric(ms(quantile(w.gate, 50)), "p50-"+side+"-ms")
		b.ReportMetric(ms(quantile(w.gate, 99)), "p99-"+side+"-ms")
		b.ReportMetric(ms(quantile(w.direct, 99)), "client-p99-"+side+"-ms")
	}
	b.ReportMetric(float64(len(noisy.gate)), "answers")
	b.ReportMetric(ms(quantile(noisy.gate, 99))/ms(quantile(quiet.gate, 99)), "ratio")
	b.ReportMetric(ms(quantile(noisy.direct, 99))/ms(quantile(quiet.direct, 99)), "client-ratio")
}

// waits are how long answers took, through the gateway and without it.
type waits struct {
	mu           sync.Mutex
	gate, direct []time.Duration
}

// neighbours share a gateway.
type neighbours struct {
	gate, upstream string
	// The noisy one takes no connection from the others.
	quiet, noisy   *http.Transport
	passed, denied atomic.Int64
}

// stretch has each quiet tenant ask for a while, within its limit, and a client
// of each ask the upstream itself.
func (n *neighbours) stretch(b *testing.B, w *waits) {
	b.Helper()
	var asking sync.WaitGroup
	for i := range quietOnes {
		ask := func(url string, into func(*waits) *[]time.Duration) {
			next := arrivals(time.Second / perSecond)
			for range int(stretch.Seconds() * perSecond) {
				next()
				began := time.Now()
				status, degraded := n.ask(b, n.quiet, url, "b"+strconv.Itoa(i))
				took := time.Since(began)
				if status != http.StatusOK || degraded {
					b.Errorf("b%d is answered %d, degraded %t", i, status, degraded)
				}
				if w != nil {
					w.mu.Lock()
					*into(w) = append(*into(w), took)
					w.mu.Unlock()
				}
			}
		}
		asking.Go(func() { ask(n.gate, func(w *waits) *[]time.Duration { return &w.gate }) })
		asking.Go(func() { ask(n.upstream, func(w *waits) *[]time.Duration { return &w.direct }) })
	}
	asking.Wait()
}

// flood asks for A until stopped; it returns when A is over its limit.
func (n *neighbours) flood(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var asking sync.WaitGroup
	for range floodOthers {
		asking.Go(func() {
			next := arrivals(10 * time.Millisecond)
			for ctx.Err() == nil {
				switch status, _ := n.ask(b, n.noisy, n.gate, "a"); status {
				case http.StatusOK:
					n.passed.Add(1)
				case http.StatusTooManyRequests:
					n.denied.Add(1)
				default:
					b.Errorf("a is answered %d", status)
				}
				next()
			}
		})
	}
	before := n.denied.Load()
	servertest.Eventually(b, patience, "a to be over its limit", func() bool { return n.denied.Load() > before+50 })
	return func() { cancel(); asking.Wait() }
}

// arrivals waits from one arrival to the next of a Poisson process, as requests
// of many independent people come: clients that tick together would measure how
// long the last of a volley waits for the others.
func arrivals(mean time.Duration) (next func()) {
	due := time.Now()
	return func() {
		due = due.Add(time.Duration(rand.ExpFloat64() * float64(mean)))
		<-time.After(time.Until(due))
	}
}

func (n *neighbours) ask(b *testing.B, by *http.Transport, url, tenant string) (status int, degraded bool) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	must(b, err)
	req.Header.Set("X-Tenant-Id", tenant)
	res, err := by.RoundTrip(req)
	must(b, err)
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	must(b, err)
	return res.StatusCode, res.Header.Get("Sluice-Degraded") != ""
}

func quantile(took []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)*percent/100]
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
