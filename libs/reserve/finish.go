package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// Commit charges what the work cost in place of what was reserved: what is
// beyond is charged whatever is left, the rest is given back. A repeat finds what
// the first one did; repeated says that it did. Errors: ErrUnknown, also of
// one that is not the caller's, ErrTooMuch, *EndedError where it ended otherwise.
func (b *Book) Commit(ctx context.Context, who Caller, id string, cost int64) (r Reservation, repeated bool, err error) {
	return b.finish(ctx, who, id, Committed, cost)
}

// Release gives all of it back. One of which nothing is charged yet never will
// be charged. Errors: as Commit.
func (b *Book) Release(ctx context.Context, who Caller, id string) (r Reservation, repeated bool, err error) {
	return b.finish(ctx, who, id, Released, 0)
}

func (b *Book) finish(ctx context.Context, who Caller, id string, s State, cost int64) (Reservation, bool, error) {
	n := name{who.Tenant, id}
	for range attempts {
		st, err := b.look(ctx, n, 0)
		if err != nil {
			return Reservation{}, false, err
		}
		r, ok := st.callers(n, who)
		switch {
		case !ok && s == Released && st.number == 0 && st.records > 0:
			r, err = b.void(ctx, n, who, st.now)
		case !ok:
			return Reservation{}, false, ErrUnknown
		case r.State.Ended():
			r, err = b.endedBefore(ctx, &st, r, s, cost)
			return r, true, err
		case s == Committed && cost > max(r.MaxCost, r.Cost):
			return r, false, ErrTooMuch
		default:
			r, err = b.end(ctx, &st, r, s, cost)
		}
		if !errors.Is(err, redisstore.ErrAdvanced) {
			return r, false, err
		}
	}
	return Reservation{}, false, fmt.Errorf("%w: %w", limit.ErrUnavailable, errBusy)
}

// endedBefore answers who comes after the end. What whoever ended it left undone
// is done.
func (b *Book) endedBefore(ctx context.Context, st *standing, r Reservation, s State, cost int64) (Reservation, error) {
	if st.record != nil {
		e := entry{name{r.Tenant, r.ID}, r.At}
		if due, err := b.isDue(ctx, e); err != nil {
			return r, err
		} else if due {
			if err := b.complete(ctx, st, r, hearing(r.Record)); err != nil {
				return r, err
			}
		}
	}
	same := r.State == s && r.Committed == cost || s == Released && r.State == Void
	if !same {
		return r, &EndedError{r}
	}
	return r, nil
}

// void has a reservation that nothing is charged of stay that way.
func (b *Book) void(ctx context.Context, n name, who Caller, now int64) (Reservation, error) {
	if mine, err := b.attempted(ctx, n, who); err != nil {
		return Reservation{}, err
	} else if !mine {
		return Reservation{}, ErrUnknown
	}
	_, err := b.o.Store.Advance(ctx, redisstore.Advance{
		Steps: []redisstore.Step{{Key: n.state(), To: int64(Void)}, {Key: n.end(), To: now}}, At: time.UnixMicro(now),
	})
	if err != nil {
		return Reservation{}, err
	}
	r := Reservation{Record: &Record{ID: n.id, Tenant: n.tenant}, State: Void, EndedAt: time.UnixMicro(now).UTC()}
	return r, b.leave(ctx, entry{n, 0}, nil, r.EndedAt.Add(keepEnded)) // attempts give back their places themselves
}

// end takes an open reservation to its end, and does what follows from that.
func (b *Book) end(ctx context.Context, st *standing, r Reservation, s State, cost int64) (Reservation, error) {
	n := name{r.Tenant, r.ID}
	if st.record == nil {
		return r, fmt.Errorf("reservation %s has no record: %w", n.id, limit.ErrCounterBroken)
	}
	ended := r
	ended.State, ended.Committed, ended.EndedAt = s, cost, time.UnixMicro(st.now).UTC()
	if err := b.begin(ctx, entry{n, r.At}, st.now, r.Until); err != nil {
		return r, err
	}
	h := hearing(r.Record)
	deciding, _ := split(b.o.Client, r.Record)
	err := b.correct(ctx, ended, []redisstore.Step{
		{Key: n.state(), From: int64(Reserved), To: ended.number()},
		{Key: n.attempt(), From: r.At, To: r.At},
		{Key: n.end(), To: st.now},
	}, deciding, h)
	if err != nil {
		return r, err
	}
	if err := b.die(pointEnded); err != nil {
		return r, err
	}
	return ended, b.complete(ctx, st, ended, h)
}

// complete does what follows from an end, as often as need be: the others
// follow, it is told, and then it is taken out of the index.
func (b *Book) complete(ctx context.Context, st *standing, r Reservation, h *heard) error {
	if err := b.follow(ctx, r, h); err != nil {
		return err
	}
	if err := b.die(pointFollowed); err != nil {
		return err
	}
	if !st.told {
		b.o.Tell(chargeNews(r, h))
	}
	b.o.Tell(endNews(r, h))
	if err := b.die(pointEndTold); err != nil {
		return err
	}
	n := name{r.Tenant, r.ID}
	// Out of the index comes last: until then a sweep does the rest.
	_, followers := split(b.o.Client, r.Record)
	if err := b.leave(ctx, entry{n, r.At}, followers, r.EndedAt.Add(keepEnded)); err != nil {
		return err
	}
	if err := b.dropDue(ctx, entry{n, r.At}); err != nil {
		return err
	}
	return b.die(pointCleared)
}

// leave gives the place of an ended reservation back, and has its numbers and
// records go in time.
func (b *Book) leave(ctx context.Context, e entry, followers []follower, at time.Time) error {
	pipe := b.o.Client.Pipeline()
	b.givePlace(ctx, pipe, e)
	for i := range followers {
		pipe.ExpireAt(ctx, b.o.KeyPrefix+followers[i].key, at)
	}
	for _, key := range []string{e.state(), e.name.attempt(), e.end(), e.records()} {
		pipe.ExpireAt(ctx, b.o.KeyPrefix+key, at)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("have reservation %s expire: %w", e.id, unavailable(err))
	}
	return nil
}

// forget takes back what an attempt that was not charged has left.
func (b *Book) forget(ctx context.Context, e entry, r *Record) error {
	if err := b.follow(ctx, Reservation{Record: r}, hearing(r)); err != nil {
		return err
	}
	if err := b.retract(ctx, e); err != nil {
		return err
	}
	return b.dropDue(ctx, e)
}
