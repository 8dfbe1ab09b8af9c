package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/purges"
)

// purgePoint is a place in the order of purges.
type purgePoint struct {
	Generation int64 `json:"g,omitempty"`
	Version    int64 `json:"v,omitempty"`
}

func (p purgePoint) before(q purgePoint) bool {
	return p.Generation < q.Generation || p.Generation == q.Generation && p.Version < q.Version
}

func newer(a, b purgePoint) purgePoint {
	if a.before(b) {
		return b
	}
	return a
}

// purgeIndex says which stored answers are void. It is the sink of purges.v1,
// and safe for concurrent use; an answer that was judged since the last purge
// is judged without the lock.
//
// Versions are drawn one after the other, each after the change that its purge
// speaks of: an answer whose load began when purge n was known has seen the
// changes of all purges up to n, of one that arrives late too.
type purgeIndex struct {
	// changes counts what was applied, from 1; of storedAnswer.judged.
	changes atomic.Uint64

	mu       sync.RWMutex
	newest   purgePoint
	services map[string]*servicePurges
	records  map[string]*purges.Purge // by id, to be forgotten by it
}

// servicePurges are one service's: what is purged, and since when.
type servicePurges struct {
	all      purgePoint
	urls     map[string]map[string]purgePoint // path, query
	prefixes map[string]purgePoint
	tags     map[string]purgePoint
}

func newPurgeIndex() *purgeIndex {
	x := &purgeIndex{services: map[string]*servicePurges{}, records: map[string]*purges.Purge{}}
	x.changes.Store(1)
	return x
}

// now is the newest place that is known.
func (x *purgeIndex) now() purgePoint {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.newest
}

// decodePurge reads one record of purges.v1.
func decodePurge(id string, value []byte) (*purges.Purge, error) {
	var p purges.Purge
	if err := json.Unmarshal(value, &p); err != nil {
		return nil, fmt.Errorf("read purge: %w", err)
	}
	if p.ID != id {
		return nil, fmt.Errorf("record %q holds purge %q", id, p.ID)
	}
	return &p, nil
}

// Replace implements stream.Sink.
func (x *purgeIndex) Replace(entries map[string]stream.Entry[*purges.Purge]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.services, x.records = map[string]*servicePurges{}, map[string]*purges.Purge{}
	for _, e := range entries {
		x.add(e.Value, purgePoint{e.Generation, e.Version})
	}
	x.changes.Add(1)
}

// Apply implements stream.Sink. A purge is forgotten when no answer can be left
// that is older (purges.MaxLife).
func (x *purgeIndex) Apply(c stream.Change[*purges.Purge]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.Deleted {
		x.forget(c.Key)
		return
	}
	x.add(c.Entry.Value, purgePoint{c.Entry.Generation, c.Entry.Version})
	x.changes.Add(1)
}

// add takes a purge in; x.mu is held.
func (x *purgeIndex) add(p *purges.Purge, at purgePoint) {
	x.newest = newer(x.newest, at)
	x.records[p.ID] = p
	s := x.services[p.Service]
	if s == nil {
		s = &servicePurges{urls: map[string]map[string]purgePoint{}, prefixes: map[string]purgePoint{}, tags: map[string]purgePoint{}}
		x.services[p.Service] = s
	}
	switch {
	case p.URL != "":
		path, query, _ := strings.Cut(p.URL, "?")
		path = cleanedPath(path)
		if s.urls[path] == nil {
			s.urls[path] = map[string]purgePoint{}
		}
		s.urls[path][query] = newer(s.urls[path][query], at)
	case p.Prefix != "":
		s.prefixes[p.Prefix] = newer(s.prefixes[p.Prefix], at)
	case p.Tag != "":
		s.tags[p.Tag] = newer(s.tags[p.Tag], at)
	case p.All:
		s.all = newer(s.all, at)
	}
}

// forget removes a purge: a target has one record. x.mu is held.
func (x *purgeIndex) forget(id string) {
	p := x.records[id]
	if p == nil {
		return
	}
	delete(x.records, id)
	s := x.services[p.Service]
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
		s.all = purgePoint{}
	}
}

// cleanedPath is the path as requests are matched by.
func cleanedPath(path string) string {
	if clean, err := route.CleanPath(path); err == nil {
		return clean
	}
	return path
}

// valid reports whether no purge covers the service's answer.
func (x *purgeIndex) valid(service string, a *storedAnswer) bool {
	if a.void.Load() {
		return false
	}
	changes := x.changes.Load()
	if a.judged.Load() == changes+1 {
		return true
	}
	x.mu.RLock()
	s := x.services[service]
	void := s != nil && a.since.before(x.newest) && a.since.before(s.last(a))
	x.mu.RUnlock()
	if void {
		a.void.Store(true)
		return false
	}
	a.judged.Store(changes + 1)
	return true
}

// last is the place of the newest purge that covers the answer.
func (s *servicePurges) last(a *storedAnswer) purgePoint {
	last := s.all
	for _, tag := range a.tags {
		last = newer(last, s.tags[tag])
	}
	if len(s.prefixes) > 0 {
		for n := range len(a.resource.path) + 1 {
			last = newer(last, s.prefixes[a.resource.path[:n]])
		}
	}
	for query, at := range s.urls[a.resource.path] {
		if query == "" || a.resource.has(query) {
			last = newer(last, at)
		}
	}
	return last
}

// has reports whether an answer to the path with that query may be this one: one
// whose key holds some parameters only is meant by every query that has these.
func (r *resource) has(query string) bool {
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
