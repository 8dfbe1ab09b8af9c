package redisstore

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

func newPart(m *memory, c *clock) *part {
	return &part{memory: m, clock: c, done: make(chan struct{}, 1)}
}

func (p *part) number(n int64) {
	p.body = binary.LittleEndian.AppendUint64(p.body, math.Float64bits(float64(n)))
}

func (p *part) numbers(ns ...int64) {
	for _, n := range ns {
		p.number(n)
	}
}

// key appends the place of a key of a kind; it reports whether the key was
// named before.
func (p *part) key(key string, kind byte) (named bool) {
	at := -1
	for i := range p.keys {
		if p.keys[i] == key && p.kinds[i] == kind {
			at, named = i, true
			break
		}
	}
	if at < 0 {
		at = len(p.keys)
		p.keys, p.kinds = append(p.keys, key), append(p.kinds, kind)
	}
	p.places = append(p.places, len(p.body))
	p.number(int64(at))
	return named
}

// keyAt is which of the part's keys a place of the body names.
func (p *part) keyAt(place int) int {
	return int(math.Float64frombits(binary.LittleEndian.Uint64(p.body[place:])))
}

func put(body []byte, at int, n int64) {
	binary.LittleEndian.PutUint64(body[at:], math.Float64bits(float64(n)))
}

func get(text string, at int) int64 {
	at *= 8
	if at+8 > len(text) {
		return -1
	}
	b := text[at : at+8]
	return int64(math.Float64frombits(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56))
}

// enforces reports whether the part has counters that are not judged apart.
func (p *part) enforces() bool {
	return slices.ContainsFunc(p.groups, func(g group) bool { return !g.apart })
}

// answer gives the part's result to whoever waits; false where nobody does.
func (p *part) answer() bool {
	if !p.state.CompareAndSwap(partWaiting, partAnswered) {
		return false
	}
	p.done <- struct{}{}
	return true
}

// leave gives the part up; false where its result has come after all.
func (p *part) leave() bool { return p.state.CompareAndSwap(partWaiting, partLeft) }

// reset makes the part ready for another use.
func (p *part) reset() {
	clear(p.counters)
	clear(p.bounds)
	clear(p.keys)
	p.groups, p.counters, p.bounds, p.keys = p.groups[:0], p.counters[:0], p.bounds[:0], p.keys[:0]
	p.index, p.totals, p.steps = p.index[:0], p.totals[:0], p.steps[:0]
	p.kinds = p.kinds[:0]
	p.body, p.places, p.deadlines = p.body[:0], p.places[:0], p.deadlines[:0]
	p.err, p.reply, p.now, p.until = nil, "", 0, 0
	p.settle, p.quotas, p.marked, p.giving, p.lost = false, false, false, false, false
	p.to, p.owner, p.next = nil, 0, nil
	p.state.Store(partWaiting)
	p.sent.Store(0)
}

// sentAt is when the part was sent, zero while it waits for its turn.
func (p *part) sentAt() time.Time {
	if ns := p.sent.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}
