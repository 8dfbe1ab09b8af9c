package reserve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// chargeOthers charges the enforced counters of other slots, before the tenant's
// decides. It reports false where one of them denies, of which d tells.
func (b *Book) chargeOthers(ctx context.Context, r *Record, followers []follower, counters []limit.Counter, d *limit.Decision) (bool, error) {
	for i := range followers {
		f := &followers[i]
		if f.shadow {
			continue
		}
		got, err := b.chargeFollower(ctx, r, f, counters)
		if err != nil {
			return false, err
		}
		m := Made{Decision: *d}
		m.take(got, f.places)
		*d = m.Decision
		if !got.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// chargeShadows charges each shadow rule's counter that would pass. One that
// cannot be asked is left aside: it decides nothing.
func (b *Book) chargeShadows(ctx context.Context, r *Record, followers []follower, counters []limit.Counter, d *limit.Decision) {
	for i := range followers {
		f := &followers[i]
		if !f.shadow {
			continue
		}
		at := f.places[0]
		got, err := b.chargeFollower(ctx, r, f, counters)
		if err != nil {
			d.States[at] = limit.State{Key: counters[at].Key, Shadow: true, Broken: true}
			continue
		}
		d.States[at] = got.States[0]
	}
}

func (b *Book) chargeFollower(ctx context.Context, r *Record, f *follower, counters []limit.Counter) (limit.Decision, error) {
	return b.o.Store.Advance(ctx, redisstore.Advance{
		Steps:    []redisstore.Step{{Key: f.key, To: followerCharged}},
		Counters: some(counters, f.places), At: r.ReservedAt(), Until: r.ExpiresAt(),
	})
}

// follow brings the followers of an attempt to where that ended, or of
// one that was not charged, back to nothing. Those that are there already, or
// were never charged, stay.
func (b *Book) follow(ctx context.Context, r Reservation, h *heard) error {
	_, followers := split(b.o.Client, r.Record)
	for i := range followers {
		f := &followers[i]
		step := redisstore.Step{Key: f.key, From: followerCharged, To: followerEnded}
		err := b.correct(ctx, r, []redisstore.Step{step}, f.places, h)
		if errors.Is(err, redisstore.ErrAdvanced) && f.shadow {
			err = b.hearOf(ctx, f, h)
		}
		if err != nil && !errors.Is(err, redisstore.ErrAdvanced) {
			return err
		}
	}
	return nil
}

// heard is what the counters said to corrections, in the order of the record's
// charges: nil where somebody else corrected them. never are the shadow rules'
// that were not charged.
type heard struct {
	states []*limit.State
	never  []bool
}

func hearing(r *Record) *heard {
	return &heard{states: make([]*limit.State, len(r.Charges)), never: make([]bool, len(r.Charges))}
}

// uncharged are the places of what was never charged.
func (h *heard) uncharged() (places []int) {
	for i, never := range h.never {
		if never {
			places = append(places, i)
		}
	}
	return places
}

// hearOf finds out whether a shadow rule's counter, which cannot be corrected, was
// corrected before or never charged.
func (b *Book) hearOf(ctx context.Context, f *follower, h *heard) error {
	number, err := b.followerNumber(ctx, f)
	h.never[f.places[0]] = number != strconv.Itoa(followerEnded)
	return err
}

// followerNumber is empty for none.
func (b *Book) followerNumber(ctx context.Context, f *follower) (string, error) {
	text, err := b.o.Client.Get(ctx, b.o.KeyPrefix+f.key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look at %s: %w", f.key, unavailable(err))
	}
	return text, nil
}

// closeShadows finds out which shadow rules were charged, and has the others stay
// as they are: the charge is told without them.
func (b *Book) closeShadows(ctx context.Context, r *Record, h *heard) error {
	_, followers := split(b.o.Client, r)
	for i := range followers {
		f := &followers[i]
		if !f.shadow {
			continue
		}
		_, err := b.o.Store.Advance(ctx, redisstore.Advance{
			Steps: []redisstore.Step{{Key: f.key, To: followerNever}}, At: r.ReservedAt(),
		})
		if err != nil && !errors.Is(err, redisstore.ErrAdvanced) {
			return err
		}
		number, err := b.followerNumber(ctx, f)
		if err != nil {
			return err
		}
		h.never[f.places[0]] = number == strconv.Itoa(followerNever)
	}
	return nil
}

// block has the other slots of an attempt that was not charged stay that way: by
// the clock of one of them it may not be over yet.
func (b *Book) block(ctx context.Context, r *Record, now int64) error {
	_, followers := split(b.o.Client, r)
	for i := range followers {
		if followers[i].shadow {
			continue
		}
		_, err := b.o.Store.Advance(ctx, redisstore.Advance{
			Steps: []redisstore.Step{{Key: followers[i].key, To: followerEnded}}, At: time.UnixMicro(now),
		})
		if err != nil && !errors.Is(err, redisstore.ErrAdvanced) {
			return err
		}
	}
	return nil
}

// correct takes steps together with the correction of some of the
// charges to what the reservation has come to. Broken counters are left out: they
// would be as broken at the next try.
func (b *Book) correct(ctx context.Context, r Reservation, steps []redisstore.Step, places []int, h *heard) error {
	counters, at := make([]limit.Counter, 0, len(places)), make([]int, 0, len(places))
	for _, i := range places {
		n, ok, err := r.Charges[i].correction(r.ReservedAt(), r.State, r.Committed)
		if err != nil {
			b.o.Log.ErrorContext(ctx, "a counter of a reservation cannot be corrected", "counter", r.Charges[i].Key, "error", err)
		}
		if ok && err == nil {
			counters, at = append(counters, n), append(at, i)
		}
	}
	d, err := b.o.Store.Advance(ctx, redisstore.Advance{Steps: steps, Counters: counters, At: r.ReservedAt()})
	if errors.Is(err, limit.ErrCounterBroken) {
		if counters, at, err = b.unbroken(ctx, counters, at); err != nil {
			return err
		}
		d, err = b.o.Store.Advance(ctx, redisstore.Advance{Steps: steps, Counters: counters, At: r.ReservedAt()})
	}
	if err != nil {
		return fmt.Errorf("reservation %s: %w", r.ID, err)
	}
	for i, place := range at {
		h.states[place] = &d.States[i]
	}
	return nil
}

// unbroken looks at each counter alone, and returns those that hold what they
// should.
func (b *Book) unbroken(ctx context.Context, counters []limit.Counter, at []int) ([]limit.Counter, []int, error) {
	var whole []limit.Counter
	var places []int
	for i := range counters {
		look := counters[i]
		look.Cost, look.Force = 0, true // of the time it is corrected for
		switch _, err := b.o.Store.Decide(ctx, []limit.Counter{look}); {
		case errors.Is(err, limit.ErrCounterBroken):
			b.o.Log.ErrorContext(ctx, "a counter of a reservation is broken; it is not corrected", "counter", look.Key, "units", counters[i].Cost)
		case err != nil:
			return nil, nil, err
		default:
			whole, places = append(whole, counters[i]), append(places, at[i])
		}
	}
	return whole, places, nil
}
