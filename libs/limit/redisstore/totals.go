package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// Totals are a quota counter's numbers, which only grow. Forfeited is of
// prepaid ones. Carried is of those with rollover: what the period has from the
// last one, fixed by its first charge and 0 before.
type Totals struct{ Consumed, Refunded, Forfeited, Carried int64 }

// Max takes the greater of each number.
func (t Totals) Max(o Totals) Totals {
	return Totals{max(t.Consumed, o.Consumed), max(t.Refunded, o.Refunded), max(t.Forfeited, o.Forfeited), max(t.Carried, o.Carried)}
}

// Used is the net use; it is not below 0.
func (t Totals) Used() int64 { return max(0, t.Consumed-t.Refunded) }

// Keys are where a quota counter's numbers lie; the counter's identity is that
// of events, of a renewing quota with its period.
func Keys(prefix, counter string) (consumed, refunded, forfeited, carried string) {
	key := prefix + counter
	return key + suffixConsumed, key + suffixRefunded, key + suffixForfeited, key + suffixCarried
}

// EpochKey names the epoch of the quotas beside a key, which is without the
// prefix: what is read beside it may lack units where the epoch is not the process's
// own.
func EpochKey(client redis.UniversalClient, prefix, key string) string {
	return epoch.KeyFor(client, prefix, key)
}

const numbersPerTotals = 4

// ReadTotals reads counters with one MGET; on Cluster with one a counter, in one
// round trip to each node. What has no key is 0. It says nothing of whether
// the numbers are whole: after a loss they may be less than what was charged.
func ReadTotals(ctx context.Context, client redis.UniversalClient, prefix string, counters []string) ([]Totals, error) {
	if len(counters) == 0 {
		return nil, nil
	}
	keys := make([]string, 0, numbersPerTotals*len(counters))
	for _, counter := range counters {
		c, r, f, o := Keys(prefix, counter)
		keys = append(keys, c, r, f, o)
	}
	found, err := readNumbers(ctx, client, keys)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	all := make([]Totals, len(counters))
	for i := range all {
		for j, to := range []*int64{&all[i].Consumed, &all[i].Refunded, &all[i].Forfeited, &all[i].Carried} {
			text, ok := found[numbersPerTotals*i+j].(string)
			if !ok {
				continue
			}
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fmt.Errorf("counter %s holds something else: %w", counters[i], err)
			}
		}
	}
	return all, nil
}

func readNumbers(ctx context.Context, client redis.UniversalClient, keys []string) ([]any, error) {
	if _, cluster := client.(*redis.ClusterClient); !cluster {
		return client.MGet(ctx, keys...).Result()
	}
	var cmds []*redis.SliceCmd
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for ; len(keys) > 0; keys = keys[numbersPerTotals:] {
			cmds = append(cmds, p.MGet(ctx, keys[:numbersPerTotals]...))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []any
	for _, cmd := range cmds {
		all = append(all, cmd.Val()...)
	}
	return all, nil
}
