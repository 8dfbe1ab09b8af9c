package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// Settle charges counters whatever their state, each once for each number of an id,
// and is to be called again with the same arguments until it returns nil. A call of
// n counters takes the n numbers up to once.Seq; the numbers of one id must grow: an
// id's last one is remembered, for 30 days. Counter.At says when the units were
// used; costs below 0 refund. On Cluster each slot is settled once of its own. An
// error is limit.ErrUnanswered where Redis may have charged them all the same.
//
// broken are the places of counters whose key holds something else: they stay
// as they are, and will not come to be charged. It concerns no other. Waits up
// to CallTimeout, or as long as ctx says.
func (s *Store) Settle(ctx context.Context, once limit.Once, counters []limit.Counter) (broken []int, err error) {
	id, sequence := once.ID, once.Seq
	if sequence < uint64(len(counters)) || sequence > limit.MaxInteger {
		return nil, fmt.Errorf("settle %s: sequence %d of %d counters is not in %[3]d to 2^53", id, sequence, len(counters))
	}
	if len(counters) == 0 {
		return nil, nil
	}
	a := s.askPool.Get().(*asking)
	defer func() {
		a.reset(s)
		s.askPool.Put(a)
	}()
	a.started, a.patient = s.now(), true
	now, _ := s.clock.redis(a.started)
	forced := make([]limit.Counter, len(counters))
	for i := range counters {
		forced[i] = counters[i]
		forced[i].Force, forced[i].Shadow = true, false
		if forced[i].Renews() && forced[i].At.IsZero() {
			forced[i].At = now // whatever the period is when Redis comes to it
		}
		if err := forced[i].Check(); err != nil {
			return nil, fmt.Errorf("settle %s: %w", id, err)
		}
	}
	a.laySettlement(s, id, sequence, forced, now)
	a.ask(ctx, s, a.parts)
	if broken, err = a.settled(); err != nil {
		return broken, fmt.Errorf("settle %s: %w", id, err)
	}
	return broken, nil
}

// settled is nil when every counter was charged, now or before, or is broken.
func (a *asking) settled() (broken []int, err error) {
	for _, p := range a.parts {
		switch {
		case p == nil:
			err = fmt.Errorf("%w: %w", errNoAnswer, limit.ErrUnanswered)
			return nil, err
		case p.err != nil && p.lost:
			return nil, fmt.Errorf("%w: %w", p.err, limit.ErrUnanswered)
		case p.err != nil:
			err = p.err
			continue
		}
		for i := range p.groups {
			switch g := &p.groups[i]; g.status {
			case statusCharged, statusSettled:
			case statusRestore:
				err = errRestoring
			case statusBroken:
				broken = append(broken, p.index[g.from])
			default:
				err = fmt.Errorf("status %d: %w", g.status, limit.ErrUnavailable)
			}
		}
	}
	return broken, err
}

// laySettlement makes a guarded group of each counter, those of a slot in one
// call: it takes place as a whole, and what one of them is keeps no other from
// being charged, now or in a repetition. The slot's guard has the tag of its
// first counter, and its number grows from one to the next, quotas last: while
// they are being restored they wait, and what was charged before them is passed.
func (a *asking) laySettlement(s *Store, id string, sequence uint64, counters []limit.Counter, now time.Time) {
	guards := map[int]string{} // by slot
	for i := range counters {
		if slot := s.servers.slot(counters[i].Key); guards[slot] == "" && !isFree(&counters[i]) {
			guards[slot] = s.o.KeyPrefix + guardKey(counters[i].Key, id)
		}
	}
	number := sequence - uint64(len(counters))
	for _, quotas := range [...]bool{false, true} {
		for i := range counters {
			c := &counters[i]
			if c.Algorithm.Quota() != quotas {
				continue
			}
			if number++; isFree(c) {
				continue
			}
			slot := s.servers.slot(c.Key)
			p := a.part(s, 0, slot)
			p.settle = true
			p.begin(false)
			p.guard(guards[slot], fromBelow, int64(number)) //nolint:gosec // below 2^53
			p.end(p.add(s.o.KeyPrefix, c, i, now))
		}
	}
}

// guardKey holds the last sequence of an id that was settled beside a counter.
func guardKey(counter, id string) string {
	return "{" + epoch.Tag(counter) + "}:settled:" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(id)
}
