package httpcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/sluice-platform/sluice/libs/cache"
)

// ErrNotStored is RoundTrip's error for a request with only-if-cached that no stored response satisfies.
var ErrNotStored = errors.New("the request accepts a stored response only, and there is none")

// RoundTrip answers the request, which the proxy is about to send to the origin by next, from the store or by next. Its
// errors are those of next, ErrNotStored, cache.ErrBackingOff after repeated failures of the resource, and
// context.DeadlineExceeded.
func (l *Lookup) RoundTrip(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	l.setHeader(req.Header)
	switch {
	case l.bypass != "":
		return l.pass(req, next, "fwd="+l.bypass)
	case l.found != nil:
		return l.serveStored(req, l.found), nil
	case req.Method == http.MethodHead, req.Header.Get("Range") != "", l.directives.onlyIfCached:
		return l.storedOrPass(req, next)
	}
	return l.fetch(req, next)
}

// pass forwards a request as it is.
func (l *Lookup) pass(req *http.Request, next http.RoundTripper, status string) (*http.Response, error) {
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return l.passed(res, status), nil
}

// passed is the origin's response as its client sees it.
func (l *Lookup) passed(res *http.Response, status string) *http.Response {
	delete(res.Header, l.target.Policy.TagsHeader)
	addCacheStatus(res.Header, fmt.Sprintf("%s; fwd-status=%d", status, res.StatusCode))
	return res
}

// serveStored answers with a response that was stored before.
func (l *Lookup) serveStored(req *http.Request, r *cache.Result[*storedResponse]) *http.Response {
	l.served = r.Source
	return l.serve(req, r, hitStatus(r))
}

// storedOrPass answers requests that load nothing into the store: HEAD and ranges are forwarded where nothing stored
// satisfies them, and only-if-cached is not forwarded at all.
func (l *Lookup) storedOrPass(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r, ok := l.peek(req.Context()); ok {
		return l.serveStored(req, &r), nil
	}
	switch {
	case l.directives.onlyIfCached:
		return nil, ErrNotStored
	case req.Method == http.MethodHead:
		return l.head(req, next)
	}
	return l.pass(req, next, "fwd=miss")
}

// fetch answers from the store, or by a load that all who wait for the same response share.
func (l *Lookup) fetch(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r, ok := l.withoutLoad(req.Context()); ok {
		return l.serveStored(req, &r), nil
	}
	key, purged := l.key, 0
	var other *storedResponse // of the resource, and not for this request
	for step := 0; step < maxVariants; step++ {
		load := &originLoad{lookup: l, out: req, next: next, other: other}
		r, err := l.get(req.Context(), key, load)
		live := load.take()
		switch {
		case live != nil && (err != nil || r.Source == cache.Miss):
			return load.deliver(req, live), nil
		case live != nil:
			_ = live.Body.Close() // a stored response stands in for it
		}
		if err != nil {
			return nil, transportError(err)
		}
		if !l.family.purges.valid(l.family.name, r.Value) {
			// Purged while it was loaded; the request may have come after the purge.
			if purged++; purged == maxVariants {
				break
			}
			step--
			continue
		}
		if l.matches(r.Value) {
			if r.Value.validateEach && r.Source != cache.Miss && r.Source != cache.Stale {
				// Loaded for another caller. The origin must be asked for each request (RFC 9111, section 5.2.2.4),
				// since it may answer each caller differently.
				return l.pass(req, next, "fwd=stale")
			}
			return l.serveLoaded(req, &r, load, step > 0), nil
		}
		key, other = l.variant(r.Value, l.key), r.Value
	}
	return l.pass(req, next, "fwd=bypass")
}

// serveLoaded answers with the outcome of a load; variant says that the resource had a response, but not for this request.
func (l *Lookup) serveLoaded(req *http.Request, r *cache.Result[*storedResponse], load *originLoad, variant bool) *http.Response {
	if r.Source != cache.Miss {
		l.served = r.Source
	}
	res := l.serve(req, r, load.cacheStatus(r, variant))
	if r.Source == cache.Miss {
		maps.Copy(res.Header, load.private)
	}
	return res
}

// transportError makes of the cache's timeouts what a proxy takes for one.
func transportError(err error) error {
	if errors.Is(err, cache.ErrLoadTimeout) || errors.Is(err, cache.ErrWaitTimeout) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
