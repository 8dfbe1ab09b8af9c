package reserve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// placed is an attempt with its spot in an index. The entry of a member that names
// none is zero.
type placed struct {
	Spot
	entry entry
}

// behind reads the first n members behind a spot: of a tenant's places, or, without
// a tenant, of what falls due. Fewer are all there are.
func (b *Book) behind(ctx context.Context, tenant string, after Spot, n int) ([]placed, error) {
	if tenant != "" {
		all, err := b.readIndexes(ctx, []string{name{tenant: tenant}.places()}, after, n)
		for i := range all {
			at, id, _ := strings.Cut(all[i].Member, "|")
			if attempt, err := strconv.ParseInt(at, 10, 64); err == nil && ValidID(id) {
				all[i].entry = entry{name{tenant, id}, attempt}
			}
		}
		return all, err
	}
	shards := make([]string, dueShards)
	for i := range shards {
		shards[i] = dueKey(i)
	}
	all, err := b.readIndexes(ctx, shards, after, n)
	for i := range all {
		all[i].entry, _ = parseEntry(all[i].Member) // the sweep says what is none
	}
	return all, err
}

// evaluate runs a script by its hash, or by its text.
type evaluate func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// inOneGo sends what reads, looks among it, in one round trip, and once more with
// the script's text where a server does not know it yet. Each command has its own
// error.
func (b *Book) inOneGo(ctx context.Context, fill func(pipe redis.Pipeliner, look evaluate) (looks []*redis.Cmd)) {
	for _, look := range []evaluate{lookScript.EvalSha, lookScript.Eval} {
		pipe := b.o.Client.Pipeline()
		looks := fill(pipe, look)
		_, _ = pipe.Exec(ctx)
		if !slices.ContainsFunc(looks, func(c *redis.Cmd) bool { return redis.HasErrorPrefix(c.Err(), "NOSCRIPT") }) {
			return
		}
	}
}

// indexRead is one index as it is read: the members with the spot's score, those
// behind it, and whether the quotas beside it were whole before and after.
type indexRead struct {
	with, behind  *redis.ZSliceCmd
	before, after *redis.Cmd
}

// err says why the members cannot be believed. Between two looks that find the
// quotas whole they cannot have been lost and restored: that takes seconds.
func (r *indexRead) err() error {
	for _, look := range [...]*redis.Cmd{r.before, r.after} {
		if _, err := standingOf(name{}, look); err != nil {
			return err
		}
	}
	for _, read := range [...]*redis.ZSliceCmd{r.with, r.behind} {
		if err := read.Err(); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// readIndexes reads the first n members of all the indexes behind a spot, in the
// order of their spots.
func (b *Book) readIndexes(ctx context.Context, keys []string, after Spot, n int) ([]placed, error) {
	reads := make([]indexRead, len(keys))
	b.inOneGo(ctx, func(pipe redis.Pipeliner, look evaluate) (looks []*redis.Cmd) {
		at := strconv.FormatInt(after.At, 10)
		for i, key := range keys {
			r, none := &reads[i], b.o.KeyPrefix+key+":none" // there is no such key
			beside := []string{none, none, none, none, redisstore.EpochKey(b.o.Client, b.o.KeyPrefix, key), b.o.KeyPrefix + key}
			r.before = look(ctx, pipe, beside, "")
			r.with = pipe.ZRangeByScoreWithScores(ctx, b.o.KeyPrefix+key, &redis.ZRangeBy{Min: at, Max: at})
			r.behind = pipe.ZRangeByScoreWithScores(ctx, b.o.KeyPrefix+key, &redis.ZRangeBy{Min: "(" + at, Max: "+inf", Count: int64(n)})
			r.after = look(ctx, pipe, beside, "")
			looks = append(looks, r.before, r.after)
		}
		return looks
	})
	var all []placed
	for i := range reads {
		r := &reads[i]
		if err := r.err(); err != nil {
			return nil, fmt.Errorf("list reservations: %w", err)
		}
		for _, z := range append(r.with.Val(), r.behind.Val()...) {
			member, _ := z.Member.(string)
			if s := (Spot{int64(z.Score), member}); s.compare(after) > 0 {
				all = append(all, placed{Spot: s})
			}
		}
	}
	slices.SortFunc(all, func(p, q placed) int { return p.compare(q.Spot) })
	return all[:min(n, len(all))], nil
}

// lookAll reads how the attempts of a page stand. One that names none, or cannot be
// read, stands nowhere.
func (b *Book) lookAll(ctx context.Context, page []placed) ([]standing, error) {
	looks := make([]*redis.Cmd, len(page))
	b.inOneGo(ctx, func(pipe redis.Pipeliner, look evaluate) (sent []*redis.Cmd) {
		for i := range page {
			if n := page[i].entry.name; n.id != "" {
				looks[i] = look(ctx, pipe, b.lookKeys(n), "")
				sent = append(sent, looks[i])
			}
		}
		return sent
	})
	all := make([]standing, len(page))
	for i, look := range looks {
		if look == nil {
			continue
		}
		st, err := standingOf(page[i].entry.name, look)
		switch {
		case err == nil:
			all[i] = st
		case errors.Is(err, limit.ErrUnavailable), ctx.Err() != nil:
			return nil, err
		default:
			b.o.Log.ErrorContext(ctx, "a reservation cannot be read; it is not listed", "error", err)
		}
	}
	return all, nil
}
