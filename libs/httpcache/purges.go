package httpcache

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/route"
)

// Position is a place in the total order of purges. A restored database continues
// in a higher generation.
type Position struct {
	Generation int64 `json:"g,omitempty"`
	Version    int64 `json:"v,omitempty"`
}

func (p Position) before(q Position) bool {
	return p.Generation < q.Generation || p.Generation == q.Generation && p.Version < q.Version
}

func newest(a, b Position) Position {
	if a.before(b) {
		return b
	}
	return a
}

// Purge makes the stored responses of a family void that it covers: those of a URL
// (with a query: that one; without: all), of a path prefix, with a tag, or all.
type Purge struct {
	Family           string
	URL, Prefix, Tag string
	All              bool
}

// Record is a purge and its position.
type Record struct {
	Purge
	At Position
}

// Purges says which stored responses are void. It is safe for concurrent use; a
// response that was checked since the last change is checked without the lock.
//
// Positions are drawn one after the other, each after the change that its purge is
// about: a response whose load began when position n was known includes the changes
// of all purges up to n, also of one that arrives late.
type Purges struct {
	// changes counts what was applied, from 1; see storedResponse.checked.
	changes atomic.Uint64

	mu       sync.RWMutex
	last     Position
	families map[string]*familyPurges
	records  map[string]Purge // by id
}

// familyPurges are those of one family, each with the newest position.
type familyPurges struct {
	all      Position
	urls     map[string]map[string]Position // path, query
	prefixes map[string]Position
	tags     map[string]Position
}

// NewPurges returns an index without purges.
func NewPurges() *Purges {
	x := &Purges{families: map[string]*familyPurges{}, records: map[string]Purge{}}
	x.changes.Store(1)
	return x
}

// Newest is the newest position that is known.
func (x *Purges) Newest() Position {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.last
}

// Replace makes records, by id, all that there are.
func (x *Purges) Replace(records map[string]Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.families, x.records = map[string]*familyPurges{}, map[string]Purge{}
	for id, r := range records {
		x.add(id, r)
	}
	x.changes.Add(1)
}

// Put adds one record. An id has one target for good.
func (x *Purges) Put(id string, r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.add(id, r)
	x.changes.Add(1)
}

// add adds a record; x.mu is held.
func (x *Purges) add(id string, r Record) {
	p, at := r.Purge, r.At
	x.last = newest(x.last, at)
	x.records[id] = p
	s := x.families[p.Family]
	if s == nil {
		s = &familyPurges{urls: map[string]map[string]Position{}, prefixes: map[string]Position{}, tags: map[string]Position{}}
		x.families[p.Family] = s
	}
	switch {
	case p.URL != "":
		path, query, _ := strings.Cut(p.URL, "?")
		path = cleanedPath(path)
		if s.urls[path] == nil {
			s.urls[path] = map[string]Position{}
		}
		s.urls[path][query] = newest(s.urls[path][query], at)
	case p.Prefix != "":
		s.prefixes[p.Prefix] = newest(s.prefixes[p.Prefix], at)
	case p.Tag != "":
		s.tags[p.Tag] = newest(s.tags[p.Tag], at)
	case p.All:
		s.all = newest(s.all, at)
	}
}

// Delete forgets a purge once no response can be left that is older.
func (x *Purges) Delete(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.records[id]
	if !ok {
		return
	}
	delete(x.records, id)
	s := x.families[p.Family]
	switch {
	case p.URL != "":
		path, query, _ := strings.Cut(p.URL, "?")
		path = cleanedPath(path)
		if delete(s.urls[path], query); len(s.urls[path]) == 0 {
			delete(s.urls, path)
		}
	case p.Prefix != "":
		delete(s.prefixes, p.Prefix)
	case p.Tag != "":
		delete(s.tags, p.Tag)
	case p.All:
		s.all = Position{}
	}
}

// cleanedPath is the path as requests have it.
func cleanedPath(path string) string {
	if clean, err := route.CleanPath(path); err == nil {
		return clean
	}
	return path
}

// valid reports whether no purge covers the family's response.
func (x *Purges) valid(family string, a *storedResponse) bool {
	if a.void.Load() {
		return false
	}
	changes := x.changes.Load()
	if a.checked.Load() == changes+1 {
		return true
	}
	x.mu.RLock()
	s := x.families[family]
	void := s != nil && a.since.before(x.last) && a.since.before(s.newestOf(a))
	x.mu.RUnlock()
	if void {
		a.void.Store(true)
		return false
	}
	a.checked.Store(changes + 1)
	return true
}

// newestOf is the position of the newest purge that covers the response.
func (s *familyPurges) newestOf(a *storedResponse) Position {
	last := s.all
	for _, tag := range a.tags {
		last = newest(last, s.tags[tag])
	}
	if len(s.prefixes) > 0 {
		for n := range len(a.resource.path) + 1 {
			last = newest(last, s.prefixes[a.resource.path[:n]])
		}
	}
	for query, at := range s.urls[a.resource.path] {
		if query == "" || a.resource.hasQuery(query) {
			last = newest(last, at)
		}
	}
	return last
}

// hasQuery reports whether a purge of the path with that query covers the resource. A
// resource whose key holds some parameters only is covered by every query that has
// these.
func (r *resource) hasQuery(query string) bool {
	if !r.filtered {
		return r.query == query
	}
	given := strings.Split(query, "&")
	for pair := range strings.SplitSeq(r.query, "&") {
		if pair != "" && !slices.ContainsFunc(given, func(g string) bool { return samePair(g, pair) }) {
			return false
		}
	}
	return true
}

func samePair(a, b string) bool {
	left, err1 := url.QueryUnescape(a)
	right, err2 := url.QueryUnescape(b)
	return a == b || err1 == nil && err2 == nil && left == right
}
