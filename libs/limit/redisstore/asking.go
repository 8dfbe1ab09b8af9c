package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

func (a *asking) reset(s *Store) {
	for _, p := range a.parts {
		if p != nil {
			s.release(p)
		}
	}
	clear(a.parts)
	a.parts, a.patient = a.parts[:0], false
}

func (a *asking) decide(ctx context.Context, s *Store, counters []limit.Counter) (limit.Decision, error) {
	a.started = s.now()
	now, _ := s.clock.redis(a.started)
	a.layOut(s, counters, now)
	for from, try := 0, 0; ; try++ {
		next := len(a.parts)
		a.ask(ctx, s, a.parts[from:])
		// What Redis says of its clock is news; nothing was charged. Too late it is
		// more than once where this process does not run for long between two steps.
		if try > 0 && !a.mayRepeat(s) {
			break
		}
		now, again := a.misdated(from)
		if !again {
			break
		}
		a.layAgain(s, now, from)
		from = next
	}
	d, err := a.judge(counters)
	if (err != nil || !d.Allowed) && a.charged() {
		a.giveBack(ctx, s, &d)
	}
	if err != nil {
		return limit.Decision{}, err
	}
	return d, nil
}

// mayRepeat reports whether there is time for another call: that for queueing,
// in which this process ran.
func (a *asking) mayRepeat(s *Store) bool {
	return a.ran(s) < longestQueue*s.o.Budget
}

// ran is for how long this process ran since the decision began.
func (a *asking) ran(s *Store) time.Duration {
	return s.now().Sub(a.started) - s.o.Breaker.Heartbeat.Stalled(a.started)
}

// part returns the decision's part for a slot, from a place on.
func (a *asking) part(s *Store, from, slot int) *part {
	for _, p := range a.parts[from:] {
		if p.slot == slot {
			return p
		}
	}
	p := s.partPool.Get().(*part)
	p.slot = slot
	a.parts = append(a.parts, p)
	return p
}

// layOut makes one group of the enforced counters of each slot, and one of each
// counter judged apart.
func (a *asking) layOut(s *Store, counters []limit.Counter, now time.Time) {
	for i := range counters {
		c := &counters[i]
		if isFree(c) || c.Apart() {
			continue
		}
		slot := s.servers.slot(c.Key)
		p := a.part(s, 0, slot)
		if len(p.groups) > 0 {
			continue // it has this slot's already
		}
		p.begin(false)
		repeated := false
		for j := i; j < len(counters); j++ {
			if c := &counters[j]; !isFree(c) && !c.Apart() && s.servers.slot(c.Key) == slot {
				repeated = p.add(s.o.KeyPrefix, c, j, now) || repeated
			}
		}
		p.end(repeated)
	}
	for i := range counters {
		if c := &counters[i]; !isFree(c) && c.Apart() {
			p := a.part(s, 0, s.servers.slot(c.Key))
			p.begin(true)
			p.end(p.add(s.o.KeyPrefix, c, i, now))
		}
	}
}

// misdated reports whether a group of the parts from a place on named another
// period, or came too late, by Redis's clock, which it returns.
func (a *asking) misdated(from int) (now time.Time, again bool) {
	for _, p := range a.parts[from:] {
		if p == nil || p.err != nil {
			continue
		}
		for i := range p.groups {
			if st := p.groups[i].status; st == statusWrongPeriod || st == statusLate {
				p.groups[i].again, again = true, true
				now = time.UnixMicro(p.now).UTC()
			}
		}
	}
	return now, again
}

// layAgain lays out those groups in new parts.
func (a *asking) layAgain(s *Store, now time.Time, since int) {
	from := len(a.parts)
	for _, old := range a.parts[since:from] {
		if old == nil || old.err != nil {
			continue
		}
		for _, g := range old.groups {
			if !g.again {
				continue
			}
			p := a.part(s, from, old.slot)
			p.begin(g.apart)
			repeated := false
			for i := g.from; i < g.to; i++ {
				repeated = p.add(s.o.KeyPrefix, &old.counters[i], old.index[i], now) || repeated
			}
			p.end(repeated)
		}
	}
}

// ask queues parts and waits for their answers. A part that was left is nil
// afterwards: it is no longer ours.
func (a *asking) ask(ctx context.Context, s *Store, parts []*part) {
	refused := a.refused(ctx, s, parts)
	for _, p := range parts {
		err := refused
		if err == nil || !p.enforces() {
			err = a.closed(p)
		}
		if err == nil {
			err = p.to.add(p)
		}
		if err != nil {
			p.err = err
			p.answer()
		}
	}
	for i, p := range parts {
		if !a.wait(ctx, s, p) {
			parts[i] = nil
		}
	}
}

// refused finds the server of each part, and returns why the enforced counters
// cannot be asked: where one of them is behind an open breaker, none is charged.
func (a *asking) refused(ctx context.Context, s *Store, parts []*part) (err error) {
	for _, p := range parts {
		p.to = s.servers.lanes(ctx, p)
		if err == nil && p.enforces() {
			err = a.closed(p)
		}
	}
	return err
}

// closed is why a part is not sent. What gives back is: it waits for its server.
func (a *asking) closed(p *part) error {
	if p.to.breaker.Closed() || p.settle && !a.patient {
		return nil
	}
	return fmt.Errorf("decide: breaker is open: %w", limit.ErrUnavailable)
}

// charged reports whether an enforced group was.
func (a *asking) charged() bool {
	for _, p := range a.parts {
		if p == nil || p.err != nil {
			continue
		}
		for _, g := range p.groups {
			if !g.apart && g.status == statusCharged {
				return true
			}
		}
	}
	return false
}

var errNoAnswer = fmt.Errorf("decide: no answer in time: %w", limit.ErrUnavailable)
