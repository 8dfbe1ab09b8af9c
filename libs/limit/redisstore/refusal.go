package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusals are the answers by which a server says that it takes no charges of
// anybody now, and may again soon. Of those in nothingRan the others speak of
// one slot.
var refusals = []string{"READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN"}

func refusesAll(err error) bool {
	for _, prefix := range refusals {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// trialEvery is how often a server that goes on refusing is asked.
const trialEvery = 10 * time.Millisecond

// refusal is since when a server has answered nothing else. For the length of a
// budget calls are sent again and again: a failover is over then, or a
// connection leads to the new master. After that one decision every trialEvery
// is enough to see the end of it, and the others are answered what it was: each
// such answer costs a connection, and all that wait would stand in line behind
// each other's.
type refusal struct {
	since atomic.Int64 // ns since the epoch, 0 while it takes charges
	next  atomic.Int64 // when the next one is asked
	said  atomic.Pointer[error]
}

// lasts takes note of an answer, and reports whether it is one of a refusal
// that has outlasted the budget.
func (r *refusal) lasts(err error, now time.Time, budget time.Duration) bool {
	if !refusesAll(err) {
		if err == nil {
			r.since.Store(0)
		}
		return false
	}
	r.said.Store(&err)
	if r.since.CompareAndSwap(0, now.UnixNano()) {
		return false
	}
	return r.outlasted(now, budget)
}

func (r *refusal) outlasted(now time.Time, budget time.Duration) bool {
	since := r.since.Load()
	return since != 0 && now.UnixNano()-since > int64(budget)
}

// instead is what a decision is answered in place of being asked; nil has it
// asked.
func (r *refusal) instead(now time.Time, budget time.Duration) error {
	if !r.outlasted(now, budget) {
		return nil
	}
	next := r.next.Load()
	if now.UnixNano() >= next && r.next.CompareAndSwap(next, now.Add(trialEvery).UnixNano()) {
		return nil
	}
	return *r.said.Load()
}
