package redisstore

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"
)

// LostCalls is what gateways say, in a restore, of calls whose answers and whose
// proofs were lost: nobody knows by himself whether they were charged.
type LostCalls struct {
	accounts map[string]account
	since    map[question]int64
	lost     map[string]Units // by counter
	mixed    map[string]bool  // counters that are asked about under several markers
	all      []string         // the accounts
	alone    int64
	complete bool // everybody has heard everybody
}

// LostCalls reads what was said so far in the restore of a process.
func (r *Restorer) LostCalls(ctx context.Context, p Process) (LostCalls, error) {
	accounts, err := readAccounts(ctx, r.client, besides(r.prefix, r.cluster, p.home(), lostKey+p.Marker))
	return lostCallsOf(accounts), err
}

func lostCallsOf(accounts map[string]account) LostCalls {
	l := LostCalls{
		accounts: accounts, since: questions(accounts), lost: map[string]Units{}, mixed: map[string]bool{},
		all: slices.Sorted(maps.Keys(accounts)), complete: true,
	}
	for _, a := range accounts {
		l.complete = l.complete && slices.Equal(a.Heard, l.all)
		for _, c := range a.Lost {
			l.lost[c.Counter] = l.lost[c.Counter].Plus(c.Units)
		}
	}
	marker := map[string]string{}
	for q := range l.since {
		if first, ok := marker[q.counter]; ok && first != q.marker {
			l.mixed[q.counter] = true
		}
		marker[q.counter] = q.marker
	}
	l.alone = l.aloneSince()
	return l
}

// None reports whether nobody has lost a call.
func (l LostCalls) None() bool { return len(l.since) == 0 }

// Heard reports whether all that handed in to this restore have told what they
// know of each other's lost calls.
func (l LostCalls) Heard(gateways []string) bool {
	here := l.here()
	for _, name := range gateways {
		if !here[name] {
			return false
		}
	}
	return l.complete
}

// here are the gateways that have an account.
func (l LostCalls) here() map[string]bool {
	names := make(map[string]bool, len(l.all))
	for _, account := range l.all {
		names[gatewayOf(account)] = true
	}
	return names
}

// Placed is what came of a quota's lost calls.
type Placed struct {
	// Counter is its identity, without a deployment's prefix.
	Counter string
	// Lost is by how much they would have moved it.
	Lost Units
	// Found is by how many units the quota is too high for them, below 0 too low.
	// Where it cannot be told Known is false: what they gave back is taken for
	// done then, and comes once more, and what they consumed stays.
	Found int64
	Known bool
}

// leftFor is how long after one that left was seen last it may still have charged:
// gateways say that they are there, and look who is, every attendEvery, in whole
// seconds of Redis's clock. Clocks of two processes of Redis may differ, too.
const leftFor = 3 * time.Second

// place finds what a quota's lost calls charged, by the totals that it has come
// to. Since a time before the first of them was sent each gateway knows by how
// much it moved the quota, and how far it had seen it before: what is left over
// of the way is theirs.
//
// That holds where everybody who moved it since somebody knew where it stood is
// among those who answer: nobody had left by then, and no process of theirs began
// later. Else it is not known.
//
// What was found once and taken out is on the other number now, so that nothing
// is found again.
func (l LostCalls) place(q question, now Units) Placed {
	found := Placed{Counter: q.counter, Lost: l.lost[q.counter]}
	found.Found = -found.Lost.Refunded
	var base, moved, at Units // at: when the base was seen
	complete := l.complete && !l.mixed[q.counter]
	for _, a := range l.accounts {
		s, ok := a.Shares[q.String()]
		complete = complete && ok && !s.Partial
		moved = moved.Plus(s.Moved)
		base.Consumed, at.Consumed = further(base.Consumed, at.Consumed, s.Base.Consumed, s.BaseAt)
		base.Refunded, at.Refunded = further(base.Refunded, at.Refunded, s.Base.Refunded, s.BaseAt)
	}
	if !complete || min(at.Consumed, at.Refunded) < l.alone {
		return found
	}
	way := Units{now.Consumed - base.Consumed - moved.Consumed, now.Refunded - base.Refunded - moved.Refunded}
	if way.Consumed < 0 || way.Refunded < 0 {
		return found // it does not add up: Redis's clock was set, or a counter deleted
	}
	unplaced := l.unplaced(q, at)
	found.Known = true
	found.Found = (way.Consumed - unplaced.Consumed) - (way.Refunded - unplaced.Refunded)
	found.Found = max(min(found.Found, found.Lost.Consumed), -found.Lost.Refunded)
	return found
}

// unplaced is what was moved at places that nobody was told, and not before the
// base was seen, of which it would be part. Where that cannot be told the quota
// rather stays too high than becomes too low.
func (l LostCalls) unplaced(q question, at Units) (moved Units) {
	for _, a := range l.accounts {
		for _, u := range a.Shares[q.String()].Unplaced {
			if u.Until > at.Consumed {
				moved.Consumed += u.Units.Consumed
			}
			if u.From > at.Refunded {
				moved.Refunded += u.Units.Refunded
			}
		}
	}
	return moved
}

// further is the higher of two numbers, and when it was seen last.
func further(a, at, b, bt int64) (n, seen int64) {
	switch {
	case a > b:
		return a, at
	case b > a:
		return b, bt
	}
	return a, max(at, bt)
}

// aloneSince is since when nobody but those who answer has charged anything, µs
// of Redis's clock, as the one knows who has looked longest.
func (l LostCalls) aloneSince() int64 {
	here := l.here()
	longest, began := int64(math.MaxInt64), int64(0)
	for _, a := range l.accounts {
		began = max(began, a.Began)
		since := a.PeersSince
		for name, at := range a.Peers {
			if !here[name] {
				since = max(since, at)
			}
		}
		longest = min(longest, since)
	}
	return min(max(longest, began), math.MaxInt64/2) + leftFor.Microseconds()
}
