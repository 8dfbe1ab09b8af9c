package redisstore

import (
	"context"
	"math"
	"slices"
	"time"
)

// LostCalls is what gateways say, in a restore, of calls whose answers and whose
// proofs were lost: nobody knows by himself whether they were charged.
type LostCalls struct{ accounts map[string]account }

// LostCalls reads what was said so far in the restore of a process.
func (r *Restorer) LostCalls(ctx context.Context, p Process) (LostCalls, error) {
	accounts, err := readAccounts(ctx, r.client, besides(r.prefix, r.cluster, p.home(), lostKey+p.Marker))
	return LostCalls{accounts}, err
}

// None reports whether nobody has lost a call.
func (l LostCalls) None() bool {
	_, asked := questions(l.accounts)
	return len(asked) == 0
}

// Heard reports whether all that were asked have answered: those that handed in
// to this restore.
func (l LostCalls) Heard(names []string) bool {
	_, asked := questions(l.accounts)
	for _, name := range names {
		if a, ok := l.accounts[name]; !ok || !slices.Equal(a.Heard, asked) {
			return false
		}
	}
	return true
}

// Placed is what came of a quota's lost calls.
type Placed struct {
	// Counter is its identity, without a deployment's prefix.
	Counter string
	// Lost is by how much they would have moved it.
	Lost Units
	// Found is by how many units the quota is higher for them, net of what was
	// given back; where Known is false that cannot be told.
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
	found := Placed{Counter: q.counter}
	_, asked := questions(l.accounts)
	var base, moved, at Units // at: when the base was seen
	complete := true
	for _, a := range l.accounts {
		for _, c := range a.Lost {
			if c.Counter == q.counter {
				found.Lost = found.Lost.Plus(c.Units)
				complete = complete && c.Marker == q.marker
			}
		}
		s, ok := a.Shares[q.String()]
		complete = complete && ok && !s.Partial && slices.Equal(a.Heard, asked)
		moved = moved.Plus(s.Moved)
		base.Consumed, at.Consumed = further(base.Consumed, at.Consumed, s.Base.Consumed, s.BaseAt)
		base.Refunded, at.Refunded = further(base.Refunded, at.Refunded, s.Base.Refunded, s.BaseAt)
	}
	if !complete || min(at.Consumed, at.Refunded) < l.alone() {
		return found
	}
	for _, a := range l.accounts {
		for _, u := range a.Shares[q.String()].Unplaced {
			// Before the base it is part of it. Where that cannot be told the quota
			// rather stays too high than becomes too low.
			if u.Until > at.Consumed {
				moved.Consumed += u.Units.Consumed
			}
			if u.From > at.Refunded {
				moved.Refunded += u.Units.Refunded
			}
		}
	}
	found.Known = true
	found.Found = (now.Consumed - base.Consumed - moved.Consumed) - (now.Refunded - base.Refunded - moved.Refunded)
	found.Found = max(min(found.Found, found.Lost.Consumed), -found.Lost.Refunded)
	return found
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

// alone is since when nobody but those who answer has charged anything, µs of
// Redis's clock, as the one knows who has looked longest.
func (l LostCalls) alone() int64 {
	longest, began := int64(math.MaxInt64), int64(0)
	for _, a := range l.accounts {
		began = max(began, a.Began)
		since := a.PeersSince
		for name, at := range a.Peers {
			if _, here := l.accounts[name]; !here {
				since = max(since, at)
			}
		}
		longest = min(longest, since)
	}
	return max(longest, began) + leftFor.Microseconds()
}
