package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

func sluiceLock(ctx context.Context, n node, load loader) (reader, error) {
	return sluiceReader(ctx, n, load, func(*cache.Options[string]) {})
}

func sluiceXFetch(ctx context.Context, n node, load loader) (reader, error) {
	return sluiceReader(ctx, n, load, func(o *cache.Options[string]) { o.Beta = 1 })
}

func sluiceSWR(ctx context.Context, n node, load loader) (reader, error) {
	return sluiceReader(ctx, n, load, func(o *cache.Options[string]) { o.StaleWhileRevalidate = n.TTL / 2 })
}

func sluiceReader(ctx context.Context, n node, load loader, change func(*cache.Options[string])) (reader, error) {
	// The others' clients wait for Redis for seconds. 12,000 who start at once on two cores take more than the default.
	const patience = 2 * time.Second
	o := &redis.UniversalOptions{Addrs: []string{n.Redis}}
	cache.ConfigureRedis(o, patience)
	options := cache.Options[string]{
		Family: "bench", Redis: redis.NewUniversalClient(o), RedisTimeout: patience,
		TTL: n.TTL, Jitter: -1, // one key: there is nothing to spread, and loads are counted by TTL
		Load: func(ctx context.Context, _ string) (cache.Loaded[string], error) {
			v, err := load(ctx)
			return cache.Loaded[string]{Value: v}, err
		},
	}
	change(&options)
	c, err := cache.New(options)
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Run(ctx) }() // to the process's end
	return func(ctx context.Context) (string, error) { return c.Get(ctx, key) }, nil
}
