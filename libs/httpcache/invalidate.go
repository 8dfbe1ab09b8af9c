package httpcache

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/libs/route"
)

// InvalidateAfter clears what an unsafe method has changed (RFC 9111, section 4.4): the URL of the client's request r,
// and those of the same host that the response's Location and Content-Location name. The response must wait for it, so
// that a client reads what it wrote. policyOf is the policy of a path, nil where its responses are not cached.
func (c *Cache) InvalidateAfter(r *http.Request, res *http.Response, family, path string, policyOf func(path string) *Policy) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return
	}
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return
	}
	clear := func(path, query string) {
		if p := policyOf(path); p != nil {
			c.clear(r.Context(), family, p.resource(r.Host, path, query))
		}
	}
	clear(path, r.URL.RawQuery)
	for _, name := range [...]string{"Location", "Content-Location"} {
		if path, query, ok := sameHost(r, res.Header.Get(name)); ok {
			clear(path, query)
		}
	}
}

// sameHost resolves a reference of a response against the request's URL.
func sameHost(r *http.Request, reference string) (path, query string, ok bool) {
	if reference == "" {
		return "", "", false
	}
	to, err := url.Parse(reference)
	if err != nil {
		return "", "", false
	}
	to = r.URL.ResolveReference(to)
	if to.Host != "" && !strings.EqualFold(to.Host, r.Host) {
		return "", "", false
	}
	path, err = route.CleanPath(to.EscapedPath())
	return path, to.RawQuery, err == nil
}

// clear makes all responses of one resource void in every process, those of both partitions.
func (c *Cache) clear(ctx context.Context, name string, what resource) {
	f := c.family(name)
	if f == nil {
		return
	}
	for _, authorized := range [...]bool{false, true} {
		// The client may have gone; the origin has changed the resource all the same.
		if err := f.Clear(context.WithoutCancel(ctx), what.key(authorized)); err != nil {
			c.log.Log(ctx, slog.LevelWarn, "a response that a request changed is cleared in this process only", "family", name, "error", err)
		}
	}
}
