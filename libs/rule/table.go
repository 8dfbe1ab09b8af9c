package rule

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/route"
)

// place is where a rule lies: the set of its kind, form and scope, and its hash
// there, made of what a request must have to be covered.
type place struct {
	set  int
	hash uint64
}

func setOf(k kind, f form, s scopeRank) int {
	return (int(k)*int(numForms)+int(f))*int(numScopes) + int(s)
}

const numSets = int(numKinds) * int(numForms) * int(numScopes) // fits the bits of a uint64

// table is what Match reads. Writers, one at a time, add before they remove.
type table struct {
	sets [numSets]atomic.Pointer[set[Compiled]]
	// present has a bit for each set that is there, to spare look-ups in vain.
	present atomic.Uint64
	// shapes of the patterns that rules of a service name, so that those that
	// may match a path are found by its literals.
	shapes atomic.Pointer[map[string]*shapes]

	counts map[string]map[route.Shape]int // the writer's own
}

// shapes are one service's. The slice is immutable.
type shapes struct{ list atomic.Pointer[[]route.Shape] }

func newTable() *table {
	t := &table{counts: map[string]map[route.Shape]int{}}
	t.shapes.Store(&map[string]*shapes{})
	return t
}

// seed is this process's.
var seed = maphash.MakeSeed()

// hashOf hashes a part of a place; "" is 0.
func hashOf(s string) uint64 {
	if s == "" {
		return 0
	}
	return maphash.String(seed, s)
}

// hashSubject is a sum, so that the parts may be hashed once and added.
func hashSubject(owner, name uint64) uint64 {
	return owner*0x9e3779b97f4a7c15 + name*0xc2b2ae3d27d4eb4f
}

func (s subjectParts) hash() uint64 { return hashSubject(hashOf(s.owner), hashOf(s.name)) }

// placed mixes a subject with a scope's service and pattern, 0 for none.
func placed(subject, service, pattern uint64) uint64 {
	h := subject + service*0x165667b19e3779f9 + pattern*0x27d4eb2f165667c5
	h = (h ^ h>>29) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// places returns where a rule lies. An endpoint's value may be read in more
// than one way (see splits), and lies under each.
func places(c *Compiled) []place {
	scope := func(subject uint64) place {
		p := place{set: setOf(c.group.kind, c.form, c.scopeRank)}
		switch c.scopeRank {
		case scopeGlobal:
			p.hash = placed(subject, 0, 0)
		case scopeService:
			p.hash = placed(subject, hashOf(c.Service), 0)
		case scopeEndpoint:
			p.hash = placed(subject, hashOf(c.Service), c.pattern.LiteralHash())
		}
		return p
	}
	if c.form == formExact && c.group.kind == kindEndpoint {
		var all []place
		for _, s := range endpointSubjects(c.value) {
			all = append(all, scope(s.hash()))
		}
		return all
	}
	if c.form == formAny {
		return []place{scope(0)}
	}
	return []place{scope(partsOf(c.group.kind, c.value).hash())}
}

func (t *table) set(i int) *set[Compiled] {
	s := t.sets[i].Load()
	if s == nil {
		s = newSet[Compiled]()
		t.sets[i].Store(s)
		t.present.Store(t.present.Load() | 1<<i)
	}
	return s
}

// add puts a rule in its places.
func (t *table) add(c *Compiled, at []place) {
	if c.scopeRank == scopeEndpoint {
		t.countShape(c.Service, c.pattern.Shape(), 1) // first: without it the rule is not found
	}
	for _, p := range at {
		t.set(p.set).add(p.hash, c)
	}
}

// remove takes a rule out of its places.
func (t *table) remove(c *Compiled, at []place) {
	for _, p := range at {
		t.set(p.set).swap(p.hash, c, nil)
	}
	if c.scopeRank == scopeEndpoint {
		t.countShape(c.Service, c.pattern.Shape(), -1)
	}
}

// replace puts c where old is, if both lie in the same places.
func (t *table) replace(old, c *Compiled, at []place) bool {
	if !slices.Equal(places(old), at) || old.scopeRank == scopeEndpoint && old.pattern.Shape() != c.pattern.Shape() {
		return false
	}
	for _, p := range at {
		t.set(p.set).swap(p.hash, old, c)
	}
	return true
}

func (t *table) countShape(service string, shape route.Shape, n int) {
	counts := t.counts[service]
	if counts == nil {
		counts = map[route.Shape]int{}
		t.counts[service] = counts
	}
	had := counts[shape]
	if counts[shape] = had + n; counts[shape] == 0 {
		delete(counts, shape)
	}
	if had > 0 && had+n > 0 {
		return
	}
	known := *t.shapes.Load()
	s := known[service]
	if s == nil {
		s = &shapes{}
	}
	list := slices.Collect(maps.Keys(counts))
	s.list.Store(&list)
	switch {
	case len(counts) == 0:
		delete(t.counts, service)
		known = maps.Clone(known)
		delete(known, service)
	case known[service] == nil:
		known = maps.Clone(known)
		known[service] = s
	default:
		return
	}
	t.shapes.Store(&known)
}

// all calls yield for each rule, at least once.
func (t *table) all(yield func(*Compiled) bool) {
	for i := range t.sets {
		if s := t.sets[i].Load(); s != nil && !s.all(yield) {
			return
		}
	}
}
