package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func spreadShare() float64 { return rand.Float64() } //nolint:gosec // spreads load, guards nothing

// cacheTransport stands between the proxy and the transport to the services: to
// the proxy a stored answer is one like any other, and goes the same way to the
// client.
type cacheTransport struct {
	cache *answerCache
	next  http.RoundTripper
	now   func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (t *cacheTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	p := x.plan
	if p == nil {
		res, err := t.next.RoundTrip(req)
		if err == nil {
			t.cache.changed(x, res)
		}
		return res, err
	}
	p.see(req.Header, x.who.token)
	if p.bypass != "" {
		return t.pass(p, req, "fwd="+p.bypass)
	}
	if p.found != nil {
		x.cached = cachedAs(p.found)
		return p.serve(req, p.found, hitStatus(p.found)), nil
	}
	if req.Method == http.MethodHead || req.Header.Get("Range") != "" || p.wants.onlyIfCached {
		return t.storedOnly(x, p, req)
	}
	return t.fetch(x, p, req)
}

// pass forwards a request as it is.
func (t *cacheTransport) pass(p *cachePlan, req *http.Request, status string) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return p.passed(res, status), nil
}

// passed is an answer as its client sees it.
func (p *cachePlan) passed(res *http.Response, status string) *http.Response {
	delete(res.Header, p.policy.tagsHeader)
	tell(res.Header, fmt.Sprintf("%s; fwd-status=%d", status, res.StatusCode))
	return res
}

// storedOnly answers what is answered from the store or not by it: HEAD and
// parts are loaded as they are, and only-if-cached not at all.
func (t *cacheTransport) storedOnly(x *exchange, p *cachePlan, req *http.Request) (*http.Response, error) {
	if r, ok := p.peek(req.Context()); ok {
		x.cached = cachedAs(&r)
		return p.serve(req, &r, hitStatus(&r)), nil
	}
	switch {
	case p.wants.onlyIfCached:
		return nil, errOnlyIfCached
	case req.Method == http.MethodHead:
		return t.head(p, req)
	}
	return t.pass(p, req, "fwd=miss")
}

// fetch answers from the store, or by a load that all who wait for the same share.
func (t *cacheTransport) fetch(x *exchange, p *cachePlan, req *http.Request) (*http.Response, error) {
	if r, ok := p.unasked(req.Context()); ok {
		x.cached = cachedAs(&r)
		return p.serve(req, &r, hitStatus(&r)), nil
	}
	key, voided := p.key, 0
	var other *storedAnswer // of the resource, and not for this request
	for step := 0; step < maxVariants; step++ {
		l := &answerLoad{plan: p, out: req, next: t.next, now: t.now, other: other}
		r, err := p.get(req.Context(), key, l)
		live := l.take()
		switch {
		case live != nil && (err != nil || r.Source == cache.Miss):
			return l.deliver(req, live), nil
		case live != nil:
			_ = live.Body.Close() // something stands in for it
		}
		if err != nil {
			return nil, asTransportError(err)
		}
		if !t.cache.purges.valid(p.family.service, r.Value) {
			// Purged while it was loaded; the request may have come after that.
			if voided++; voided == maxVariants {
				break
			}
			step--
			continue
		}
		if r.Value.matches(p.header) {
			if r.Value.each && r.Source != cache.Miss && r.Source != cache.Stale {
				// Loaded for somebody else. The service must be asked for each (RFC
				// 9111, section 5.2.2.4), since it may say no, or another thing, to
				// whom it likes.
				return t.pass(p, req, "fwd=stale")
			}
			x.cached = cachedAs(&r)
			res := p.serve(req, &r, l.told(&r, step > 0))
			if r.Source == cache.Miss {
				maps.Copy(res.Header, l.own)
			}
			return res, nil
		}
		key, other = r.Value.variant(p.key, p.header), r.Value
	}
	return t.pass(p, req, "fwd=bypass")
}

// unasked is an answer that will do although nothing fresh of the request's own
// is stored: one for everybody, or what is stale, if the request says so.
func (p *cachePlan) unasked(ctx context.Context) (r cache.Result[*storedAnswer], ok bool) {
	if r, ok = p.others(); ok || p.wants.maxStale <= 0 {
		return r, ok
	}
	r, ok = p.kept(ctx)
	return r, ok && r.Fresh <= 0 && p.wants.takeStale(&r)
}

// errOnlyIfCached: there is no stored answer, and the request wants no other.
var errOnlyIfCached = errors.New("the request wants a stored answer only, and there is none")

// get is the answer under key: as it is if it may be served, else validated.
func (p *cachePlan) get(ctx context.Context, key string, l *answerLoad) (r cache.Result[*storedAnswer], err error) {
	w := &p.wants
	if w.validated {
		return p.refreshed(ctx, key, l)
	}
	r, err = p.family.FetchWith(ctx, key, l.load)
	if err != nil || w.take(&r) || r.Source == cache.Miss || r.Source == cache.Coalesced || !r.Value.matches(p.header) {
		return r, err
	}
	return p.refreshed(ctx, key, l)
}

// refreshed is an answer that the service has just given or confirmed; a stale
// one does not stand in for it where the request forbids that.
func (p *cachePlan) refreshed(ctx context.Context, key string, l *answerLoad) (cache.Result[*storedAnswer], error) {
	r, err := p.family.Refresh(ctx, key, l.load)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return r, err
}

// asTransportError makes of the cache's errors what the proxy reads.
func asTransportError(err error) error {
	if errors.Is(err, cache.ErrLoadTimeout) || errors.Is(err, cache.ErrWaitTimeout) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// cachedAs is what the usage event says.
func cachedAs(r *cache.Result[*storedAnswer]) string {
	switch r.Source {
	case cache.HitL1, cache.HitL2:
		return usage.CachedHit
	case cache.Stale:
		return usage.CachedStale
	case cache.Coalesced:
		return usage.CachedCoalesced
	}
	return ""
}
