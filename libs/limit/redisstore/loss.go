package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// loss is a group of quotas whose call was sent and not answered: whether it was
// charged its proof says, a key that the script wrote in the same step.
type loss struct {
	marker string // that the call named
	since  int64  // when it was sent, µs of Redis's clock at most
	slot   int
	proof  proof
	units  []lossUnits
}

// lossUnits is by how much it would have moved a quota's numbers.
type lossUnits struct {
	key    string // of what it consumed
	expiry int64  // of its keys, s since the epoch; 0: never
	Units
}

// proof is the key of a receipt with the group's place in it, that of a guard of
// its own, which is at the number or beyond, or that of a step, which others may
// have taken.
type proof struct {
	key    string
	number int64
	place  int   // on a receipt; else one of those below
	from   int64 // of a step
}

// Places that are on no receipt.
const (
	onGuard = -1
	onStep  = -2
)

// verdict is what a proof says of a call.
type verdict int

const (
	notShown verdict = iota
	shown
	shownByAny // by it, or by somebody else
)

// of reads what the key holds.
func (f proof) of(text string) verdict {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case f.place == onGuard && err == nil && n >= f.number:
		return shown
	case f.place == onStep && n != f.from:
		return shownByAny
	case f.place >= 0:
		number, statuses, _ := strings.Cut(text, ":")
		if number == strconv.FormatInt(f.number, 10) && f.place < len(statuses) && statuses[f.place] == '0'+statusCharged {
			return shown
		}
	}
	return notShown
}

// lossesKept is how many are remembered at most; more than that are not asked
// about when Redis has lost its data as well.
const lossesKept = 4096

// lossSlack is for clocks of a Cluster's masters that differ: the guess of Redis's
// clock is never late, but it is one for all of them.
const lossSlack = 100 * time.Millisecond

// losses are those of which it is not known yet. They are few, and none as long
// as the network holds.
type losses struct {
	mu  sync.Mutex
	all []*loss
	n   atomic.Int64
	// dropped: there were more than are kept, so that of no quota all is known.
	dropped atomic.Bool
}

// add remembers losses. A call that is made again and lost again is one.
func (l *losses) add(some []*loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range some {
		twice := slices.ContainsFunc(l.all, func(o *loss) bool { return o.marker == one.marker && o.proof == one.proof })
		switch {
		case twice:
		case len(l.all) == lossesKept:
			l.dropped.Store(true)
		default:
			l.all = append(l.all, one)
		}
	}
	l.n.Store(int64(len(l.all)))
}

// remove returns those that were still there.
func (l *losses) remove(gone func(*loss) bool) (removed []*loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(one *loss) bool {
		if gone(one) {
			removed = append(removed, one)
			return true
		}
		return false
	})
	l.n.Store(int64(len(l.all)))
	return removed
}

// lossesOf are those groups of a lost call that were to move quotas.
func (s *Store) lossesOf(b *batch) (all []*loss) {
	at, known := s.clock.redis(b.began.Add(-lossSlack))
	if !known || b.known == noMarker {
		return nil
	}
	place := -1
	for _, p := range b.parts {
		for i := range p.groups {
			place++
			g := &p.groups[i]
			units := p.wouldMove(g)
			f := proof{key: b.receipt.key, number: b.receipt.number, place: place}
			if f.number == 0 {
				f = p.proofOf(g)
			}
			if len(units) > 0 && f.key != "" {
				all = append(all, &loss{marker: b.known, since: at.UnixMicro(), slot: p.slot, proof: f, units: units})
			}
		}
	}
	return all
}

func (p *part) wouldMove(g *group) (all []lossUnits) {
	for j := g.from; j < g.to; j++ {
		if c := &p.counters[j]; c.Algorithm.Quota() && c.Cost != 0 {
			all = append(all, lossUnits{p.keys[p.totals[j].key], p.totals[j].expiry, unitsOf(c)})
		}
	}
	return all
}

func (p *part) proofOf(g *group) proof {
	switch {
	case g.guard.number > 0:
		return proof{key: p.keys[g.guard.key], number: g.guard.number, place: onGuard}
	case len(p.steps) > 0 && p.steps[0].from != p.steps[0].to:
		return proof{key: p.keys[p.steps[0].key], number: p.steps[0].to, place: onStep, from: p.steps[0].from}
	}
	return proof{}
}

// answered sees to the losses that a later call under the same marker tells of:
// its guard found their number, or one below it. What bars a note has two guards,
// that of the charge first, and comes to pass only where it was not charged.
func (l *losses) answered(m *memory, p *part, marker string) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.status != statusCharged && g.status != statusSettled {
			continue
		}
		f := p.proofOf(g)
		if f.key == "" {
			continue
		}
		found := l.remove(func(one *loss) bool {
			return one.marker == marker && one.proof.place == f.place && one.proof.key == f.key && one.proof.number <= f.number
		})
		for _, one := range found {
			if g.status == statusSettled || one.proof.number < f.number && g.guards == 1 {
				one.charged(m, time.UnixMicro(p.now), f.place == onStep)
			}
		}
	}
}

// charged notes that it was, before a time of Redis's clock, without its totals;
// vague where it may have been somebody else.
func (one *loss) charged(m *memory, until time.Time, vague bool) {
	for _, u := range one.units {
		m.place(u.key, one.marker, one.since, until.Add(lossSlack).UnixMicro(), u.Units, vague)
	}
}

// over forgets the losses of some slots under other markers than the one by
// which they are whole.
func (l *losses) over(slots []int, marker string) {
	if l.n.Load() == 0 {
		return
	}
	l.dropped.Store(false)
	l.remove(func(one *loss) bool { return one.marker != marker && slices.Contains(slots, one.slot) })
}

// judge looks which losses under other markers are proven by what the process of
// these slots has now; those which are not are returned: whether what others saw
// holds them, they cannot know.
func (s *Store) judge(ctx context.Context, slots []int, marker string) ([]*loss, error) {
	s.losses.mu.Lock()
	asked := slices.DeleteFunc(slices.Clone(s.losses.all), func(one *loss) bool {
		return one.marker == marker || one.marker == "" || !slices.Contains(slots, one.slot)
	})
	s.losses.mu.Unlock()
	var open []*loss
	for _, one := range asked {
		text, err := s.read(ctx, one.proof.key)
		if err != nil {
			return nil, err
		}
		found := one.proof.of(text)
		if found == notShown {
			open = append(open, one)
			continue
		}
		for _, known := range s.losses.remove(func(o *loss) bool { return o == one }) {
			known.charged(s.memory, s.clock.guess(), found == shownByAny)
		}
	}
	return open, nil
}

// read returns what a key holds, nothing where there is none.
func (s *Store) read(ctx context.Context, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	text, err := s.client.Get(ctx, key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", err
	}
	return text, nil
}

// stillAsOf reports whether a slot's quotas are whole by a marker, in the process
// that Redis is now: then nothing was lost since the marker was set.
func (s *Store) stillAsOf(slot int, marker string) bool {
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	st, err := standingOf(markerScript.Run(ctx, s.client, []string{s.servers.markerKey(slot)}, "look", ""))
	return err == nil && st.whole() && st.incarnation() == marker
}
