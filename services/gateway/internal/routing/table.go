package routing

import (
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/stream"
)

// Table finds services by prefix in an immutable snapshot behind an atomic
// pointer. Snapshots are made by the table's goroutine alone (stream.Sink).
type Table struct {
	log      *slog.Logger
	current  atomic.Pointer[snapshot]
	services map[string]*Service // the writer's own
}

type snapshot struct {
	byPrefix map[string]*Service
	// depth is the number of segments of the longest prefix: a hostile path of
	// a thousand slashes costs no more lookups than that.
	depth int
}

// NewTable returns a table without services.
func NewTable(log *slog.Logger) *Table {
	r := &Table{log: log, services: map[string]*Service{}}
	r.publish()
	return r
}

// Find returns the service with the longest prefix that path lies under, by
// whole segments, or nil. Path is cleaned.
func (r *Table) Find(path string) *Service {
	s := r.current.Load()
	found := s.byPrefix[""]
	for i, depth := 1, 0; i <= len(path) && depth < s.depth; i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		depth++
		if service := s.byPrefix[path[:i]]; service != nil {
			found = service
		}
	}
	return found
}

// Replace implements stream.Sink.
func (r *Table) Replace(entries map[string]stream.Entry[*Service]) {
	r.services = make(map[string]*Service, len(entries))
	for name, e := range entries {
		r.services[name] = e.Value
	}
	r.publish()
}

// Apply implements stream.Sink.
func (r *Table) Apply(c stream.Change[*Service]) {
	if c.Deleted {
		delete(r.services, c.Key)
	} else {
		r.services[c.Key] = c.Entry.Value
	}
	r.publish()
}

// publish makes a snapshot of the services. Of two with one prefix (the
// control plane refuses that, but a record may come from elsewhere) the name
// that sorts first wins on every gateway.
func (r *Table) publish() {
	next := &snapshot{byPrefix: make(map[string]*Service, len(r.services))}
	for _, s := range r.services {
		if twin := next.byPrefix[s.Prefix]; twin != nil {
			r.log.Warn("two services have the same prefix", "prefix", s.Prefix, "services", []string{twin.Name, s.Name})
			if twin.Name < s.Name {
				continue
			}
		}
		next.byPrefix[s.Prefix] = s
		next.depth = max(next.depth, strings.Count(s.Prefix, "/"))
	}
	r.current.Store(next)
}
