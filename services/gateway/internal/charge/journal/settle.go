package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/libs/limit"
)

// charge has the store charge a stretch, some counters a call, each call once.
func (j *Journal) charge(ctx context.Context, end uint64, counters []limit.Counter) error {
	if err := j.beginStretch(end, counters); err != nil {
		return err
	}
	number := end * stretchNumbers
	for call := 0; len(counters) > 0; call++ {
		n := min(callCounters, len(counters))
		if call >= j.answered {
			if err := j.call(ctx, limit.Once{ID: j.o.Gateway + "/" + j.state.id, Seq: number}, counters[:n]); err != nil {
				return err
			}
			j.answered++
		}
		counters, number = counters[n:], number+callNumbers
	}
	return nil
}

// beginStretch has the stretch's end on disk before the store is asked. The records
// are on disk before: else a crash of the machine left their numbers to others.
//
// Where a call of the stretch was sent before and not answered, and the store has
// lost data since, nobody can know whether it was done. What charges is sent again;
// what gives back is not, so that no counter is too low.
func (j *Journal) beginStretch(end uint64, counters []limit.Counter) error {
	if err := j.sync(); err != nil {
		return err
	}
	epoch := j.o.Store.Epoch()
	if j.state.intent != end {
		if err := j.state.intend(end, hashOf(epoch)); err != nil {
			return err
		}
		j.answered, j.unanswered = 0, false
		return nil
	}
	switch {
	case !j.unanswered:
	case epoch == "":
		return fmt.Errorf("%w: %w", limit.ErrUnavailable, limit.ErrRestoring)
	case hashOf(epoch) != j.state.epoch:
		for i := min(len(counters), j.answered*callCounters); i < len(counters); i++ {
			if c := &counters[i]; c.Cost < 0 {
				j.metrics.unknown.Add(float64(-c.Cost))
				c.Cost = 0
			}
		}
	}
	return nil
}

// call charges some counters. One that is broken is left out.
func (j *Journal) call(ctx context.Context, once limit.Once, counters []limit.Counter) error {
	broken, err := j.o.Store.Settle(ctx, once, counters)
	for _, i := range broken {
		j.metrics.broken.Inc()
		j.o.Log.Error("what is owed cannot be charged", "counter", counters[i].Key, "units", counters[i].Cost, "error", limit.ErrCounterBroken)
	}
	j.unanswered = j.unanswered || errors.Is(err, limit.ErrUnanswered)
	return err
}
