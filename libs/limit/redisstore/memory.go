package redisstore

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// seen are the highest numbers seen of a quota. They only ever grow.
type seen struct {
	consumed, refunded int64
	// third is forfeited of a prepaid quota, of one with rollover what it carries;
	// suffix says which, "" where there is none.
	third  int64
	suffix string
	expiry int64 // of its keys, s since the epoch; 0: never
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
	t.third, t.expiry = max(t.third, o.third), max(t.expiry, o.expiry)
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

// learn takes what an answer said of a quota.
func (m *memory) learn(key string, t seen) {
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
	s.young[key] = known.raise(t)
}

// floors are what is remembered, as numbers of keys, at a time in s since the
// epoch.
func (m *memory) floors(now int64, wanted func(key string) bool) []epoch.Floor {
	var all []epoch.Floor
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

func (t seen) floors(all []epoch.Floor, key string) []epoch.Floor {
	if t.step {
		return append(all, epoch.Floor{Key: key, Number: t.consumed, Expiry: t.expiry})
	}
	name := strings.TrimSuffix(key, suffixConsumed)
	add := func(suffix string, n int64) {
		all = append(all, epoch.Floor{Key: name + suffix, Number: n, Expiry: t.expiry})
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

// learn keeps what the answer to a call says of quotas, whoever still waits for
// it.
func (p *part) learn(m *memory) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.status != statusDenied && g.status != statusCharged {
			continue
		}
		if g.status == statusCharged {
			for _, st := range p.steps {
				m.learn(p.keys[st.key], seen{step: true, consumed: st.to, expiry: p.now/1_000_000 + stepExpiry})
			}
		}
		at := g.at
		for j := g.from; j < g.to; j++ {
			c := &p.counters[j]
			if c.Algorithm.Quota() {
				m.learn(p.keys[p.totals[j].key], p.totalsOf(j, at))
			}
			at += answers(c)
		}
	}
}

func (p *part) totalsOf(j, at int) seen {
	t := seen{consumed: get(p.reply, at+1), refunded: get(p.reply, at+2), expiry: p.totals[j].expiry}
	switch c := &p.counters[j]; {
	case c.Wallet():
		t.suffix, t.third = suffixForfeited, get(p.reply, at+3)
	case c.Rolls() && t.consumed > 0:
		t.suffix, t.third = suffixCarried, get(p.reply, at+3)
	}
	return t
}
