package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Settle charges counters whatever their state, once for each sequence number
// of an id, and is to be called again with the same arguments until it returns
// nil or limit.ErrCounterBroken. The numbers of one id must grow: an id's last
// one is remembered, for 30 days. Counter.At says when the units were used;
// costs below 0 refund. On Cluster each slot is settled once of its own.
//
// limit.ErrCounterBroken means that a counter holds something else; the
// counters of its slot stay as they were, and will not come to be charged.
// Waits up to CallTimeout, or as long as ctx says.
func (s *Store) Settle(ctx context.Context, id string, sequence uint64, counters []limit.Counter) error {
	if sequence == 0 || sequence > limit.MaxInteger {
		return fmt.Errorf("settle %s: sequence %d is not in 1 to 2^53", id, sequence)
	}
	if len(counters) == 0 {
		return nil
	}
	forced := make([]limit.Counter, len(counters))
	for i := range counters {
		forced[i] = counters[i]
		forced[i].Force, forced[i].Shadow = true, false
		if err := forced[i].Check(); err != nil {
			return fmt.Errorf("settle %s: %w", id, err)
		}
	}
	a := s.askPool.Get().(*asking)
	defer func() {
		a.reset(s)
		s.askPool.Put(a)
	}()
	return a.settle(ctx, s, id, sequence, forced)
}

func (a *asking) settle(ctx context.Context, s *Store, id string, sequence uint64, counters []limit.Counter) error {
	a.started, a.patient = s.now(), true
	now, _ := s.clock.redis(a.started)
	a.laySettlement(s, id, sequence, counters, now)
	first := len(a.parts)
	a.ask(ctx, s, a.parts)
	if now, again := a.misdated(0); again {
		a.laySettlement(s, id, sequence, counters, now)
		a.ask(ctx, s, a.parts[first:])
	}
	for _, p := range a.parts {
		if p == nil {
			return fmt.Errorf("settle %s: %w", id, errNoAnswer)
		}
		for i := range p.groups {
			g := &p.groups[i]
			switch {
			case p.err != nil:
				return fmt.Errorf("settle %s: %w", id, p.err)
			case g.again, g.status == statusCharged, g.status == statusSettled:
			case g.status == statusRestore:
				return fmt.Errorf("settle %s: %w", id, errRestoring)
			case g.status == statusBroken:
				return fmt.Errorf("settle %s: %w", id, limit.ErrCounterBroken)
			default:
				return fmt.Errorf("settle %s: status %d: %w", id, g.status, limit.ErrUnavailable)
			}
		}
	}
	return nil
}

// laySettlement makes one guarded group of each slot's counters. The guard's
// key has the tag of the first of them, and so lies in their slot.
func (a *asking) laySettlement(s *Store, id string, sequence uint64, counters []limit.Counter, now time.Time) {
	from := len(a.parts)
	for i := range counters {
		if isFree(&counters[i]) {
			continue
		}
		slot := s.servers.slot(counters[i].Key)
		p := a.part(s, from, slot)
		if len(p.groups) > 0 {
			continue
		}
		p.settle = true
		p.begin(false)
		p.guard(s.o.KeyPrefix+guardKey(counters[i].Key, id), sequence)
		for j := i; j < len(counters); j++ {
			if c := &counters[j]; !isFree(c) && s.servers.slot(c.Key) == slot {
				p.add(s.o.KeyPrefix, c, j, now)
			}
		}
		p.end(false)
	}
}

// guardKey holds the last sequence of an id that was settled beside a counter.
func guardKey(counter, id string) string {
	return "{" + tagOf(counter) + "}:settled:" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(id)
}
