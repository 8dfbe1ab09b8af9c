package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

// cachedRoute is a service, or an endpoint of it, with the one cache setting
// that its keys have in common.
type cachedRoute struct {
	service catalog.Service
	// pattern is the endpoint's; empty is the service and whatever has no cache
	// setting of its own.
	pattern string
	cache   catalog.Cache // one that is off where there is none
	// notStored are reasons why answers are not stored today, for people.
	notStored []string
	// unseen: it is cached, and the cache was looked at and holds no answer of it.
	unseen bool
}

// routeOf reads the route from the control plane.
func (f *rehearseFlags) routeOf(ctx context.Context, c *rest.Connection) (*cachedRoute, error) {
	name, pattern, _ := strings.Cut(f.route, " ")
	var r cachedRoute
	if err := c.Do(ctx, rest.Call{Method: http.MethodGet, Path: "/v1/services/" + url.PathEscape(name), Into: &r.service}); err != nil {
		return nil, fmt.Errorf("read service %q of --route: %w", name, err)
	}
	r.service = libcatalog.Normalize(r.service)
	setting := r.service.Cache
	if pattern != "" {
		i := r.endpoint(pattern)
		if i < 0 {
			return nil, fmt.Errorf("--route: service %s has no endpoint %q", name, pattern)
		}
		r.pattern = r.service.Endpoints[i].Pattern
		if own := r.service.Endpoints[i].Cache; own != nil {
			setting = own
		}
	}
	r.cache.Enabled = new(false)
	if setting != nil {
		r.cache = *setting
	}
	return &r, nil
}

// endpoint is the place of the endpoint with that pattern, -1 where there is none.
func (r *cachedRoute) endpoint(pattern string) int {
	for i := range r.service.Endpoints {
		if r.service.Endpoints[i].Pattern == pattern {
			return i
		}
	}
	return -1
}

// covers reports whether GET of the path is the route's: of the endpoint, or for
// a service of whatever has no cache setting of its own.
func (r *cachedRoute) covers(path string) bool {
	if !strings.HasPrefix(path, r.service.Prefix) && path+"/" != r.service.Prefix {
		return false
	}
	best := -1
	var of route.Pattern
	for i := range r.service.Endpoints {
		p, err := route.Parse(r.service.Endpoints[i].Pattern)
		if err == nil && p.Matches(http.MethodGet, path) && (best < 0 || p.MoreSpecific(of)) {
			best, of = i, p
		}
	}
	if r.pattern != "" {
		return best >= 0 && r.service.Endpoints[best].Pattern == r.pattern
	}
	return best < 0 || r.service.Endpoints[best].Cache == nil
}

// settings are those of an answer of which nothing is stored: the route's, where
// they make it one that is stored at all.
func (r *cachedRoute) settings() rehearsal.Settings {
	ttl, revalidate, failing := seconds(r.cache.TTL), seconds(r.cache.StaleWhileRevalidate), seconds(r.cache.StaleIfError)
	return rehearsal.Settings{
		Off: !r.cache.On() || ttl == 0 || r.identifies() != "",
		TTL: ttl, StaleWhileRevalidate: revalidate, StaleIfError: failing,
	}
}

// identifies is the setting by which every request of the route has an identity,
// so that an answer is stored by its own word only; empty where there is none.
func (r *cachedRoute) identifies() string {
	switch {
	case r.cache.Shared:
		return ""
	case r.service.RequireIdentity != "":
		return "requireIdentity " + r.service.RequireIdentity
	case r.service.RequireKey:
		return "requireKey"
	}
	return ""
}

// identifiedRule is what gateways hold to (RFC 9111, section 3.5).
const identifiedRule = "answers to identified callers are stored only if they say public, s-maxage or must-revalidate, or the route has shared: true (one answer for all callers)"

// judge says what is not stored today, of keys of which so many answers were
// found in the cache, if it was looked at.
func (r *cachedRoute) judge(keys []rehearsal.Key, looked bool, found int) {
	off := 0
	for i := range keys {
		if keys[i].Settings.Off {
			off++
		}
	}
	if by := r.identifies(); by != "" && off > 0 {
		r.notStored = append(r.notStored, fmt.Sprintf("%d of %d keys: requests of %s carry an identity (%s), and %s", off, len(keys), r.service.Name, by, identifiedRule))
	}
	if r.unseen = r.cache.On() && looked && found == 0; r.unseen {
		r.notStored = append(r.notStored, fmt.Sprintf("caching is enabled, and the cache holds no answer of %s: sluice cache warm says why", r.service.Name))
	}
}

// seconds is a duration that the control plane has validated; empty is 0.
func seconds(text string) time.Duration {
	d, _ := time.ParseDuration(text) // what is no duration is none
	return d
}
