package keeper

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// owedFor is how long after a charge that a gateway still owed its counter is
// looked at: a journal is emptied within a second once Redis is there.
const owedFor = 10 * time.Minute

// owed are counters with charges or refunds that a gateway had only journaled
// when it told of them: nobody knew the totals then, and the counter may not be
// charged again, so that no event would ever tell of them. The fold holds it
// under its lock.
type owed map[string]owing

type owing struct {
	totals
	until time.Time // Kafka's clock
}

func (o owed) note(c usage.Charge, t totals, recorded time.Time) {
	if c.Pending {
		o[c.Counter] = owing{totals{metric: t.metric, limit: t.limit, chargedAt: t.chargedAt, eventID: t.eventID}, recorded.Add(owedFor)}
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

// addOwed takes what Redis says of the counters that are owed into a checkpoint.
// Like every other source it can only raise a number, so a Redis that has lost
// them does no harm. One that is away is asked with the next checkpoint.
func (s *Service) addOwed(ctx context.Context, counters map[string]totals) {
	at := s.fold.owing()
	for names := range slices.Chunk(slices.Sorted(maps.Keys(at)), rowsPerTransaction) {
		found, err := redisstore.ReadTotals(ctx, s.deps.Redis, s.deps.KeyPrefix, names)
		if err != nil {
			s.deps.Log.DebugContext(ctx, "counters that are owed cannot be read yet", "counters", len(at), "error", err)
			return
		}
		for i, name := range names {
			t := at[name].totals
			t.consumed, t.refunded, t.forfeited = found[i].Consumed, found[i].Refunded, found[i].Forfeited
			if known, ok := counters[name]; ok {
				t = known.add(t)
			}
			counters[name] = t
		}
	}
	s.fold.looked(at, s.deps.Now())
}
