package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/libs/route"
)

// changed clears what an unsafe method has changed (RFC 9111, section 4.4): the
// request's own URL, and those of the same host that the answer names. The
// answer waits for it, so that a client reads what it wrote.
func (c *answerCache) changed(x *exchange, res *http.Response) {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return
	}
	if res.StatusCode < 200 || res.StatusCode > 399 || !x.service.caches() {
		return
	}
	c.clear(x, x.path, x.r.URL.RawQuery)
	for _, name := range [...]string{"Location", "Content-Location"} {
		path, query, ok := sameHost(x.r, res.Header.Get(name))
		if ok {
			c.clear(x, path, query)
		}
	}
}

// sameHost resolves a reference of an answer against the request's URL.
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

// clear makes one URL's answers void in the fleet, all variants of it.
func (c *answerCache) clear(x *exchange, path, query string) {
	policy := x.service.cachePolicy(x.service.find(http.MethodGet, path))
	if policy == nil {
		return
	}
	family := c.of(x.service.name)
	if family == nil {
		return
	}
	what := policy.resource(x.r.Host, path, query)
	for _, authorized := range [...]bool{false, true} {
		// The client may have gone; what it changed is changed.
		if err := family.Clear(context.WithoutCancel(x.r.Context()), what.key(authorized)); err != nil {
			c.log.Log(x.r.Context(), slog.LevelWarn, "an answer that a request changed is cleared in this gateway only", "service", x.service.name, "error", err)
		}
	}
}
