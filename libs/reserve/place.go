package reserve

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	schema "github.com/sluice-platform/sluice/schemas/redis"
)

// DefaultMaxOpen is how many reservations a tenant may have open at once where
// Options say nothing: some 12 MB of the store.
const DefaultMaxOpen = 10_000

// keepPlace is how long after its due time an attempt keeps its place should
// nobody bring it to its end: the sweep does, within seconds. A place that was lost
// track of (a failover between the two writes of an attempt) is free again then.
const keepPlace = time.Hour

var placeScript = redis.NewScript(schema.Place)

// place is the attempt's member of the tenant's places, a sorted set by when
// they are lost. It lies with the tenant's counters.
func (e entry) place() string { return field(e.attempt) + "|" + e.id }

func placeUntil(r *Record) int64 { return r.Until + keepPlace.Microseconds() }

// takePlace writes an attempt's record, with its place among the tenant's, and
// when it falls due, in one round trip.
func (b *Book) takePlace(ctx context.Context, e entry, r *Record) error {
	p := b.o.KeyPrefix
	keys := []string{p + e.records(), p + e.places()}
	args := []any{field(e.attempt), r.encode(), r.ExpiresAt().Add(keepOpen).Unix(), e.place(), placeUntil(r), r.At, b.o.MaxOpen}
	var answer *redis.Cmd
	var err error
	// A server that does not know the script yet has run nothing of it.
	for _, run := range []func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd{placeScript.EvalSha, placeScript.Eval} {
		pipe := b.o.Client.Pipeline()
		answer = run(ctx, pipe, keys, args...)
		b.addDue(ctx, pipe, e, min(r.Until, r.At+untold.Microseconds()))
		if _, err = pipe.Exec(ctx); !redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
			break
		}
	}
	if err != nil {
		if answer.Err() == nil { // on a Cluster the index may be away alone
			_ = b.retract(ctx, e) // else its place is lost track of
		}
		return fmt.Errorf("write reservation %s: %w", e.id, unavailable(err))
	}
	switch n, _ := answer.Int(); n {
	case 1:
		return nil
	case 0:
		return errAgain // another gateway's, of the same microsecond
	}
	if err := b.dropDue(ctx, e); err != nil { // else the sweep does, which finds no record
		b.o.Log.DebugContext(ctx, "an attempt that had no place is still due", "cause", err)
	}
	return ErrTooMany
}

// retract takes back an attempt's record, and its place.
func (b *Book) retract(ctx context.Context, e entry) error {
	pipe := b.o.Client.Pipeline()
	b.givePlace(ctx, pipe, e)
	pipe.HDel(ctx, b.o.KeyPrefix+e.records(), field(e.attempt))
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("remove attempt of reservation %s: %w", e.id, unavailable(err))
	}
	return nil
}

// givePlace has an attempt give its place back.
func (b *Book) givePlace(ctx context.Context, pipe redis.Pipeliner, e entry) {
	pipe.ZRem(ctx, b.o.KeyPrefix+e.places(), e.place())
}

// restorePlaces has attempts keep their place whose reservations are open, by
// the numbers that the store has again, and the others none.
func restorePlaces(ctx context.Context, client redis.UniversalClient, keyPrefix string, records []*Record) error {
	look := client.Pipeline()
	states := make([]*redis.SliceCmd, len(records))
	for i, r := range records {
		n := name{r.Tenant, r.ID}
		states[i] = look.MGet(ctx, keyPrefix+n.state(), keyPrefix+n.attempt())
	}
	if _, err := look.Exec(ctx); err != nil {
		return fmt.Errorf("look whose places to restore: %w", unavailable(err))
	}
	pipe := client.Pipeline()
	for i, r := range records {
		e := entry{name{r.Tenant, r.ID}, r.At}
		key, held := keyPrefix+e.places(), states[i].Val()
		if held[0] == strconv.Itoa(int(Reserved)) && held[1] == field(e.attempt) {
			pipe.ZAddNX(ctx, key, redis.Z{Score: float64(placeUntil(r)), Member: e.place()})
			pipe.ExpireAt(ctx, key, r.ExpiresAt().Add(keepOpen))
		} else {
			pipe.ZRem(ctx, key, e.place())
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("restore places of reservations: %w", unavailable(err))
	}
	return nil
}
