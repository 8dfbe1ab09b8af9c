package breaker

import (
	"sync/atomic"
	"time"
)

// DefaultSilence is how long nothing is answered before a Breaker opens, where
// Options say nothing: longer than an AOF fork stalls Redis (11 to 14 ms).
const DefaultSilence = 50 * time.Millisecond

// Options say when a Breaker opens and probes. The zero value is usable.
type Options struct {
	// Errors in a row open it; default 3.
	Errors int
	// Silence opens it: so long that a call waited and nothing at all was
	// answered; default DefaultSilence.
	Silence time.Duration
	// ProbeEvery is the time between probes; default 100 ms.
	ProbeEvery time.Duration
	// Heartbeat tells stalls of this process, which are nobody's silence; nil
	// believes that there are none.
	Heartbeat *Heartbeat
	// OnOpen is called each time it opens, by whoever reported what opened it;
	// it must not block. It may be nil: then probes come with the calls alone.
	OnOpen func()
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Breaker is safe for concurrent use and takes no lock.
type Breaker struct {
	opts       Options
	open       atomic.Bool
	probing    atomic.Bool
	errors     atomic.Int64 // connection errors since the last answer
	lastAnswer atomic.Int64 // ns since the epoch; 0 before the first
	lastTook   atomic.Int64 // ns that the last answered call took, stalls apart
	nextProbe  atomic.Int64 // ns since the epoch
}

// New returns a closed Breaker.
func New(o Options) *Breaker {
	if o.Errors <= 0 {
		o.Errors = 3
	}
	if o.Silence <= 0 {
		o.Silence = DefaultSilence
	}
	if o.ProbeEvery <= 0 {
		o.ProbeEvery = 100 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Breaker{opts: o}
}

// Closed reports whether calls are let through.
func (b *Breaker) Closed() bool { return !b.open.Load() }

// Allow reports whether a call may be made. If probe is true the caller must
// see to one probe and report it with Probed; it is never true with ok.
func (b *Breaker) Allow() (ok, probe bool) {
	if !b.open.Load() {
		return true, false
	}
	if b.opts.Now().UnixNano() < b.nextProbe.Load() {
		return false, false
	}
	return false, b.probing.CompareAndSwap(false, true)
}

// Answered reports that the server answered, with whatever, a call that began
// (was written) at that time.
func (b *Breaker) Answered(began time.Time) {
	now := b.opts.Now()
	took := now.Sub(began)
	if took > lateBy { // a shorter one holds no stall that is known of
		took -= b.opts.Heartbeat.Stalled(began)
	}
	b.lastTook.Store(int64(took))
	b.lastAnswer.Store(now.UnixNano())
	if b.errors.Load() != 0 {
		b.errors.Store(0)
	}
}

// Failed reports a call that ended without an answer: timedOut after its time
// ran out, otherwise because its connection was refused or broken.
func (b *Breaker) Failed(began time.Time, timedOut bool) {
	if timedOut {
		b.Waiting(began)
		return
	}
	if b.errors.Add(1) >= int64(b.opts.Errors) {
		b.trip()
	}
}

// Waiting reports a call that began at that time and has no answer yet; it
// opens the breaker when that is silence, which begins with the call, or anew
// with the last answer to another. What this process did not run for since, or
// just before, is taken off: where it hardly gets to run, the server may not
// either. It may be said of a call any number of times.
func (b *Breaker) Waiting(began time.Time) {
	if last := time.Unix(0, b.lastAnswer.Load()); last.After(began) {
		began = last
	}
	if b.opts.Now().Sub(began)-b.opts.Heartbeat.Stalled(began.Add(-b.opts.Silence)) >= b.opts.Silence {
		b.trip()
	}
}

// LastAnswer is when the server last answered a call, if that took no longer
// than within, stalls of this process apart; else the zero time. A call that
// waited since before it is queueing, and the silence that it meets began then.
func (b *Breaker) LastAnswer(within time.Duration) time.Time {
	ns := b.lastAnswer.Load()
	if ns == 0 || b.lastTook.Load() > int64(within) {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func (b *Breaker) trip() {
	b.nextProbe.Store(b.opts.Now().Add(b.opts.ProbeEvery).UnixNano())
	if !b.open.Swap(true) && b.opts.OnOpen != nil {
		b.opts.OnOpen()
	}
}

// Probed reports how a probe that began at that time ended. One that took
// longer than Silence, stalls of this process apart, did not succeed: no call
// would have waited for such an answer.
func (b *Breaker) Probed(began time.Time, ok bool) {
	now := b.opts.Now()
	if ok && now.Sub(began)-b.opts.Heartbeat.Stalled(began) <= b.opts.Silence {
		b.Answered(now)
		b.open.Store(false)
	}
	b.nextProbe.Store(now.Add(b.opts.ProbeEvery).UnixNano())
	b.probing.Store(false)
}
