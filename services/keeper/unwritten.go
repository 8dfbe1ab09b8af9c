package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	known "github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/keeper/internal/restore"
)

// unwritten returns the totals that usage.v1 tells and no checkpoint has yet, and
// brings back the reservations that rows and these events know of.
func (s *Service) unwritten(ctx context.Context) ([]known.Known, error) {
	fresh := newFold()
	err := stream.ReadSince(ctx, s.deps.Stream, s.cfg.Group, usage.Topic, func(batch []stream.Record) error {
		for _, record := range batch {
			var e usage.Event
			if json.Unmarshal(record.Value, &e) == nil { // others are counted when they are folded
				fresh.event(e, record.Timestamp)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the usage that is not checkpointed yet: %w", err)
	}
	if err := s.bringBackReservations(ctx, fresh.takeReservations()); err != nil {
		return nil, err
	}
	counters, _ := fresh.take()
	all := make([]known.Known, 0, len(counters))
	for _, key := range slices.Sorted(maps.Keys(counters)) {
		t := counters[key]
		all = append(all, restore.KnownOf(key, redisstore.Totals{Consumed: t.consumed, Refunded: t.refunded, Forfeited: t.forfeited}, t.carried))
	}
	return all, nil
}
