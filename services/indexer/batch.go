package indexer

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// patience is how long a batch is tried before it goes back to the group,
// which then lets a rebalance happen and hands it in again.
const patience = 5 * time.Second

// place is where a record stands in its topic.
type place struct {
	partition int32
	offset    int64
}

// pending is one record that is no document and no dead letter yet.
type pending struct {
	record stream.Record
	event  usage.Event
}

// handle settles a batch: each record becomes a document or a dead letter.
// When it cannot, it returns why, and remembers what it did settle for the
// time the batch comes again.
func (s *Service) handle(ctx context.Context, batch []stream.Record) error {
	s.lag.begin(batch)
	err := s.settle(ctx, batch)
	s.setStall(err)
	if err != nil {
		return err
	}
	clear(s.settled)
	s.lag.end(batch, s.deps.Now())
	return nil
}

func (s *Service) settle(ctx context.Context, batch []stream.Record) error {
	left, letters := s.sort(batch)
	budget, cancel := context.WithTimeout(ctx, patience) // looked at between tries: a slow store is not cut off
	defer cancel()
	pause := backoff.Backoff{}
	for {
		refused, again, err := s.put(ctx, left)
		if letterErr := s.post(ctx, append(letters, refused...)); letterErr != nil {
			return letterErr
		}
		letters, left = nil, again
		if err == nil && len(left) == 0 {
			return nil
		}
		s.setStall(err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if budget.Err() != nil {
			return fmt.Errorf("%d events wait for the usage store: %w", len(left), err)
		}
		s.deps.Log.Warn("usage events are not stored yet", "events", len(left), "error", err)
		s.metrics.retries.Add(float64(len(left)))
		_ = pause.Wait(budget) // its end is seen after one more try
	}
}

// sort decodes what was not settled in an earlier try of the batch.
func (s *Service) sort(batch []stream.Record) (left []pending, letters []letter) {
	for _, r := range batch {
		if s.settled[place{r.Partition, r.Offset}] {
			continue
		}
		e, v := judge(r, s.cfg.RetentionDays)
		if v.reason != "" {
			letters = append(letters, letter{record: r, eventID: e.ID, verdict: v})
			continue
		}
		left = append(left, pending{record: r, event: e})
	}
	return left, letters
}

// put stores events and returns those refused for good, those to try again,
// and the reason of the latter.
func (s *Service) put(ctx context.Context, left []pending) (refused []letter, again []pending, why error) {
	if len(left) == 0 {
		return nil, nil, nil
	}
	events := make([]usage.Event, len(left))
	for i, p := range left {
		events[i] = p.event
	}
	results, err := s.deps.Store.Put(ctx, events)
	if err != nil {
		return nil, left, err
	}
	for i, r := range results {
		switch {
		case r.Err == nil:
			s.metrics.documents.Inc()
			s.settled[place{left[i].record.Partition, left[i].record.Offset}] = true
		case r.Err.Permanent:
			refused = append(refused, letter{
				record: left[i].record, eventID: left[i].event.ID,
				verdict: verdict{deadletters.ReasonRefused, r.Err.Kind + ": " + r.Err.Detail},
			})
		default:
			again = append(again, left[i])
			why = r.Err
		}
	}
	return refused, again, why
}
