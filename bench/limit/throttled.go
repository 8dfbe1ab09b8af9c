package main

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
)

func openThrottled(_ context.Context, n node) (limiter, error) {
	store, err := goredisstore.NewCtx(redis.NewClient(&redis.Options{Addr: n.Redis}), "")
	if err != nil {
		return limiter{}, err
	}
	var rules []*throttled.GCRARateLimiterCtx
	for _, units := range n.Limits {
		quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(units), day), MaxBurst: int(units) - 1}
		rule, err := throttled.NewGCRARateLimiterCtx(store, quota)
		if err != nil {
			return limiter{}, err
		}
		rules = append(rules, rule)
	}
	key := func(tenant string, rule int) string { return tenant + ":" + strconv.Itoa(rule) }
	return limiter{
		ask: func(ctx context.Context, tenant string) (bool, error) {
			return inTurn(ctx, len(rules), func(ctx context.Context, rule int) (bool, error) {
				limited, _, err := rules[rule].RateLimitCtx(ctx, key(tenant, rule), 1)
				return err == nil && !limited, err
			})
		},
		used: func(ctx context.Context, tenant string) (int64, error) {
			_, r, err := rules[0].RateLimitCtx(ctx, key(tenant, 0), 0)
			return n.Limits[0] - int64(r.Remaining), err
		},
	}, nil
}
