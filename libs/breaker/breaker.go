package breaker

import (
	"sync/atomic"
	"time"
)

// Options say when a Breaker opens and probes. The zero value is usable.
type Options struct {
	// Errors in a row open it; default 3.
	Errors int
	// Silence opens it: a call that waited so long, while nothing at all was
	// answered since it began; default 50 ms.
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
	lastTook   atomic.Int64 // ns that the last answered call took
	nextProbe  atomic.Int64 // ns since the epoch
}

// New returns a closed Breaker.
func New(o Options) *Breaker {
	if o.Errors <= 0 {
		o.Errors = 3
	}
	if o.Silence <= 0 {
		o.Silence = 50 * time.Millisecond
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
	b.lastTook.Store(int64(now.Sub(began)))
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
// opens the breaker when that is silence. It may be said of a call any number
// of times.
func (b *Breaker) Waiting(began time.Time) {
	if b.Heard(began) || b.opts.Now().Sub(began)-b.opts.Heartbeat.Stalled(began) < b.opts.Silence {
		return
	}
	b.trip()
}

// Heard reports whether anything was answered since that time.
func (b *Breaker) Heard(since time.Time) bool { return b.lastAnswer.Load() > since.UnixNano() }

// Flowing reports whether anything was answered since that time, and took no
// longer than within: a call that still waits is then queueing.
func (b *Breaker) Flowing(since time.Time, within time.Duration) bool {
	return b.Heard(since) && b.lastTook.Load() <= int64(within)
}

func (b *Breaker) trip() {
	b.nextProbe.Store(b.opts.Now().Add(b.opts.ProbeEvery).UnixNano())
	if !b.open.Swap(true) && b.opts.OnOpen != nil {
		b.opts.OnOpen()
	}
}

// Probed reports how a probe ended.
func (b *Breaker) Probed(ok bool) {
	if ok {
		b.Answered(b.opts.Now())
		b.open.Store(false)
	}
	b.nextProbe.Store(b.opts.Now().Add(b.opts.ProbeEvery).UnixNano())
	b.probing.Store(false)
}
