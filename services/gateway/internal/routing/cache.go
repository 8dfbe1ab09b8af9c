package routing

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/httpcache"
	events "github.com/sluice-platform/sluice/schemas/events/catalog"
)

// newCachePolicy compiles a setting; nil is none, or one that is off.
func newCachePolicy(c *events.Cache) (*httpcache.Policy, error) {
	if !c.On() {
		return nil, nil
	}
	p := &httpcache.Policy{
		QueryNames: c.QueryNames, MaxBytes: c.MaxObjectBytes, TagsHeader: http.CanonicalHeaderKey(c.TagsHeader), Shared: c.Shared,
	}
	switch c.Query {
	case events.QueryNone:
		p.Query = httpcache.QueryNone
	case events.QueryNamed:
		p.Query = httpcache.QueryNamed
	}
	for _, d := range []struct {
		field, text string
		to          *time.Duration
	}{
		{"ttl", c.TTL, &p.TTL}, {"negativeTTL", c.NegativeTTL, &p.NegativeTTL},
		{"staleWhileRevalidate", c.StaleWhileRevalidate, &p.StaleWhileRevalidate}, {"staleIfError", c.StaleIfError, &p.StaleIfError},
	} {
		var err error
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return nil, fmt.Errorf("cache.%s: %w", d.field, err)
		}
	}
	// The control plane refuses longer ones, but a record may come from elsewhere.
	p.TTL, p.NegativeTTL = min(p.TTL, catalog.MaxFresh), min(p.NegativeTTL, catalog.MaxFresh)
	p.StaleWhileRevalidate, p.StaleIfError = min(p.StaleWhileRevalidate, catalog.MaxStale), min(p.StaleIfError, catalog.MaxStale)
	if c.NegativeTTL == "" {
		p.NegativeTTL = p.TTL / 10
	}
	if p.MaxBytes <= 0 || p.MaxBytes > catalog.MaxObjectBytes {
		p.MaxBytes = catalog.DefaultObjectBytes
	}
	for _, name := range c.Headers {
		p.Headers = append(p.Headers, http.CanonicalHeaderKey(name))
	}
	slices.Sort(p.Headers)
	return p, nil
}
