package main

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

func openUlule(_ context.Context, n node) (limiter, error) {
	store, err := ululeredis.NewStore(redis.NewClient(&redis.Options{Addr: n.Redis}))
	if err != nil {
		return limiter{}, err
	}
	var rules []*ulule.Limiter
	for _, units := range n.Limits {
		rules = append(rules, ulule.New(store, ulule.Rate{Period: day, Limit: units}))
	}
	key := func(tenant string, rule int) string { return tenant + ":" + strconv.Itoa(rule) }
	return limiter{
		ask: func(ctx context.Context, tenant string) (bool, error) {
			return inTurn(ctx, len(rules), func(ctx context.Context, rule int) (bool, error) {
				c, err := rules[rule].Get(ctx, key(tenant, rule))
				return !c.Reached, err
			})
		},
		used: func(ctx context.Context, tenant string) (int64, error) {
			c, err := rules[0].Peek(ctx, key(tenant, 0))
			return n.Limits[0] - c.Remaining, err
		},
	}, nil
}
