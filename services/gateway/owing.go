package gateway

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// holdAtLeast is how long rules that are local need their share, too, when the
// store is back, whoever is known to owe: another gateway comes back about as
// soon, and may not have said yet that it owes. holdAtMost is how long they do
// for what others owe, and for calls under way that have not ended yet.
const (
	holdAtLeast = time.Second
	holdAtMost  = gateways.GoneAfter
)

// journaled is the journal as far as owing asks it: *settle.Settler.
type journaled interface {
	Mark() uint64
	Settled(mark uint64) bool
}

// owing knows whether the store has been told of all that passed by shares.
// Until it has, it believes more to be left than there is: it would grant units
// that a share has given out. Rules that are local then need both: their share
// and the store. It is safe for concurrent use; the zero value holds nothing.
type owing struct {
	now func() time.Time
	// away says whether the breaker of the store is open, owed whether another
	// gateway that lives owes.
	away, owed func() bool
	journal    journaled

	quotas, rates debt
	// lost is when the store was last seen away, waiting since when decisions have
	// met another's debt; ns since the epoch, 0 is never.
	lost, waiting atomic.Int64
	// told: others hold, too. A single late answer is not worth that.
	told atomic.Bool
}

// debt is what is owed to counters of one kind: quotas may have to wait for a
// restore while rates do not.
type debt struct {
	lost   atomic.Int64 // as that of owing, of this kind alone
	flight atomic.Int64 // requests that pass and are not in the journal yet
	last   atomic.Int64 // when the last of them came
	mu     sync.Mutex   // of who raises mark
	mark   atomic.Uint64
}

// begin takes over what the journal has of an earlier process.
func (o *owing) begin(journal journaled, pending bool) {
	o.journal = journal
	if pending {
		o.noted(&o.quotas)
		o.noted(&o.rates)
		o.told.Store(true)
	}
}

func (o *owing) of(r *rule.Compiled) *debt {
	if r.Algorithm.Quota() {
		return &o.quotas
	}
	return &o.rates
}

// noted says that the journal has something of that kind now.
func (o *owing) noted(d *debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark.Store(o.journal.Mark())
}

// note says that the journal has what those of the rules that are local let pass.
func (o *owing) note(passed []rule.Match) {
	for i := range passed {
		if r := passed[i].Rule; o.journal != nil && r.OnStoreLoss == rules.StoreLossLocal {
			o.noted(o.of(r))
		}
	}
}

// lend is said before a request is judged by shares of those rules; repay when
// the journal has it, or it does not pass.
func (o *owing) lend(local []rule.Match) {
	if o.now == nil {
		return
	}
	now := o.now().UnixNano()
	for i := range local {
		d := o.of(local[i].Rule)
		d.last.Store(now)
		d.flight.Add(1)
	}
	if o.isAway() {
		o.told.Store(true)
	}
}

func (o *owing) repay(local []rule.Match) {
	if o.now == nil {
		return
	}
	for i := range local {
		o.of(local[i].Rule).flight.Add(-1)
	}
}

// isAway looks whether the store is away, and remembers that it was.
func (o *owing) isAway() bool {
	if o.away == nil || !o.away() {
		return false
	}
	o.lost.Store(o.now().UnixNano())
	return true
}

// restoring remembers that quotas were not whole.
func (o *owing) restoring() {
	if o.now != nil {
		o.quotas.lost.Store(o.now().UnixNano())
	}
}

// within reports whether less than that has passed since the latest of times.
func (o *owing) within(most time.Duration, times ...int64) bool {
	last := slices.Max(times)
	return last != 0 && o.now().UnixNano()-last < int64(most)
}

// owes reports whether this gateway owes something of that kind. A call that
// takes long holds nobody for as long.
func (o *owing) owes(d *debt) bool {
	return o.journal != nil && !o.journal.Settled(d.mark.Load()) || d.flight.Load() > 0 && o.within(holdAtMost, d.last.Load())
}

func (o *owing) owesAny() bool { return o.owes(&o.quotas) || o.owes(&o.rates) }

// tells is what other gateways are told: whether they are to hold, too.
func (o *owing) tells() bool {
	away := o.isAway()
	switch {
	case !o.told.Load():
		return false
	case o.owesAny():
		return true
	case away:
		return false
	}
	o.told.Store(false)
	if o.owesAny() { // since a moment ago
		o.told.Store(true)
	}
	return false
}

// holds reports whether a rule needs its share beside the store.
func (o *owing) holds(r *rule.Compiled) bool {
	if o.now == nil || r.OnStoreLoss != rules.StoreLossLocal || r.Shadow {
		return false
	}
	d := o.of(r)
	return o.owes(d) || o.within(holdAtLeast, o.lost.Load(), d.lost.Load()) || o.waits()
}

// waits reports whether what another gateway owes is to be waited for. One that
// alone does not reach the store owes for as long: that is not waited for.
func (o *owing) waits() bool {
	if !o.owed() {
		if o.waiting.Load() != 0 {
			o.waiting.Store(0)
		}
		return false
	}
	o.waiting.CompareAndSwap(0, o.now().UnixNano())
	return o.within(holdAtMost, o.waiting.Load(), o.lost.Load())
}
