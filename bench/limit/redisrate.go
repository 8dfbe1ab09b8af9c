package main

import (
	"context"
	"strconv"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

func openRedisRate(_ context.Context, n node) (limiter, error) {
	l := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: n.Redis}))
	allow := func(ctx context.Context, tenant string, rule, cost int) (*redis_rate.Result, error) {
		units := int(n.Limits[rule])
		return l.AllowN(ctx, tenant+":"+strconv.Itoa(rule), redis_rate.Limit{Rate: units, Burst: units, Period: day}, cost)
	}
	return limiter{
		ask: func(ctx context.Context, tenant string) (bool, error) {
			return inTurn(ctx, len(n.Limits), func(ctx context.Context, rule int) (bool, error) {
				r, err := allow(ctx, tenant, rule, 1)
				return err == nil && r.Allowed == 1, err
			})
		},
		used: func(ctx context.Context, tenant string) (int64, error) {
			r, err := allow(ctx, tenant, 0, 0)
			if err != nil {
				return 0, err
			}
			return n.Limits[0] - int64(r.Remaining), nil
		},
	}, nil
}
