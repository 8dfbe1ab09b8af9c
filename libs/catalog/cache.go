package catalog

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// Bounds of a cache setting. Their sum stays below purges.MaxLife: twice the
// freshness, or freshness and what may be stale, is how long an answer is kept.
const (
	MaxFresh       = 72 * time.Hour
	MaxStale       = 24 * time.Hour
	MaxCacheNames  = 32 // parameters, or headers
	MaxObjectBytes = 16 << 20

	DefaultObjectBytes = 1 << 20
)

func (v *validation) cache(at string, c *catalog.Cache) {
	if c == nil {
		return
	}
	v.duration(at+"ttl", c.TTL, MaxFresh)
	v.duration(at+"negativeTTL", c.NegativeTTL, MaxFresh)
	v.duration(at+"staleWhileRevalidate", c.StaleWhileRevalidate, MaxStale)
	v.duration(at+"staleIfError", c.StaleIfError, MaxStale)
	if c.MaxObjectBytes < 0 || c.MaxObjectBytes > MaxObjectBytes {
		v.add(at+"maxObjectBytes", "must be from 1 to %d, or left out, not %d", MaxObjectBytes, c.MaxObjectBytes)
	}
	v.cacheQuery(at, c)
	v.cacheHeaders(at, c)
}

func (v *validation) duration(field, text string, most time.Duration) {
	if text == "" {
		return
	}
	if d, err := time.ParseDuration(text); err != nil || d < 0 || d > most || d%time.Second != 0 {
		v.add(field, "must be whole seconds such as 30s or 5m, at most %s", most)
	}
}

func (v *validation) cacheQuery(at string, c *catalog.Cache) {
	switch c.Query {
	case "", catalog.QueryAll, catalog.QueryNone, catalog.QueryNamed:
	default:
		v.add(at+"query", "must be all, none or named, or left out")
		return
	}
	if (c.Query == catalog.QueryNamed) != (len(c.QueryNames) > 0) {
		v.add(at+"queryNames", "must name the parameters where query is named, and be left out otherwise")
	}
	v.names(at+"queryNames", c.QueryNames, func(name string) bool { return name != "" && len(name) <= MaxHeaderLength && printable(name) })
}

func (v *validation) cacheHeaders(at string, c *catalog.Cache) {
	v.names(at+"headers", c.Headers, func(name string) bool { return name != "" && len(name) <= MaxHeaderLength && token(name) })
	for _, name := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			v.add(at+"headers", "must not hold Authorization: such requests are kept apart anyway, and a secret is no part of a key")
		}
	}
	tags := http.CanonicalHeaderKey(c.TagsHeader)
	switch {
	case tags == "":
	case len(tags) > MaxHeaderLength || !token(tags):
		v.add(at+"tagsHeader", "must be the name of a header, such as Cache-Tag, of at most %d characters", MaxHeaderLength)
	case meansSomething(tags):
		v.add(at+"tagsHeader", "must not be %s, which means something else: give a header such as Cache-Tag", tags)
	}
}

func (v *validation) names(field string, names []string, right func(string) bool) {
	if len(names) > MaxCacheNames {
		v.add(field, "must be at most %d, not %d", MaxCacheNames, len(names))
	}
	for i, name := range names {
		if !right(name) || slices.ContainsFunc(names[:i], func(before string) bool { return strings.EqualFold(before, name) }) {
			v.add(field, "must hold each name once, of 1 to %d characters", MaxHeaderLength)
			return
		}
	}
}
