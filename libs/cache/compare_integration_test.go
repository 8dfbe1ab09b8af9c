//go:build integration

package cache_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// The fleet that is compared, at one hot key: its source takes compareLoad however many ask it, which flatters those
// that ask often. A TTL is many loads long.
const (
	compareNodes = 4
	compareRate  = 1000 // reads a second of a node, whether earlier ones have returned or not
	compareTTL   = 2 * time.Second
	compareLoad  = 50 * time.Millisecond
	compareFor   = 4 * compareTTL
)

// reader is a way to read the key in one node.
type reader func(ctx context.Context) (string, error)

// plainCache is what all nodes share where nothing is protected: a value with an end, as in Redis.
type plainCache struct {
	mu    sync.Mutex
	value string
	until time.Time
}

func (p *plainCache) get() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, time.Now().Before(p.until)
}

func (p *plainCache) set(v string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.until = v, time.Now().Add(compareTTL)
}

// fleetOf makes the nodes' readers, which ask the source by ask.
type fleetOf func(b *testing.B, ask func() string) []reader

func unprotected(_ *testing.B, ask func() string) []reader {
	p := new(plainCache)
	return slices.Repeat([]reader{func(context.Context) (string, error) {
		v, ok := p.get()
		if !ok {
			v = ask()
			p.set(v)
		}
		return v, nil
	}}, compareNodes)
}

func singleFlighted(_ *testing.B, ask func() string) (nodes []reader) {
	p := new(plainCache)
	for range compareNodes {
		var group singleflight.Group
		nodes = append(nodes, func(context.Context) (string, error) {
			if v, ok := p.get(); ok {
				return v, nil
			}
			v, err, _ := group.Do("k", func() (any, error) {
				v := ask()
				p.set(v)
				return v, nil
			})
			return v.(string), err
		})
	}
	return nodes
}

// otterAlone is a cache a node; refresh is how old a value is when it is refreshed behind the reader's back, 0 is never.
func otterAlone(refresh time.Duration) fleetOf {
	return func(b *testing.B, ask func() string) (nodes []reader) {
		load := otter.LoaderFunc[string, string](func(context.Context, string) (string, error) { return ask(), nil })
		for range compareNodes {
			o := &otter.Options[string, string]{MaximumSize: 500, ExpiryCalculator: otter.ExpiryWriting[string, string](compareTTL)}
			if refresh > 0 {
				o.RefreshCalculator = otter.RefreshWriting[string, string](refresh)
			}
			c := otter.Must(o)
			b.Cleanup(func() { c.StopAllGoroutines() })
			nodes = append(nodes, func(ctx context.Context) (string, error) { return c.Get(ctx, "k", load) })
		}
		return nodes
	}
}

func ours(change func(*options)) fleetOf {
	return func(b *testing.B, ask func() string) (nodes []reader) {
		addr, prefix := servertest.Redis(b)
		for range compareNodes {
			o := quick(client(b, addr))
			o.TTL, o.Prefix = compareTTL, prefix
			o.Load = func(context.Context, string) (cache.Loaded[string], error) {
				return cache.Loaded[string]{Value: ask()}, nil
			}
			change(&o)
			c := listening(b, running(b, o), o)
			nodes = append(nodes, func(ctx context.Context) (string, error) { return c.Get(ctx, "k") })
		}
		return nodes
	}
}

// BenchmarkCompare runs the same traffic against each protection in turn: docs/cache-compared.md has its numbers.
func BenchmarkCompare(b *testing.B) {
	for _, c := range []struct {
		name  string
		fleet fleetOf
	}{
		{"none", unprotected},
		{"singleflight", singleFlighted},
		{"otter", otterAlone(0)},
		{"otter-refresh", otterAlone(compareTTL - 4*compareLoad)},
		{"cache-lock", ours(func(*options) {})},
		{"cache-xfetch", ours(func(o *options) { o.Beta = 1 })},
		{"cache-swr", ours(func(o *options) { o.StaleWhileRevalidate = compareTTL })},
	} {
		b.Run(c.name, func(b *testing.B) {
			var loads, running, most atomic.Int64
			nodes := c.fleet(b, func() string {
				loads.Add(1)
				for n := running.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				<-time.After(compareLoad)
				running.Add(-1)
				return "v"
			})
			for _, read := range nodes {
				if _, err := read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				loads.Store(0)
				most.Store(0)
				took := readAll(b, nodes)
				slices.Sort(took)
				b.ReportMetric(float64(loads.Load())*float64(compareTTL)/float64(compareFor), "loads/TTL")
				b.ReportMetric(float64(most.Load()), "most-at-once")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
			}
			b.ReportMetric(0, "ns/op") // it is compareFor
		})
	}
}

// readAll reads at the rate for a while. A read's time counts from when it was due: one that had to wait hides no other.
func readAll(b *testing.B, nodes []reader) (took []time.Duration) {
	var mu sync.Mutex
	var reads, generators sync.WaitGroup
	begin := time.Now()
	for _, read := range nodes {
		generators.Go(func() {
			for due := begin; due.Before(begin.Add(compareFor)); due = due.Add(time.Second / compareRate) {
				<-time.After(time.Until(due))
				reads.Go(func() {
					if _, err := read(b.Context()); err != nil {
						b.Error(err)
					}
					d := time.Since(due)
					mu.Lock()
					defer mu.Unlock()
					took = append(took, d)
				})
			}
		})
	}
	generators.Wait()
	reads.Wait()
	return took
}
