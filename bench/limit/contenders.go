package main

import "context"

// limiter decides one process's requests. Both functions are safe for concurrent use.
type limiter struct {
	// ask charges the tenant one unit of every rule, if all let it pass.
	ask func(ctx context.Context, tenant string) (passed bool, err error)
	// used is how many units of the tenant's first rule are gone.
	used func(ctx context.Context, tenant string) (int64, error)
}

// contender is one way to limit.
type contender struct {
	name string
	// part is the module that does it, for its version; empty is our own.
	part string
	// setup says how it is used.
	setup string
	// open makes a process's limiter for rules of its limits, each a day's. What it opens ends with the process.
	open func(ctx context.Context, n node) (limiter, error)
}

// contenders in the order of the tables.
var contenders = []contender{
	{name: "sluice", open: openSluice,
		setup: "libs/limit/redisstore, in the silence with its default budget of 5 ms, else with 1 s: gcra, and for three rules gcra and two fixed windows, in one step; what waits meanwhile goes in one call"},
	{name: "redis_rate", part: "github.com/go-redis/redis_rate/v10", open: openRedisRate,
		setup: "Limiter.Allow, GCRA, a call a rule until one denies; go-redis as it is by default, as for all below"},
	{name: "ulule", part: "github.com/ulule/limiter/v3", open: openUlule,
		setup: "Limiter.Get on its Redis store, fixed windows, a call a rule until one denies"},
	{name: "throttled", part: "github.com/throttled/throttled/v2", open: openThrottled,
		setup: "GCRARateLimiterCtx.RateLimitCtx on goredisstore.v9, compare and swap, a call a rule until one denies"},
}

// inTurn asks the rules one after the other, as programs do whose limiter knows one rule a call.
func inTurn(ctx context.Context, rules int, allow func(ctx context.Context, rule int) (bool, error)) (bool, error) {
	for i := range rules {
		if ok, err := allow(ctx, i); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
