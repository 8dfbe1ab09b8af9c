package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Index holds compiled rules and finds a request's winners. Match is lock-free
// and may run beside any of the others, which wait for one another.
type Index struct {
	table atomic.Pointer[table]

	mu   sync.Mutex
	byID map[string]*Compiled // off rules too
}

// New returns an empty index.
func New() *Index {
	ix := &Index{byID: map[string]*Compiled{}}
	ix.table.Store(newTable())
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
	t := newTable()
	t.load(byID)
	ix.byID = byID
	ix.table.Store(t)
	return errors.Join(errs...)
}

// Put adds a rule or replaces the one with its id. On an error the last good
// version stays in force.
func (ix *Index) Put(r rules.Rule) error {
	c, err := Compile(r)
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old := ix.byID[r.ID]
	ix.byID[r.ID] = c
	ix.table.Load().swap(old, c)
	return nil
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
	ix.table.Load().swap(old, nil)
	return true
}

// Len returns the number of rules, off ones included.
func (ix *Index) Len() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.byID)
}

// All returns the rules in force and the off ones, normalized, by id. They
// share pointers with the index and must not be changed.
func (ix *Index) All() []rules.Rule {
	ix.mu.Lock()
	all := make([]rules.Rule, 0, len(ix.byID))
	for _, c := range ix.byID {
		all = append(all, c.Rule)
	}
	ix.mu.Unlock()
	slices.SortFunc(all, func(a, b rules.Rule) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Match appends the request's winners to dst, in the order of subject kind,
// metric and horizon, and returns it.
func (ix *Index) Match(req *Request, dst []Match) []Match {
	m := matcher{req: req, now: req.Now.UnixMicro(), base: len(dst), dst: dst}
	ix.table.Load().offer(&m)
	m.liftHorizons()
	m.sort()
	return m.dst
}
