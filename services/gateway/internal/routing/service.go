package routing

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// Service is one record of catalog.v1, ready to be routed to. It is immutable.
type Service struct {
	Name string
	// Prefix is cleaned and has no slash at its end; "" is the root.
	Prefix      string
	StripPrefix bool
	// Demands is the kind of credential (catalog.Require…), empty for none.
	Demands         string
	RefuseStaleKeys bool
	CostHeader      string // canonical; empty: none
	MaxCost         int64  // the largest cost that its responses may name
	LegacyHeaders   bool

	upstreams []Upstream
	weights   int        // sum of the upstreams' weights
	endpoints []Endpoint // most specific first
	cache     *httpcache.Policy
}

// Upstream is one address of a Service.
type Upstream struct {
	scheme, host string
	// base is the escaped path in front of every forwarded one, without a
	// slash at its end.
	base   string
	weight int
}

// Endpoint is one Endpoint of a Service in the catalog.
type Endpoint struct {
	Text string // METHOD /path, as rules name it
	Path string // without the method, as events carry it
	Cost int64

	pattern route.Pattern
	// cache is how its responses are cached, where ownCache says that the policy is
	// the Endpoint's own and not the service's.
	cache    *httpcache.Policy
	ownCache bool
}

// DecodeService reads one record of catalog.v1.
func DecodeService(name string, value []byte) (*Service, error) {
	var c catalog.Service
	if err := json.Unmarshal(value, &c); err != nil {
		return nil, fmt.Errorf("read service: %w", err)
	}
	prefix, err := route.CleanPath(c.Prefix)
	if err != nil {
		return nil, fmt.Errorf("prefix: %w", err)
	}
	s := &Service{
		Name: name, Prefix: strings.TrimSuffix(prefix, "/"), StripPrefix: c.StripPrefix,
		RefuseStaleKeys: c.RefuseStaleKeys, CostHeader: http.CanonicalHeaderKey(c.CostHeader), LegacyHeaders: c.LegacyHeaders,
	}
	if s.MaxCost = libcatalog.DefaultMaxCost; c.MaxCost != nil {
		s.MaxCost = *c.MaxCost
	}
	if s.Demands, err = demanded(&c); err != nil {
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
	slices.SortStableFunc(s.endpoints, func(a, b Endpoint) int { return route.Compare(a.pattern, b.pattern) })
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

func newUpstream(u catalog.Upstream) (Upstream, error) {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return Upstream{}, fmt.Errorf("upstream: %w", err)
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return Upstream{}, fmt.Errorf("upstream %s is no http or https URL with a host", parsed.Redacted())
	}
	weight := 1
	if u.Weight != nil {
		weight = *u.Weight
	}
	if weight < 0 {
		return Upstream{}, errors.New("an upstream's weight is negative")
	}
	return Upstream{scheme: parsed.Scheme, host: parsed.Host, base: strings.TrimSuffix(parsed.EscapedPath(), "/"), weight: weight}, nil
}

func newEndpoint(e catalog.Endpoint) (Endpoint, error) {
	pattern, err := route.Parse(e.Pattern)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", e.Pattern, err)
	}
	out := Endpoint{pattern: pattern, Text: pattern.String(), Path: pattern.Path(), Cost: 1}
	if e.Cost != nil {
		out.Cost = *e.Cost
	}
	out.ownCache = e.Cache != nil
	if out.cache, err = newCachePolicy(e.Cache); err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", e.Pattern, err)
	}
	return out, nil
}

// Pick chooses an upstream by weight, nil when none takes requests.
func (s *Service) Pick() *Upstream {
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

// Find returns the most specific endpoint that covers the request, or nil.
func (s *Service) Find(method, path string) *Endpoint {
	for i := range s.endpoints {
		if s.endpoints[i].pattern.Matches(method, path) {
			return &s.endpoints[i]
		}
	}
	return nil
}

// CachePolicy is that of the endpoint, nil where its answers are not cached.
func (s *Service) CachePolicy(e *Endpoint) *httpcache.Policy {
	if e != nil && e.ownCache {
		return e.cache
	}
	return s.cache
}

// Caches reports whether any of its answers may be.
func (s *Service) Caches() bool {
	return s.cache != nil || slices.ContainsFunc(s.endpoints, func(e Endpoint) bool { return e.cache != nil })
}

// Stores reports whether answers to a method and cleaned path may be stored; an
// empty path is any without an endpoint.
func (s *Service) Stores(method, path string) bool {
	var at *Endpoint
	if path != "" {
		at = s.Find(method, path)
	}
	return httpcache.CachedMethod(method) && s.CachePolicy(at) != nil
}
