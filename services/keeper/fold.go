package keeper

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const (
	// clockTolerance is how far a gateway's clock may be ahead of Kafka's; a
	// charge from later than that would stay the newest for ever.
	clockTolerance = 5 * time.Minute
	// maxCounterBytes fits the index of checkpoints' primary key.
	maxCounterBytes = 2000
)

// fold gathers totals by counter. It is safe for concurrent use.
type fold struct {
	mu       sync.Mutex
	counters map[string]totals
	oldest   time.Time // record time of the oldest event in it; zero when empty
	owed     owed      // is not emptied with the rest
	// reservations are what events told of them.
	reservations map[reservationKey]reserve.Kept
}

func newFold() *fold {
	return &fold{counters: map[string]totals{}, owed: owed{}, reservations: map[reservationKey]reserve.Kept{}}
}

// event folds an event's charges, and what it tells of a reservation, and returns
// how many of these no gateway can have made.
func (f *fold) event(e usage.Event, recorded time.Time) (bad int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := e.TS.UTC()
	if limit := recorded.Add(clockTolerance); at.After(limit) {
		at = limit
	}
	if k, ok := reservationOf(&e); ok {
		f.reserve(k)
	} else if e.ReservationState != nil {
		bad++
	}
	for _, c := range e.Charges {
		if !foldable(c) {
			bad++
			continue
		}
		t := totals{
			metric: c.Metric, consumed: c.Consumed, refunded: c.Refunded, forfeited: c.Forfeited,
			carried: c.Carried, limit: c.Limit, chargedAt: at, eventID: e.ID,
		}
		f.put(c.Counter, t)
		f.owed.note(c, t, recorded)
		f.since(recorded)
	}
	return bad
}

// foldable refuses what no gateway makes and Postgres would refuse for ever,
// which would keep every other counter out as well.
func foldable(c usage.Charge) bool {
	return c.Counter != "" && len(c.Counter) <= maxCounterBytes && !strings.ContainsRune(c.Counter+c.Metric, 0) &&
		c.Consumed >= 0 && c.Refunded >= 0 && c.Forfeited >= 0 && (c.Carried == nil || *c.Carried >= 0)
}

func (f *fold) put(counter string, t totals) {
	if known, ok := f.counters[counter]; ok {
		t = known.add(t)
	}
	f.counters[counter] = t
}

func (f *fold) since(at time.Time) {
	if f.oldest.IsZero() || at.Before(f.oldest) {
		f.oldest = at
	}
}

// take empties the fold and returns what was in it.
func (f *fold) take() (counters map[string]totals, oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counters, oldest = f.counters, f.oldest
	f.counters, f.oldest = map[string]totals{}, time.Time{}
	return counters, oldest
}

// giveBack returns what could not be written; meanwhile more may have come.
func (f *fold) giveBack(counters map[string]totals, oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for counter, t := range counters {
		f.put(counter, t)
	}
	if len(counters) > 0 {
		f.since(oldest)
	}
}

func (f *fold) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.counters) + len(f.reservations)
}

// age is how old the oldest event in the fold is.
func (f *fold) age(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(f.oldest))
}

func (f *fold) reserve(k reserve.Kept) {
	at := reservationKey{k.Tenant, k.ID}
	if known, ok := f.reservations[at]; ok {
		k = further(known, k)
	}
	f.reservations[at] = k
}

// takeReservations empties the fold of reservations.
func (f *fold) takeReservations() []reserve.Kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]reserve.Kept, 0, len(f.reservations))
	for _, k := range f.reservations {
		all = append(all, k)
	}
	f.reservations = map[reservationKey]reserve.Kept{}
	return all
}

func (f *fold) giveBackReservations(all []reserve.Kept) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range all {
		f.reserve(k)
	}
}

// owing lists what is to be looked at.
func (f *fold) owing() owed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.owed)
}

// looked forgets what was looked at and is old enough to be settled.
func (f *fold) looked(at owed, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for counter, o := range at {
		if known, ok := f.owed[counter]; ok && known.until.Equal(o.until) && now.After(o.until) {
			delete(f.owed, counter)
		}
	}
}
