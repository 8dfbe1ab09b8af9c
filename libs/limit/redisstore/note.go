package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// notedKey, with a note's name behind it, is the key of its number.
const notedKey = "noted:"

// Clock is Redis's clock, never later than it is as far as its answers tell.
func (s *Store) Clock() time.Time {
	now, _ := s.clock.redis(s.now())
	return now
}

// Place tells by number where a counter lies: keys of one place may share their
// notes' names. One Redis is one place.
func (s *Store) Place(counter string) int { return s.servers.slot(counter) }

// DecideNoted decides as Decide does, and where the note is about an enforced
// counter writes it down in the step that charges: on a Cluster in each slot of
// the decision. A note
// whose number was used before charges nothing and is limit.ErrUnavailable.
//
// open says that enforced counters may be charged though the decision is none
// that passes: its answer was late or is lost, or what one slot charged
// while another denied is not given back. Then it is the caller's to TakeBack,
// until that returns nil. Where open is false nothing of a decision that does
// not pass is charged, or ever will be.
func (s *Store) DecideNoted(ctx context.Context, counters []limit.Counter, note limit.Note) (d limit.Decision, open bool, err error) {
	return s.decide(ctx, counters, note)
}

// TakeBack gives back what the note's decision charged to the counters, with
// costs below 0 and the times they were charged at, and ends the note: what was
// not charged by then never will be, even if the call is still on its way. All
// of it once, whoever calls it how often. What Redis has lost together with the
// note is not given back.
//
// It is to be called again with the same arguments until it returns nil. left
// are the places of counters that were charged and are not given back, since one
// of their slot holds something else: they are the caller's, who has each given
// back by itself. Waits as Settle does.
func (s *Store) TakeBack(ctx context.Context, note limit.Note, counters []limit.Counter) (left []int, err error) {
	for i := range counters {
		if err := counters[i].Check(); err != nil {
			return nil, fmt.Errorf("take back %s: %w", note.Name, err)
		}
	}
	a := s.askPool.Get().(*asking)
	defer func() {
		a.reset(s)
		s.askPool.Put(a)
	}()
	a.started, a.patient, a.note = s.now(), true, note
	a.layTakeBack(s, counters)
	a.ask(ctx, s, a.parts)
	for _, p := range a.parts {
		err := errNoAnswer
		if p != nil {
			err = p.tookBack()
		}
		switch {
		case errors.Is(err, limit.ErrCounterBroken):
			g := &p.groups[groupGives]
			left = append(left, p.index[g.from:g.to]...)
		case err != nil:
			return nil, fmt.Errorf("take back %s: %w", note.Name, err)
		}
	}
	return left, nil
}

// Groups of a part that takes back.
const (
	groupBars = iota
	groupGives
)

// layTakeBack makes two groups of each slot's counters, of which one at most
// takes place. Where nothing was charged, the first one's guards bring the
// number past the charge's to the end's, and so bar it. Where it was, and only
// then, the second one goes from there to the end and gives back.
func (a *asking) layTakeBack(s *Store, counters []limit.Counter) {
	for i := range counters {
		if isFree(&counters[i]) {
			continue
		}
		slot := s.servers.slot(counters[i].Key)
		p := a.part(s, 0, slot)
		if len(p.groups) > 0 {
			continue
		}
		p.settle = true
		p.begin(false)
		p.noteCharge(s, &a.note)
		p.noteEnd(s, &a.note)
		p.end(true)
		p.begin(false)
		p.noteEnd(s, &a.note)
		repeated := false
		for j := i; j < len(counters); j++ {
			if c := &counters[j]; !isFree(c) && s.servers.slot(c.Key) == slot {
				repeated = p.add(s.o.KeyPrefix, c, j, c.At) || repeated
			}
		}
		p.end(repeated)
	}
}

// tookBack is nil when the part's note has come to its end, and
// limit.ErrCounterBroken where it was charged and cannot be given back as a whole.
func (p *part) tookBack() error {
	switch {
	case p.err != nil:
		return p.err
	case p.groups[groupBars].status == statusCharged:
		return nil
	}
	switch status := p.groups[groupGives].status; status {
	case statusCharged, statusSettled:
		return nil
	case statusRestore:
		return errRestoring
	case statusBroken:
		return limit.ErrCounterBroken
	default:
		return fmt.Errorf("status %d: %w", status, limit.ErrUnavailable)
	}
}

// noteCharge has the group take place only if the note was not written before.
func (p *part) noteCharge(s *Store, note *limit.Note) {
	p.groups[len(p.groups)-1].noted = true
	p.guard(s.notedKey(p.slot, note), note.Charge())
}

// noteEnd has the group take place only if the note has not come to its end.
func (p *part) noteEnd(s *Store, note *limit.Note) {
	p.groups[len(p.groups)-1].noted = true
	p.guard(s.notedKey(p.slot, note), note.End())
}

func (s *Store) notedKey(slot int, note *limit.Note) string {
	if s.servers.cluster == nil {
		return s.o.KeyPrefix + notedKey + note.Name
	}
	return epoch.Beside(s.o.KeyPrefix, true, slot, notedKey+note.Name)
}

// notes reports whether the decision's note is about an enforced counter. Then it
// is in each of the decision's slots: where one denies, or an answer is lost,
// what the others charged is to be taken back, whatever it was charged for.
func (a *asking) notes(counters []limit.Counter) bool {
	for i := range counters {
		if c := &counters[i]; a.note.About(i) && !isFree(c) && !c.Apart() {
			return true
		}
	}
	return false
}

// otherPeriod reports whether a group with the note, of the parts from a place
// on, named another period than Redis is in.
func (a *asking) otherPeriod(from int) bool {
	for _, p := range a.parts[from:] {
		if p == nil || p.err != nil {
			continue
		}
		for i := range p.groups {
			if p.groups[i].noted && p.groups[i].status == statusWrongPeriod {
				return true
			}
		}
	}
	return false
}

// open reports whether something may be charged with a note, of a decision that
// does not pass.
func (a *asking) open() bool {
	charged := 0
	for _, p := range a.parts {
		if p == nil || p.lost || errors.Is(p.err, errAnswer) {
			return true
		}
		for i := range p.groups {
			switch g := &p.groups[i]; {
			case p.err != nil || !g.noted || g.status != statusCharged:
			case g.undoes:
				charged--
			default:
				charged++
			}
		}
	}
	return charged > 0
}
