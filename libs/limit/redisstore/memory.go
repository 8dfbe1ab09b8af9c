package redisstore

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/libs/limit"
)

// seen are the highest numbers seen of a quota. They only ever grow.
type seen struct {
	consumed, refunded int64
	// third is forfeited of a prepaid quota, of one with rollover what it carries;
	// suffix says which, "" where there is none.
	third  int64
	suffix string
	expiry int64 // of its keys, s since the epoch; 0: never
	at     int64 // when they were seen last, µs of Redis's clock
	// step: it is a number of an advance, in consumed, and the key is its own.
	step bool
}

// Steps are remembered for less than a day, within which the number of one key
// only grows: who uses the key anew does so later (libs/reserve).
const (
	stepExpiry     = 30 * 24 * 3600 // s, as the script sets it
	stepRemembered = 20 * 3600      // s
)

func (t seen) raise(o seen) seen {
	if t.step && o.expiry-t.expiry > stepRemembered {
		return o
	}
	t.step = t.step || o.step
	t.consumed, t.refunded = max(t.consumed, o.consumed), max(t.refunded, o.refunded)
	if t.suffix == "" {
		t.suffix = o.suffix
	}
	t.third, t.expiry, t.at = max(t.third, o.third), max(t.expiry, o.expiry), max(t.at, o.at)
	return t
}

const memoryShards = 64

// memory has the totals that this process saw of quotas, by the key of what
// they consumed. It is what a Redis that lost units gets them back from before
// they are in any event. Each shard is two generations: a full one becomes the
// old one, and what was not asked for since the last time is forgotten.
type memory struct {
	seed   maphash.Seed
	size   int // of a generation of a shard
	shards [memoryShards]shard
}

type shard struct {
	mu         sync.Mutex
	young, old map[string]seen
	tally      tally
}

func newMemory(size int) *memory {
	m := &memory{seed: maphash.MakeSeed(), size: max(1, size/memoryShards/2)}
	for i := range m.shards {
		m.shards[i].young = map[string]seen{}
	}
	return m
}

func (m *memory) shard(key string) *shard {
	return &m.shards[maphash.String(m.seed, key)%memoryShards]
}

// known returns what was seen of a quota, zeroes where nothing was.
func (m *memory) known(key string) seen {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.young[key]
	if !ok {
		t = s.old[key]
	}
	return t
}

// learn takes what an answer to a call that named a marker said of a quota, of
// which it moved the numbers by so many units.
func (m *memory) learn(key string, t seen, marker string, units Units) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.young[key]
	if !ok {
		known = s.old[key]
		if len(s.young) >= m.size {
			s.old, s.young = s.young, make(map[string]seen, m.size)
		}
	}
	now := known.raise(t)
	s.young[key] = now
	if !t.step && (units != Units{} || now.consumed > known.consumed || now.refunded > known.refunded) {
		s.tally.add(tallied{
			key: key, marker: marker, at: t.at, units: units,
			before: Units{known.consumed, known.refunded}, beforeAt: known.at,
			after: Units{t.consumed, t.refunded},
			vague: units.Refunded > 0 && t.refunded >= t.consumed,
		})
	}
}

// floors are what is remembered, as numbers of keys, at a time in s since the
// epoch.
func (m *memory) floors(now int64, wanted func(key string) bool) []floor {
	var all []floor
	add := func(key string, t seen) {
		if wanted(key) && (!t.step || now < t.expiry-stepExpiry+stepRemembered) {
			all = t.floors(all, key)
		}
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for key, t := range s.old {
			if _, newer := s.young[key]; !newer {
				add(key, t)
			}
		}
		for key, t := range s.young {
			add(key, t)
		}
		s.mu.Unlock()
	}
	return all
}

func (t seen) floors(all []floor, key string) []floor {
	if t.step {
		return append(all, floor{key: key, number: t.consumed, expiry: t.expiry})
	}
	name := strings.TrimSuffix(key, suffixConsumed)
	add := func(suffix string, n int64) {
		all = append(all, floor{key: name + suffix, number: n, expiry: t.expiry})
	}
	if t.consumed > 0 {
		add(suffixConsumed, t.consumed)
	}
	if t.refunded > 0 {
		add(suffixRefunded, t.refunded)
	}
	// What is carried stands from the first charge on, also where it is nothing.
	if t.third > 0 || t.suffix == suffixCarried && t.consumed > 0 {
		add(t.suffix, t.third)
	}
	return all
}

// learn keeps what the answer to a call that named a marker says of quotas,
// whoever still waits for it.
func (p *part) learn(m *memory, marker string) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.status != statusDenied && g.status != statusCharged {
			continue
		}
		if g.status == statusCharged {
			for _, st := range p.steps {
				m.learn(p.keys[st.key], seen{step: true, consumed: st.to, expiry: p.now/1_000_000 + stepExpiry}, marker, Units{})
			}
		}
		at := g.at
		for j := g.from; j < g.to; j++ {
			c := &p.counters[j]
			if c.Algorithm.Quota() {
				m.learn(p.keys[p.totals[j].key], p.totalsOf(j, at), marker, p.moved(g, j))
			}
			at += answers(c)
		}
	}
}

func (p *part) totalsOf(j, at int) seen {
	t := seen{consumed: get(p.reply, at+1), refunded: get(p.reply, at+2), expiry: p.totals[j].expiry, at: p.now}
	switch c := &p.counters[j]; {
	case c.Wallet():
		t.suffix, t.third = suffixForfeited, get(p.reply, at+3)
	case c.Rolls() && t.consumed > 0:
		t.suffix, t.third = suffixCarried, get(p.reply, at+3)
	}
	return t
}

// moved is by how much a group moved the numbers of its counter j. Where one is
// in it more than once its answers are all those after the last, so the first
// has all of it.
func (p *part) moved(g *group, j int) (u Units) {
	if g.status != statusCharged {
		return Units{}
	}
	key := p.totals[j].key
	for i := g.from; i < g.to; i++ {
		if c := &p.counters[i]; c.Algorithm.Quota() && p.totals[i].key == key {
			if i < j {
				return Units{}
			}
			u = u.Plus(unitsOf(c))
		}
	}
	return u
}

// unitsOf is by how much a counter's cost moves its numbers.
func unitsOf(c *limit.Counter) Units {
	if c.Cost < 0 {
		return Units{Refunded: -c.Cost}
	}
	return Units{Consumed: c.Cost}
}

// stepAt is a step of an advance: a key of the part, and what its number becomes.
type stepAt struct {
	key      int // in part.keys
	from, to int64
}

// guardAt is a group's last guard: a key of the part, and what its number becomes.
type guardAt struct {
	key    int // in part.keys
	number int64
}

// totalsAt is where a counter's totals are remembered; of quotas only.
type totalsAt struct {
	key    int // in part.keys
	expiry int64
}
