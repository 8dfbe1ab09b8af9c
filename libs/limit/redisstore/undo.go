package redisstore

import (
	"context"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// undone is the counter that takes back what c was charged at a time: a bucket
// what it has not refilled since, a window its count while it is the same one, a
// quota by refund.
func undone(c limit.Counter, at time.Time) limit.Counter {
	c.Cost, c.At = -c.Cost, at
	c.Force = c.Cost > 0
	return c
}

// giveBack takes back what was charged in some slots of a decision that is not
// allowed, or not known, in others. Meanwhile a twin may be denied, but nobody
// passes over the limit. The states become those after it.
func (a *asking) giveBack(ctx context.Context, s *Store, d *limit.Decision) {
	from := len(a.parts)
	for _, p := range a.parts[:from] {
		if p == nil || p.err != nil {
			continue
		}
		for _, g := range p.groups {
			if !g.apart && g.status == statusCharged {
				p.undo(s, a.part(s, from, p.slot), g)
			}
		}
	}
	a.started = s.now()
	a.ask(ctx, s, a.parts[from:])
	for _, p := range a.parts[from:] {
		if p == nil {
			continue // it is seen to when it is answered
		}
		s.owe(p)
		for i := range p.groups {
			if p.fill(&p.groups[i], d.States) == nil {
				s.counts.undone.Add(1)
			}
		}
	}
}

// undo lays out in another part what takes back a group's charge.
func (p *part) undo(s *Store, other *part, g group) {
	at := time.UnixMicro(p.now).UTC()
	other.settle, other.giving = true, s.o.Owe != nil
	other.begin(false)
	repeated := false
	for i, n := g.from, g.at; i < g.to; i++ {
		c := undone(p.counters[i], at)
		if c.Algorithm.Bucket() && c.Cost < 0 {
			c = untaken(c, time.UnixMicro(get(p.reply, n+1)), s.clock.guess())
		}
		n += answers(&p.counters[i])
		repeated = other.add(s.o.KeyPrefix, &c, p.index[i], at) || repeated
	}
	other.end(repeated)
}

// untaken cuts what a bucket gives back at once to what it still misses of a
// charge after which it would be full at a time. That is more than the charge's
// age alone tells where it was not full before: a busy bucket gets all of it
// back, and so loses nothing to what other slots deny.
func untaken(c limit.Counter, full, now time.Time) limit.Counter {
	missing := int64(0)
	if left := full.Sub(now); left > 0 {
		missing = limit.Refilled(c.Limit, c.Window, left) + 1 // rounded up
	}
	c.Cost, c.At = -min(-c.Cost, missing), now
	return c
}

// settleLate is the end of a part that nobody waits for: what was charged,
// though its decision heard nothing, is given back.
func (s *Store) settleLate(p *part) {
	switch {
	case p.giving:
		s.owe(p)
	case !p.settle && p.err == nil:
		s.takeBack(p)
	}
	s.release(p)
}

// owe hands on what a part was to give back and certainly has not: it was
// refused, or came too late. Of one whose answer is lost a receipt is asked for.
func (s *Store) owe(p *part) {
	if !p.giving || p.lost {
		return
	}
	for _, g := range p.groups {
		if p.err != nil || g.status == statusLate || g.status == statusWrongPeriod || g.status == statusRestore {
			s.o.Owe(p.counters[g.from].At, p.counters[g.from:g.to])
		}
	}
}

// takeBack undoes the charges of a part's groups: what is owed is on disk, and
// neither an outage nor the end of this process loses it.
func (s *Store) takeBack(p *part) {
	if s.o.Owe == nil {
		s.sendBack(p)
		return
	}
	at := time.UnixMicro(p.now).UTC()
	for _, g := range p.groups {
		if g.status != statusCharged {
			continue
		}
		back := make([]limit.Counter, 0, g.to-g.from)
		for i := g.from; i < g.to; i++ {
			if p.counters[i].Cost != 0 {
				back = append(back, undone(p.counters[i], at))
			}
		}
		if len(back) > 0 {
			s.counts.undone.Add(1)
			s.o.Owe(at, back)
		}
	}
}

// sendBack sends what undoes the charges of a part's groups, once.
func (s *Store) sendBack(p *part) {
	var back *part
	for _, g := range p.groups {
		if g.status != statusCharged {
			continue
		}
		if back == nil {
			back = s.partPool.Get().(*part)
			back.slot = p.slot
			back.state.Store(partLeft)
		}
		p.undo(s, back, g)
	}
	if back == nil {
		return
	}
	s.counts.undone.Add(1)
	back.to = s.servers.lanes(s.background, back)
	if err := back.to.add(back); err != nil {
		s.counts.unknown.Add(1)
		s.release(back)
	}
}
