package rule

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
)

// CompiledOverride is an override ready to be found. It is immutable.
type CompiledOverride struct {
	ID      string
	Version int64

	metric     string
	kind       kind
	subjects   []subjectParts // the readings of the value; of most one
	everywhere bool           // every horizon of the metric
	window     time.Duration  // of the rates it is for, 0: none
	unit       period.Unit    // of the quotas it is for, if window is 0
	limit      int64
	burst      int64 // ownBurst: the rule's, or the limit
	unlimited  bool
	until      int64 // µs since the epoch, exclusive
}

const ownBurst = -1

// CompileOverride validates and compiles an override. The error is an
// *InvalidError. Nothing of o is kept.
func CompileOverride(o overrides.Override) (*CompiledOverride, error) {
	if found := ValidateOverride(o); len(found) > 0 {
		return nil, &InvalidError{Noun: "override", ID: o.ID, Fields: found}
	}
	k := kindOf(o.Subject.Kind)
	value := strings.Clone(o.Subject.Value)
	c := &CompiledOverride{
		ID: OverrideID(o), Version: o.Version, metric: strings.Clone(o.Metric), kind: k,
		burst: ownBurst, unlimited: o.Unlimited, until: math.MaxInt64,
	}
	c.subjects = []subjectParts{partsOf(k, value)}
	if k == kindEndpoint {
		c.subjects = endpointSubjects(value)
	}
	switch {
	case o.Window != "":
		c.window, _ = time.ParseDuration(o.Window) // ValidateOverride has parsed it
	case o.Period != "":
		calendar, err := period.New(period.Spec{Unit: o.Period})
		if err != nil {
			return nil, fmt.Errorf("override %s: %w", c.ID, err)
		}
		c.unit = calendar.Unit()
	default:
		c.everywhere = true
	}
	if o.Limit != nil {
		c.limit = *o.Limit
	}
	if o.Burst != nil {
		c.burst = *o.Burst
	}
	if o.ValidUntil != nil {
		c.until = o.ValidUntil.UnixMicro()
	}
	return c, nil
}

// Concerns reports whether the override gives the rule other numbers, for its
// own subject at least.
func (o *CompiledOverride) Concerns(c *Compiled) bool {
	if o.kind != c.group.kind || o.metric != c.Metric {
		return false
	}
	holds, _ := o.holdsFor(c.group)
	return holds && slices.ContainsFunc(o.subjects, func(s subjectParts) bool { return c.covers(&s) })
}

// holdsFor reports whether the override is for a group's horizon, and whether
// it names that horizon: then it goes before one that names none.
func (o *CompiledOverride) holdsFor(g *group) (holds, named bool) {
	switch {
	case g.class == classWallet:
		return false, false // its numbers are what was granted
	case o.everywhere:
		return true, false
	case o.window > 0:
		return g.class == classRate && g.window == o.window, true
	}
	// An unlimited rule without a limit counts in months: the zero unit.
	return g.class != classRate && g.unit == o.unit, true
}

// apply returns the numbers that hold in place of a rule's.
func (o *CompiledOverride) apply(c *Compiled) (n, burst int64, unlimited bool) {
	if o.unlimited {
		return 0, 0, true
	}
	if !c.Algorithm.Bucket() {
		return o.limit, 0, false
	}
	n, burst = min(o.limit, limit.MaxGCRALimit), o.burst
	switch {
	case n == 0:
		return 0, 0, false
	case burst == ownBurst && (c.Burst == c.Limit || c.Burst == 0):
		burst = n
	case burst == ownBurst:
		burst = c.Burst
	}
	// An override does not know the window it meets: a burst that would take too
	// long to refill to be counted exactly is cut to the largest that can be.
	return n, max(1, min(burst, mostBurst(n, c.Window))), false
}

// overrideTable is what Match reads of overrides.
type overrideTable struct {
	set set[CompiledOverride]
	n   atomic.Int64
}

func newOverrideTable() *overrideTable {
	t := &overrideTable{}
	t.set.gone = new(CompiledOverride)
	return t
}

func overrideHash(k kind, s subjectParts, metric string) uint64 {
	return placed(s.hash(), hashOf(metric), uint64(k)+1)
}

func (t *overrideTable) add(o *CompiledOverride) {
	t.n.Add(1)
	for _, s := range o.subjects {
		t.set.add(overrideHash(o.kind, s, o.metric), o)
	}
}

// swap puts next, an override with old's id, in old's places, or removes old.
func (t *overrideTable) swap(old, next *CompiledOverride) {
	for _, s := range old.subjects {
		t.set.swap(overrideHash(old.kind, s, old.metric), old, next)
	}
	if next == nil {
		t.n.Add(-1)
	}
}

// apply gives the winners their overrides.
func (t *overrideTable) apply(m *matcher) {
	if t.n.Load() == 0 {
		return
	}
	for i := m.base; i < len(m.dst); i++ {
		if w := &m.dst[i]; !w.Missing {
			w.Override = t.find(w.Rule.group, w.subject, m.now)
		}
	}
}

func (t *overrideTable) find(g *group, s subjectParts, now int64) *CompiledOverride {
	if g.kind == kindAPIKey {
		s.owner = "" // a key is found by its id alone
	}
	var found *CompiledOverride
	w := t.set.find(overrideHash(g.kind, s, g.metric))
	for o := w.next(); o != nil; o = w.next() {
		if o.kind != g.kind || o.metric != g.metric || now >= o.until || !o.isFor(s) {
			continue
		}
		holds, named := o.holdsFor(g)
		if holds && (named || found == nil) {
			found = o
		}
	}
	return found
}

func (o *CompiledOverride) isFor(s subjectParts) bool {
	for i := range o.subjects {
		if o.subjects[i] == s {
			return true
		}
	}
	return false
}
