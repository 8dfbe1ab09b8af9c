package cache_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// hot is a Cache with a value in L1, all methods on.
func hot(tb testing.TB) *cache.Cache[string] {
	tb.Helper()
	c := running(tb, options{
		Family: "bench", TTL: time.Hour, Beta: 1, StaleWhileRevalidate: time.Minute,
		Load: func(context.Context, string) (cache.Loaded[string], error) {
			return cache.Loaded[string]{Value: "v"}, nil
		},
	})
	get(tb, c, "k")
	return c
}

// Not parallel: AllocsPerRun counts the whole process's allocations.
func TestL1HitAllocatesNothing(t *testing.T) {
	c, ctx := hot(t), context.Background()
	allocs := testing.AllocsPerRun(10_000, func() {
		if _, err := c.Get(ctx, "k"); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%g allocations a hit", allocs)
	}
}

func BenchmarkL1Hit(b *testing.B) {
	c, ctx := hot(b), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(ctx, "k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkL1HitParallel(b *testing.B) {
	c, ctx := hot(b), context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Get(ctx, "k"); err != nil {
				b.Error(err)
			}
		}
	})
}
