package reserve

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// untold is how long a step that was taken may stay untold, by whoever died before
// it was: counters that were lost after that come back by their totals, and the
// step would not come back with them. A step that is begun puts the attempt so far
// ahead in the index, and at its due time once it is told.
const untold = 10 * time.Second

func (b *Book) addDue(ctx context.Context, pipe redis.Pipeliner, e entry, at int64) {
	pipe.ZAdd(ctx, b.o.KeyPrefix+e.shard(), redis.Z{Score: float64(at), Member: e.String()})
}

// isDue reports whether an attempt is in the index: something of it is still to
// be done.
func (b *Book) isDue(ctx context.Context, e entry) (bool, error) {
	err := b.o.Client.ZScore(ctx, b.o.KeyPrefix+e.shard(), e.String()).Err()
	if err == redis.Nil { //nolint:errorlint // go-redis returns it as it is
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up when reservation %s is due: %w", e.id, unavailable(err))
	}
	return true, nil
}

// dropDue takes an attempt out of the index.
func (b *Book) dropDue(ctx context.Context, e entry) error {
	if err := b.o.Client.ZRem(ctx, b.o.KeyPrefix+e.shard(), e.String()).Err(); err != nil {
		return fmt.Errorf("take reservation %s out of what is due: %w", e.id, unavailable(err))
	}
	return nil
}

// found is what falls due, by a look at the index.
type found struct {
	entries []entry
	// bad are members that name no attempt, by shard.
	bad map[int][]string
	// now is the store's clock, oldest the earliest due time, 0 for none: µs.
	now, oldest int64
}

// due lists what is due by the store's clock, at most so many of each shard.
func (b *Book) due(ctx context.Context, most int64) (found, error) {
	now, err := b.o.Client.Time(ctx).Result()
	if err != nil {
		return found{}, fmt.Errorf("ask for the store's time: %w", unavailable(err))
	}
	f := found{now: now.UnixMicro(), bad: map[int][]string{}}
	pipe := b.o.Client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, dueShards)
	for i := range cmds {
		cmds[i] = pipe.ZRangeByScoreWithScores(ctx, b.o.KeyPrefix+dueKey(i), &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(f.now, 10), Count: most})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return found{}, fmt.Errorf("list what is due: %w", unavailable(err))
	}
	for shard, cmd := range cmds {
		for _, z := range cmd.Val() {
			if at := int64(z.Score); f.oldest == 0 || at < f.oldest {
				f.oldest = at
			}
			text, _ := z.Member.(string)
			e, err := parseEntry(text)
			if err != nil || e.shardNumber() != shard {
				f.bad[shard] = append(f.bad[shard], text)
				continue
			}
			f.entries = append(f.entries, e)
		}
	}
	return f, nil
}

// move has an attempt looked at at another time, µs, as long as it is in the
// index.
func (b *Book) move(ctx context.Context, pipe redis.Cmdable, e entry, at int64) *redis.IntCmd {
	return pipe.ZAddArgs(ctx, b.o.KeyPrefix+e.shard(), redis.ZAddArgs{XX: true, Members: []redis.Z{{Score: float64(at), Member: e.String()}}})
}

// begin has an attempt looked at soon, should whoever takes a step of it now die.
func (b *Book) begin(ctx context.Context, e entry, now, until int64) error {
	soon := now + untold.Microseconds()
	if soon >= until {
		return nil
	}
	if err := b.move(ctx, b.o.Client, e, soon).Err(); err != nil {
		return fmt.Errorf("begin a step of reservation %s: %w", e.id, unavailable(err))
	}
	return nil
}

// postponed is when what could not be brought to its end is looked at again: it
// must not keep others from their turn.
const postponed = time.Minute

func (b *Book) postpone(ctx context.Context, e entry, at int64) error {
	if err := b.move(ctx, b.o.Client, e, at).Err(); err != nil {
		return fmt.Errorf("postpone reservation %s: %w", e.id, unavailable(err))
	}
	return nil
}
