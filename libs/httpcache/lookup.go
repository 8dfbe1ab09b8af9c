package httpcache

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// Target is the resource that a request asks for, and what its route says of it.
type Target struct {
	// Family is the origin, by a name of the caller's.
	Family string
	Policy *Policy
	// Path is the request's, cleaned and escaped; host and query are taken from the request.
	Path string
	// PerCaller is a response field, canonical, that only the caller of a load gets; empty: none.
	PerCaller string
	// Withhold removes from the request's header whatever else than Options.Identity tells who the caller is; called
	// where the policy is shared. nil: nothing.
	Withhold func(http.Header)
}

// Lookup is one request's use of the cache. It belongs to the goroutine that serves the request.
type Lookup struct {
	cache  *Cache
	family *family
	target Target

	resource resource
	key      string
	// authorized: the origin sees who the caller is.
	authorized bool
	// header is the request's as the origin sees it.
	header     http.Header
	directives requestDirectives
	// bypass is why the request goes to the origin as it is, a reason of Cache-Status (RFC 9211, section 2.2); empty:
	// it does not.
	bypass string
	// found is the response that Find found, nil if it found none; served where the response came from, 0 if it was
	// not stored before.
	found  *cache.Result[*storedResponse]
	served cache.Source
}

// Lookup says what the cache may do for the client's request r; nil where its method is not cached.
func (c *Cache) Lookup(r *http.Request, t Target) *Lookup {
	if !CachedMethod(r.Method) {
		return nil
	}
	l := &Lookup{cache: c, target: t, resource: t.Policy.resource(r.Host, t.Path, r.URL.RawQuery)}
	h := r.Header
	cc := cacheControl(h)
	l.directives = requestDirectivesOf(cc, h)
	switch {
	case cc.has("no-store"):
		l.bypass = "request"
	case r.ContentLength != 0, h.Get("Upgrade") != "", h.Get("If-Match") != "", h.Get("If-Unmodified-Since") != "", h.Get("Expect") != "":
		l.bypass = "bypass"
	case !c.usable():
		l.bypass = "bypass"
	default:
		if l.family = c.family(t.Family); l.family == nil {
			l.bypass = "bypass"
		}
	}
	return l
}

// CachedMethod reports the methods whose responses may come from the cache.
func CachedMethod(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// Bypassed reports a request that the cache does nothing for.
func (l *Lookup) Bypassed() bool { return l.bypass != "" }

// VaryBy are the request headers, canonical, by which the route distinguishes responses beside those that responses
// name.
func (l *Lookup) VaryBy() []string { return l.target.Policy.Headers }

// Served is where the response came from; 0 where the request went to the origin alone.
func (l *Lookup) Served() cache.Source { return l.served }

// Find reports whether a stored response answers the request without the origin; RoundTrip then serves that one. The
// header is the request's as the origin would see it.
func (l *Lookup) Find(ctx context.Context, header http.Header) bool {
	if l.bypass != "" {
		return false
	}
	l.setHeader(header)
	r, ok := l.peek(ctx)
	if ok {
		l.found = &r
	}
	return ok
}

// setHeader takes over the request's header as the origin will see it. Of a shared resource the identity is withheld.
func (l *Lookup) setHeader(h http.Header) {
	l.header = h
	identity := l.cache.o.Identity
	if l.target.Policy.Shared && l.bypass == "" {
		for _, name := range identity {
			delete(h, name)
		}
		if l.target.Withhold != nil {
			l.target.Withhold(h)
		}
	}
	l.authorized = len(h["Authorization"]) > 0
	for _, name := range identity {
		l.authorized = l.authorized || h[name] != nil
	}
	l.key = l.resource.key(l.authorized)
}

// peek is the stored response that the request may have without a load.
func (l *Lookup) peek(ctx context.Context) (r cache.Result[*storedResponse], ok bool) {
	r, ok = l.selectVariant(l.key, func(key string) (cache.Result[*storedResponse], bool) { return l.family.Peek(ctx, key) })
	if ok && l.directives.allow(&r) {
		return r, true
	}
	return l.otherPartition()
}

// maxVariants bounds the way from a resource to the response for one request: a response whose Vary names other headers
// than that of the one before leads on.
const maxVariants = 4

// selectVariant finds the response for the request among those of a resource, beginning with the one under key.
func (l *Lookup) selectVariant(primary string, get func(key string) (cache.Result[*storedResponse], bool)) (r cache.Result[*storedResponse], ok bool) {
	key := primary
	for range maxVariants {
		if r, ok = get(key); !ok || !l.family.purges.valid(l.family.name, r.Value) {
			return r, false
		}
		if l.matches(r.Value) {
			return r, true
		}
		key = l.variant(r.Value, primary)
	}
	return r, false
}

// otherPartition is the response that is kept for requests with an identity where this one has none, or the other way
// round, and that states that it may be shared (RFC 9111, section 3.5). It is served where this process holds it, fresh,
// and nothing under the request's own key: a search in Redis would cost every miss a call, and loading the response
// twice does no harm.
func (l *Lookup) otherPartition() (r cache.Result[*storedResponse], ok bool) {
	if l.target.Policy.Shared || l.directives.noCache {
		return r, false
	}
	if _, own := l.selectVariant(l.key, l.family.PeekLocal); own {
		return r, false
	}
	r, ok = l.selectVariant(l.resource.key(!l.authorized), l.family.PeekLocal)
	return r, ok && l.directives.allow(&r) && shareable(cacheControl(r.Value.header))
}

// retained is the response that would be selected for the request, however stale.
func (l *Lookup) retained(ctx context.Context) (r cache.Result[*storedResponse], ok bool) {
	return l.selectVariant(l.key, func(key string) (cache.Result[*storedResponse], bool) { return l.family.PeekStale(ctx, key) })
}

// withoutLoad is a response that will do although nothing fresh of the request's own is stored: one that may be shared,
// or a stale one if the request allows it.
func (l *Lookup) withoutLoad(ctx context.Context) (r cache.Result[*storedResponse], ok bool) {
	if r, ok = l.otherPartition(); ok || l.directives.maxStale <= 0 {
		return r, ok
	}
	r, ok = l.retained(ctx)
	return r, ok && r.Fresh <= 0 && l.directives.allowStale(&r)
}

// get is the response under key: as it is if the request allows it, else confirmed by the origin.
func (l *Lookup) get(ctx context.Context, key string, load *originLoad) (r cache.Result[*storedResponse], err error) {
	d := &l.directives
	if d.noCache {
		return l.refresh(ctx, key, load)
	}
	r, err = l.family.FetchWith(ctx, key, load.load)
	if err != nil || d.allow(&r) || r.Source == cache.Miss || r.Source == cache.Coalesced || !l.matches(r.Value) {
		return r, err
	}
	return l.refresh(ctx, key, load)
}

// refresh is a response that the origin has just given or confirmed; a stale one does not stand in for it where the
// request forbids that.
func (l *Lookup) refresh(ctx context.Context, key string, load *originLoad) (cache.Result[*storedResponse], error) {
	r, err := l.family.Refresh(ctx, key, load.load)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return r, err
}

// messageTimes are when a request was sent and when its response's header came.
type messageTimes struct{ sent, received time.Time }
