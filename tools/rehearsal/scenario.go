package rehearsal

import (
	"context"
	"time"
)

// Scenario is what goes wrong in a run.
type Scenario string

// The scenarios, in the order in which they are played. What breaks, breaks after a quarter of the run and is mended
// after three quarters of it, where it can be.
const (
	// Expiry breaks nothing: keys expire under load.
	Expiry Scenario = "expiry"
	// SlowSource: each load takes Plan.SlowBy times as long.
	SlowSource Scenario = "slow-source"
	// FailingSource: each load fails, after its usual time.
	FailingSource Scenario = "failing-source"
	// LeaderKilled: a node loses its connections and its loads in the middle of one, and comes back no more.
	LeaderKilled Scenario = "leader-killed"
	// InvalidationsDropped: no node hears anything any more; half-way all keys change and are cleared.
	InvalidationsDropped Scenario = "invalidations-dropped"
	// RedisCut: no node reaches Redis.
	RedisCut Scenario = "redis-cut"
)

// Scenarios returns all of them.
func Scenarios() []Scenario {
	return []Scenario{Expiry, SlowSource, FailingSource, LeaderKilled, InvalidationsDropped, RedisCut}
}

// About is one line for people.
func (s Scenario) About() string {
	switch s {
	case Expiry:
		return "keys expire under load"
	case SlowSource:
		return "the source is slow"
	case FailingSource:
		return "the source fails"
	case LeaderKilled:
		return "a node is killed in the middle of a load"
	case InvalidationsDropped:
		return "keys change, and no node hears of it"
	case RedisCut:
		return "no node reaches Redis"
	}
	return string(s)
}

// tries reports whether the scenario means anything under the protection: a plain cache has no leaders.
func (s Scenario) tries(by Protection) bool { return s != LeaderKilled || by != Plain }

// most is how many loads of one key may be in flight at once: without Redis there is no lock, and each process has one.
func (s Scenario) most(nodes int) int {
	if s == RedisCut {
		return nodes
	}
	return 1
}

// play breaks what the scenario breaks, until the run ends.
func (r *run) play(ctx context.Context) {
	switch r.scenario {
	case SlowSource:
		r.between(ctx, func() { r.source.slowBy(r.plan.SlowBy) }, func() { r.source.slowBy(1) })
	case FailingSource:
		r.between(ctx, func() { r.source.fail(true) }, func() { r.source.fail(false) })
	case LeaderKilled:
		if r.until(ctx, 0.25) {
			r.killLeader(ctx)
		}
	case InvalidationsDropped:
		if r.until(ctx, 0.25) {
			r.fleet.deafen()
		}
		if r.until(ctx, 0.5) {
			r.change(ctx)
		}
	case RedisCut:
		r.between(ctx, r.fleet.cut, r.fleet.mend)
	}
}

func (r *run) between(ctx context.Context, breaks, mends func()) {
	if !r.until(ctx, 0.25) {
		return
	}
	breaks()
	r.until(ctx, 0.75)
	mends()
}

// until waits for that share of the run to be over; false when ctx ended first.
func (r *run) until(ctx context.Context, share float64) bool {
	return pause(ctx, time.Until(r.began.Add(time.Duration(share*float64(r.plan.Each)))))
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// killLeader kills the node that begins the next load, half-way through it.
func (r *run) killLeader(ctx context.Context) {
	select {
	case l := <-r.source.nextLoad():
		pause(ctx, r.plan.Keys[l.key].Latency/2)
		l.node.kill()
	case <-ctx.Done():
	}
}

// change makes every key's value old, and clears it. Redis takes the commands; nobody hears of them.
func (r *run) change(ctx context.Context) {
	version := r.source.change()
	for i := range r.plan.Keys {
		if err := r.fleet.clear(ctx, i); err != nil {
			return // the run has ended
		}
		r.tally[i].changed(version, time.Now())
	}
}
