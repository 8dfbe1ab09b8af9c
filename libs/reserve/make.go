package reserve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// attempts is how often a reservation is tried whose period, or whose twin, gets
// in between.
const attempts = 4

// Made is what became of a wish to reserve.
type Made struct {
	Reservation
	// Repeated: it was there already, and Decision is empty.
	Repeated bool
	// Decision is that of the enforced counters, with the states of all in the
	// order they were given in. Where it is not allowed, nothing was reserved.
	Decision limit.Decision
}

// Reserve charges counters, each of which is one of the record's charges, for a
// time; made is called once they are, before it returns, to tell of it. The
// record's At and Until are set here. Of several calls for one id one reserves,
// and the others find that it did. Errors: ErrAnother, *EndedError of one that has
// ended, ErrTooMany, or that the store is away; whether units were taken is then not known,
// and a repeat tells. What nobody repeats is given back when it is due.
func (b *Book) Reserve(ctx context.Context, r Record, ttl time.Duration, counters []limit.Counter, made func(Made)) (Made, error) {
	n := name{r.Tenant, r.ID}
	for range attempts {
		st, err := b.look(ctx, n, 0)
		if err != nil {
			return Made{}, err
		}
		if found, ok := st.reservation(n); ok {
			return repeated(found, r.Request)
		}
		if st.open >= int64(b.o.MaxOpen) {
			return Made{}, ErrTooMany // as takePlace would find, but nothing is written
		}
		r.At = st.now
		r.Until = st.now + ttl.Microseconds()
		r.Charges = slices.Clone(r.Charges)
		for i := range counters {
			r.Charges[i].Saved = limit.Save(&counters[i], r.ReservedAt())
		}
		out, err := b.attempt(ctx, r, counters, made)
		if !errors.Is(err, errAgain) {
			return out, err
		}
	}
	return Made{}, fmt.Errorf("%w: %w", limit.ErrUnavailable, errBusy)
}

func repeated(found Reservation, request string) (Made, error) {
	switch {
	case found.State != Void && found.Request != request:
		return Made{}, ErrAnother
	case found.State.Ended():
		return Made{}, &EndedError{found}
	}
	return Made{Reservation: found, Repeated: true}, nil
}

// errAgain: nothing of the attempt stands, and another one is to be made.
var errAgain = errors.New("another attempt is to be made")

// attempt charges one record.
func (b *Book) attempt(ctx context.Context, r Record, counters []limit.Counter, made func(Made)) (Made, error) {
	e := entry{name{r.Tenant, r.ID}, r.At}
	if err := b.takePlace(ctx, e, &r); err != nil {
		return Made{}, err
	}
	if err := b.die(pointIntent); err != nil {
		return Made{}, err
	}
	b.memory.remember(e, &r)
	deciding, followers := split(b.o.Client, &r)
	out := Made{Reservation: Reservation{Record: &r, State: Reserved}, Decision: limit.Decision{States: make([]limit.State, len(counters))}}
	if done, err := b.chargeOthers(ctx, &r, followers, counters, &out.Decision); err != nil || !done {
		return b.withdrawn(ctx, e, out, err)
	}
	if err := b.die(pointOthers); err != nil {
		return Made{}, err
	}
	d, err := b.o.Store.Advance(ctx, redisstore.Advance{
		Steps:    []redisstore.Step{{Key: e.state(), To: int64(Reserved)}, {Key: e.name.attempt(), To: r.At}},
		Counters: some(counters, deciding), At: r.ReservedAt(), Until: r.ExpiresAt(),
	})
	if err == nil {
		out.take(d, deciding)
	}
	if err != nil || !d.Allowed {
		return b.withdrawn(ctx, e, out, err)
	}
	out.Decision.Allowed = true
	if err := b.die(pointCharged); err != nil {
		return Made{}, err
	}
	b.chargeShadows(ctx, &r, followers, counters, &out.Decision)
	if err := b.die(pointShadows); err != nil {
		return Made{}, err
	}
	made(out)
	if err := b.die(pointTold); err != nil {
		return Made{}, err
	}
	b.noteTold(ctx, e, r.Until)
	return out, b.die(pointNoted)
}

// take notes the states of counters that were decided on together.
func (m *Made) take(d limit.Decision, places []int) {
	m.Decision.Now = d.Now
	for i, at := range places {
		m.Decision.States[at] = d.States[i]
	}
}

func some(counters []limit.Counter, places []int) []limit.Counter {
	all := make([]limit.Counter, len(places))
	for i, at := range places {
		all[i] = counters[at]
	}
	return all
}

// withdrawn ends an attempt that was not charged, as far as is known. Where that
// is not certain it stays until it is due.
func (b *Book) withdrawn(ctx context.Context, e entry, out Made, err error) (Made, error) {
	advanced, period := errors.Is(err, redisstore.ErrAdvanced), errors.Is(err, redisstore.ErrOtherPeriod)
	certain := err == nil || advanced || period || errors.Is(err, redisstore.ErrOverdue) ||
		errors.Is(err, limit.ErrRestoring) || errors.Is(err, limit.ErrCounterBroken)
	if certain {
		b.memory.forget(e)
		if back := b.forget(ctx, e, out.Record); back != nil {
			b.o.Log.WarnContext(ctx, "an attempt to reserve is not taken back yet; it is when it falls due", "cause", back)
		}
	}
	switch {
	case advanced, period, errors.Is(err, redisstore.ErrOverdue):
		return Made{}, errAgain
	case err != nil:
		return Made{}, err
	}
	return out, nil
}

// noteTold notes that the charge was told of: there is nothing to be done before it
// is due. Where it is not noted, a sweep, or whoever ends the reservation, tells it
// once more.
func (b *Book) noteTold(ctx context.Context, e entry, until int64) {
	pipe := b.o.Client.Pipeline()
	pipe.HSet(ctx, b.o.KeyPrefix+e.records(), toldField, 1)
	b.move(ctx, pipe, e, until)
	if _, err := pipe.Exec(ctx); err != nil {
		b.o.Log.DebugContext(ctx, "what was told of a reservation is not noted", "cause", err)
	}
}
