package main

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

func openSluice(ctx context.Context, n node) (limiter, error) {
	o := &redis.UniversalOptions{Addrs: []string{n.Redis}}
	budget := redisstore.DefaultBudget
	if n.Scenario != silence {
		budget = time.Second // a machine that is as busy as it can be is no outage
	}
	redisstore.Configure(o, max(budget, redisstore.DefaultCallTimeout))
	store, err := redisstore.New(redis.NewUniversalClient(o), redisstore.Options{Budget: budget})
	if err != nil {
		return limiter{}, err
	}
	go func() { _ = store.Run(ctx) }() // ends with the process
	counters := func(tenant string, cost int64) []limit.Counter {
		all := make([]limit.Counter, len(n.Limits))
		for i, units := range n.Limits {
			all[i] = limit.Counter{
				Key: "{t:" + tenant + "}:t::r" + strconv.Itoa(i), Algorithm: limit.FixedWindow, Limit: units, Window: day, Cost: cost,
			}
		}
		all[0].Algorithm, all[0].Burst = limit.GCRA, n.Limits[0]
		return all
	}
	return limiter{
		ask: func(ctx context.Context, tenant string) (bool, error) {
			d, err := store.Decide(ctx, counters(tenant, 1))
			return d.Allowed, err
		},
		used: func(ctx context.Context, tenant string) (int64, error) {
			d, err := store.Decide(ctx, counters(tenant, 0)[:1])
			if err != nil {
				return 0, err
			}
			return n.Limits[0] - d.States[0].Remaining, nil
		},
	}, nil
}
