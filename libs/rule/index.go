package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Index holds compiled rules and overrides, and finds a request's winners.
// Match and Explain are lock-free and may run beside any of the others, which
// wait for one another.
type Index struct {
	table     atomic.Pointer[table]
	overrides atomic.Pointer[overrideTable]
	// moved counts the changes that took a rule out of one place after it was
	// put in another. A search during which it changed is done again: it may
	// have looked into the one too early, and into the other too late.
	moved atomic.Uint64

	mu            sync.Mutex
	byID          map[string]*Compiled // off rules too
	overridesByID map[string]*CompiledOverride
}

// New returns an empty index.
func New() *Index {
	ix := &Index{byID: map[string]*Compiled{}, overridesByID: map[string]*CompiledOverride{}}
	ix.table.Store(newTable())
	ix.overrides.Store(newOverrideTable())
	return ix
}

// Replace makes rs the index's rules: a new table is built aside and swapped
// in, so that a request sees the old rules or the new ones. A rule that cannot
// be compiled keeps its last good version, if there is one, and is part of the
// error; the others are in force. Of two rules with one id the later counts.
func (ix *Index) Replace(rs []rules.Rule) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	byID := make(map[string]*Compiled, len(rs))
	var errs []error
	for _, r := range rs {
		c, err := Compile(r)
		if err != nil {
			errs = append(errs, err)
			if c = ix.byID[r.ID]; c == nil {
				continue
			}
		}
		byID[r.ID] = c
	}
	ix.use(slices.Collect(maps.Values(byID)))
	return errors.Join(errs...)
}

// ReplaceCompiled is Replace for rules that are compiled; their ids are unique.
func (ix *Index) ReplaceCompiled(all []*Compiled) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.use(all)
}

// use swaps a table of the rules in; ix.mu is held. A gateway's start waits for
// this, so map and table are made at once.
func (ix *Index) use(all []*Compiled) {
	byID, t := make(map[string]*Compiled, len(all)), newTable()
	var both sync.WaitGroup
	both.Go(func() {
		for _, c := range all {
			byID[c.ID] = c
		}
	})
	for _, c := range all {
		t.add(c, places(c))
	}
	both.Wait()
	ix.byID = byID
	ix.table.Store(t)
}

// Put adds a rule or replaces the one with its id. On an error the last good
// version stays in force.
func (ix *Index) Put(r rules.Rule) error {
	c, err := Compile(r)
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	ix.PutCompiled(c)
	return nil
}

// PutCompiled is Put for a rule that is compiled. A request beside it sees the
// old version or the new one, wherever the two differ.
func (ix *Index) PutCompiled(c *Compiled) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old, t, at := ix.byID[c.ID], ix.table.Load(), places(c)
	ix.byID[c.ID] = c
	if old != nil && t.replace(old, c, at) {
		return
	}
	t.add(c, at)
	if old != nil {
		ix.moved.Add(1)
		t.remove(old, places(old))
	}
}

// Delete removes the rule with the id and reports whether there was one.
func (ix *Index) Delete(id string) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old, ok := ix.byID[id]
	if !ok {
		return false
	}
	delete(ix.byID, id)
	ix.table.Load().remove(old, places(old))
	return true
}

// Len returns the number of rules, off ones included.
func (ix *Index) Len() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.byID)
}

// All returns the rules, off ones included, by id.
func (ix *Index) All() []*Compiled {
	ix.mu.Lock()
	all := make([]*Compiled, 0, len(ix.byID))
	for _, c := range ix.byID {
		all = append(all, c)
	}
	ix.mu.Unlock()
	slices.SortFunc(all, func(a, b *Compiled) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Match appends the request's winners to dst and returns it: enforced before
// shadow ones, in the order of subject kind, metric and horizon.
func (ix *Index) Match(req *Request, dst []Match) []Match {
	m := matcher{req: req, now: req.Now.UnixMicro(), base: len(dst), dst: dst}
	for {
		m.reset()
		moved := ix.moved.Load()
		ix.table.Load().search(&m)
		if ix.moved.Load() == moved {
			break
		}
	}
	m.settle()
	ix.overrides.Load().apply(&m)
	return m.dst
}

// ReplaceOverrides makes all the index's overrides; their ids are unique.
func (ix *Index) ReplaceOverrides(all []*CompiledOverride) {
	t, byID := newOverrideTable(), make(map[string]*CompiledOverride, len(all))
	for _, o := range all {
		byID[o.ID] = o
		t.add(o)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.overridesByID = byID
	ix.overrides.Store(t)
}

// PutOverride adds an override or replaces the one with its id.
func (ix *Index) PutOverride(o *CompiledOverride) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old, t := ix.overridesByID[o.ID], ix.overrides.Load()
	ix.overridesByID[o.ID] = o
	if old != nil {
		t.swap(old, o) // the id says what the place is made of
		return
	}
	t.add(o)
}

// DeleteOverride removes the override with the id and reports whether there
// was one.
func (ix *Index) DeleteOverride(id string) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old, ok := ix.overridesByID[id]
	if ok {
		delete(ix.overridesByID, id)
		ix.overrides.Load().swap(old, nil)
	}
	return ok
}
