package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// service is one record of catalog.v1, ready to be routed to. It is never
// changed after it was made.
type service struct {
	name string
	// prefix is cleaned and has no slash at its end; "" is the root.
	prefix      string
	stripPrefix bool
	// demands is the kind of credential (catalog.Require…), empty for none.
	demands         string
	refuseStaleKeys bool
	costHeader      string // canonical; empty: none
	maxCost         int64  // that it is believed
	legacyHeaders   bool
	upstreams       []upstream
	weights         int        // sum of the upstreams' weights
	endpoints       []endpoint // most specific first
	cache           *httpcache.Policy
}

type upstream struct {
	scheme, host string
	// base is the escaped path in front of every forwarded one, without a
	// slash at its end.
	base   string
	weight int
}

type endpoint struct {
	pattern route.Pattern
	text    string // METHOD /path, as rules name it
	path    string // without the method, as events carry it
	cost    int64
	// cache is how its answers are cached, where ownCache says that it is its own
	// and not the service's.
	cache    *httpcache.Policy
	ownCache bool
}

// decodeService reads one record of catalog.v1.
func decodeService(name string, value []byte) (*service, error) {
	var c catalog.Service
	if err := json.Unmarshal(value, &c); err != nil {
		return nil, fmt.Errorf("read service: %w", err)
	}
	prefix, err := route.CleanPath(c.Prefix)
	if err != nil {
		return nil, fmt.Errorf("prefix: %w", err)
	}
	s := &service{
		name: name, prefix: strings.TrimSuffix(prefix, "/"), stripPrefix: c.StripPrefix,
		refuseStaleKeys: c.RefuseStaleKeys, costHeader: http.CanonicalHeaderKey(c.CostHeader), legacyHeaders: c.LegacyHeaders,
	}
	if s.maxCost = libcatalog.DefaultMaxCost; c.MaxCost != nil {
		s.maxCost = *c.MaxCost
	}
	if s.demands, err = demanded(&c); err != nil {
		return nil, err
	}
	if s.cache, err = newCachePolicy(c.Cache); err != nil {
		return nil, err
	}
	for _, u := range c.Upstreams {
		up, err := newUpstream(u)
		if err != nil {
			return nil, err
		}
		s.weights += up.weight
		s.upstreams = append(s.upstreams, up)
	}
	for _, e := range c.Endpoints {
		ep, err := newEndpoint(e)
		if err != nil {
			return nil, err
		}
		s.endpoints = append(s.endpoints, ep)
	}
	slices.SortStableFunc(s.endpoints, func(a, b endpoint) int { return route.Compare(a.pattern, b.pattern) })
	return s, nil
}

// demanded is the kind of credential the service demands. A kind that this
// build does not know is an error: to let everybody in would be wrong.
func demanded(c *catalog.Service) (string, error) {
	switch c.RequireIdentity {
	case "":
		if c.RequireKey {
			return catalog.RequireKey, nil
		}
		return "", nil
	case catalog.RequireKey, catalog.RequireToken, catalog.RequireKeyOrToken:
		if c.RequireKey && c.RequireIdentity != catalog.RequireKey {
			return "", fmt.Errorf("requireKey and requireIdentity %s contradict each other", c.RequireIdentity)
		}
		return c.RequireIdentity, nil
	}
	return "", fmt.Errorf("requireIdentity %q is unknown", c.RequireIdentity)
}

func newUpstream(u catalog.Upstream) (upstream, error) {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return upstream{}, fmt.Errorf("upstream: %w", err)
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return upstream{}, fmt.Errorf("upstream %s is no http or https URL with a host", parsed.Redacted())
	}
	weight := 1
	if u.Weight != nil {
		weight = *u.Weight
	}
	if weight < 0 {
		return upstream{}, errors.New("an upstream's weight is negative")
	}
	return upstream{scheme: parsed.Scheme, host: parsed.Host, base: strings.TrimSuffix(parsed.EscapedPath(), "/"), weight: weight}, nil
}

func newEndpoint(e catalog.Endpoint) (endpoint, error) {
	pattern, err := route.Parse(e.Pattern)
	if err != nil {
		return endpoint{}, fmt.Errorf("endpoint %q: %w", e.Pattern, err)
	}
	out := endpoint{pattern: pattern, text: pattern.String(), path: pattern.Path(), cost: 1}
	if e.Cost != nil {
		out.cost = *e.Cost
	}
	out.ownCache = e.Cache != nil
	if out.cache, err = newCachePolicy(e.Cache); err != nil {
		return endpoint{}, fmt.Errorf("endpoint %q: %w", e.Pattern, err)
	}
	return out, nil
}

// pick chooses an upstream by weight, nil when none takes requests.
func (s *service) pick() *upstream {
	if s.weights == 0 {
		return nil
	}
	n := 0
	if len(s.upstreams) > 1 {
		n = rand.IntN(s.weights) //nolint:gosec // spreads load, guards nothing
	}
	for i := range s.upstreams {
		if n -= s.upstreams[i].weight; n < 0 {
			return &s.upstreams[i]
		}
	}
	return nil
}

// find returns the most specific endpoint that covers the request, or nil.
func (s *service) find(method, path string) *endpoint {
	for i := range s.endpoints {
		if s.endpoints[i].pattern.Matches(method, path) {
			return &s.endpoints[i]
		}
	}
	return nil
}

// routes finds services by prefix in an immutable snapshot behind an atomic
// pointer. Snapshots are made by the table's goroutine alone (stream.Sink).
type routes struct {
	log      *slog.Logger
	current  atomic.Pointer[snapshot]
	services map[string]*service // the writer's own
}

type snapshot struct {
	byPrefix map[string]*service
	// depth is the number of segments of the longest prefix: a hostile path of
	// a thousand slashes costs no more lookups than that.
	depth int
}

func newRoutes(log *slog.Logger) *routes {
	r := &routes{log: log, services: map[string]*service{}}
	r.publish()
	return r
}

// find returns the service with the longest prefix that path lies under, by
// whole segments, or nil. Path is cleaned.
func (r *routes) find(path string) *service {
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
func (r *routes) Replace(entries map[string]stream.Entry[*service]) {
	r.services = make(map[string]*service, len(entries))
	for name, e := range entries {
		r.services[name] = e.Value
	}
	r.publish()
}

// Apply implements stream.Sink.
func (r *routes) Apply(c stream.Change[*service]) {
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
func (r *routes) publish() {
	next := &snapshot{byPrefix: make(map[string]*service, len(r.services))}
	for _, s := range r.services {
		if twin := next.byPrefix[s.prefix]; twin != nil {
			r.log.Warn("two services have the same prefix", "prefix", s.prefix, "services", []string{twin.name, s.name})
			if twin.name < s.name {
				continue
			}
		}
		next.byPrefix[s.prefix] = s
		next.depth = max(next.depth, strings.Count(s.prefix, "/"))
	}
	r.current.Store(next)
}
