package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/catalog"
	events "github.com/sluice-platform/sluice/schemas/events/catalog"
)

// cachePolicy is how a route's answers are cached. It is immutable.
type cachePolicy struct {
	ttl, negativeTTL    time.Duration
	revalidate, failing time.Duration // the stale limits where answers do not say
	query               string
	queryNames          []string
	headers             []string // canonical, sorted
	maxBytes            int64
	tagsHeader          string // canonical
	shared              bool
}

// newCachePolicy compiles a setting; nil is none, or one that is off.
func newCachePolicy(c *events.Cache) (*cachePolicy, error) {
	if !c.On() {
		return nil, nil
	}
	p := &cachePolicy{
		query: c.Query, queryNames: c.QueryNames, maxBytes: c.MaxObjectBytes,
		tagsHeader: http.CanonicalHeaderKey(c.TagsHeader), shared: c.Shared,
	}
	for _, d := range []struct {
		field, text string
		to          *time.Duration
	}{
		{"ttl", c.TTL, &p.ttl}, {"negativeTTL", c.NegativeTTL, &p.negativeTTL},
		{"staleWhileRevalidate", c.StaleWhileRevalidate, &p.revalidate}, {"staleIfError", c.StaleIfError, &p.failing},
	} {
		var err error
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return nil, fmt.Errorf("cache.%s: %w", d.field, err)
		}
	}
	// A record may come from elsewhere; the bounds on what is kept must hold.
	p.ttl, p.negativeTTL = min(p.ttl, catalog.MaxFresh), min(p.negativeTTL, catalog.MaxFresh)
	p.revalidate, p.failing = min(p.revalidate, catalog.MaxStale), min(p.failing, catalog.MaxStale)
	if c.NegativeTTL == "" {
		p.negativeTTL = p.ttl / 10
	}
	if p.maxBytes <= 0 || p.maxBytes > catalog.MaxObjectBytes {
		p.maxBytes = catalog.DefaultObjectBytes
	}
	for _, name := range c.Headers {
		p.headers = append(p.headers, http.CanonicalHeaderKey(name))
	}
	slices.Sort(p.headers)
	return p, nil
}

// cachePolicy is that of the endpoint, nil where its answers are not cached.
func (s *service) cachePolicy(e *endpoint) *cachePolicy {
	if e != nil && e.ownCache {
		return e.cache
	}
	return s.cache
}

// caches reports whether any of its answers may be.
func (s *service) caches() bool {
	return s.cache != nil || slices.ContainsFunc(s.endpoints, func(e endpoint) bool { return e.cache != nil })
}

// stores reports whether answers to a method and cleaned path may be stored; an
// empty path is any without an endpoint.
func (s *service) stores(method, path string) bool {
	var at *endpoint
	if path != "" {
		at = s.find(method, path)
	}
	return cachedMethod(method) && s.cachePolicy(at) != nil
}

func cachedMethod(method string) bool { return method == http.MethodGet || method == http.MethodHead }
