package reserve

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// sweepShard is how many attempts of a shard a sweep looks at, at most.
const sweepShard = 64

// Sweep gives back what is due and was brought to no end, at most 1024 attempts;
// it may be called by any number of processes at once. It returns how many it
// ended itself, and for how long the oldest has been due when it began; an error
// where the store is away, or ctx has ended.
func (b *Book) Sweep(ctx context.Context) (expired int, lag time.Duration, err error) {
	f, err := b.due(ctx, sweepShard)
	if err != nil {
		return 0, 0, err
	}
	if f.oldest != 0 {
		lag = time.Duration(f.now-f.oldest) * time.Microsecond
	}
	for shard, members := range f.bad {
		for _, m := range members {
			b.o.Log.ErrorContext(ctx, "what is due names no reservation; it is removed", "entry", m)
			if err := b.o.Client.ZRem(ctx, b.o.KeyPrefix+dueKey(shard), m).Err(); err != nil {
				return 0, lag, unavailable(err)
			}
		}
	}
	// Others sweep as well: whoever begins elsewhere has other work to do.
	rand.Shuffle(len(f.entries), func(i, j int) { f.entries[i], f.entries[j] = f.entries[j], f.entries[i] })
	for _, e := range f.entries {
		did, err := b.expire(ctx, e)
		switch {
		case errors.Is(err, limit.ErrUnavailable), ctx.Err() != nil:
			return expired, lag, err
		case err != nil:
			b.o.Log.ErrorContext(ctx, "a reservation that is due cannot be ended; it is tried again in a minute", "id", e.id, "error", err)
			if err := b.postpone(ctx, e, f.now+postponed.Microseconds()); err != nil {
				return expired, lag, err
			}
		case did:
			expired++
		}
	}
	return expired, lag, nil
}

// expire ends an attempt that is due, in whatever state it is; did says that it
// was this call which gave back.
func (b *Book) expire(ctx context.Context, e entry) (did bool, err error) {
	st, err := b.look(ctx, e.name, e.attempt)
	if err != nil {
		return false, err
	}
	if st.record == nil {
		return false, b.dropDue(ctx, e) // forgotten, or lost its record with its numbers
	}
	if st.now < st.record.Until {
		return false, b.catchUp(ctx, e, &st)
	}
	if st.attempt != e.attempt {
		if err := b.block(ctx, st.record, st.now); err != nil {
			return false, err
		}
		return false, b.forget(ctx, e, st.record)
	}
	r, _ := st.reservation(e.name)
	if r.State != Reserved {
		return false, b.complete(ctx, &st, r, hearing(r.Record))
	}
	_, err = b.end(ctx, &st, r, Expired, 0)
	if errors.Is(err, redisstore.ErrAdvanced) {
		return false, nil // the next look sees what it has come to
	}
	return err == nil, err
}

// catchUp tells, of an attempt that is not due yet, what whoever took its steps did
// not come to tell. One that is not charged still may be.
func (b *Book) catchUp(ctx context.Context, e entry, st *standing) error {
	r, _ := st.reservation(e.name)
	switch {
	case st.attempt != e.attempt:
	case r.State.Ended():
		return b.complete(ctx, st, r, hearing(r.Record))
	case !st.told:
		h := hearing(r.Record)
		if err := b.closeShadows(ctx, r.Record, h); err != nil {
			return err
		}
		b.o.Tell(chargeNews(r, h))
		b.noteTold(ctx, e, r.Until)
		return nil
	}
	return b.postpone(ctx, e, st.record.Until)
}
