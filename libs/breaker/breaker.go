package breaker

import (
	"sync/atomic"
	"time"
)

// Options say when a Breaker opens and probes. The zero value is usable.
type Options struct {
	// Errors in a row open it; default 3.
	Errors int
	// Silence opens it at the first time-out after so long without an answer;
	// default 50 ms.
	Silence time.Duration
	// ProbeEvery is the time between probes; default 100 ms.
	ProbeEvery time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Breaker is safe for concurrent use and takes no lock.
type Breaker struct {
	opts       Options
	open       atomic.Bool
	probing    atomic.Bool
	errors     atomic.Int64 // failures since the last answer
	lastAnswer atomic.Int64 // ns since the epoch
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
	b := &Breaker{opts: o}
	b.lastAnswer.Store(o.Now().UnixNano())
	return b
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

// Answered reports that the server answered a call, with whatever.
func (b *Breaker) Answered() {
	b.lastAnswer.Store(b.opts.Now().UnixNano())
	if b.errors.Load() != 0 {
		b.errors.Store(0)
	}
}

// Failed reports a call that ended without an answer; silent says that its time
// ran out, rather than that its connection was refused or broken.
func (b *Breaker) Failed(silent bool) {
	now := b.opts.Now().UnixNano()
	failures := b.errors.Add(1)
	quiet := silent && now-b.lastAnswer.Load() >= int64(b.opts.Silence)
	if failures < int64(b.opts.Errors) && !quiet {
		return
	}
	b.nextProbe.Store(now + int64(b.opts.ProbeEvery))
	b.open.Store(true)
}

// Probed reports how a probe ended.
func (b *Breaker) Probed(ok bool) {
	if ok {
		b.Answered()
		b.open.Store(false)
	}
	b.nextProbe.Store(b.opts.Now().UnixNano() + int64(b.opts.ProbeEvery))
	b.probing.Store(false)
}
