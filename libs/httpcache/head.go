package httpcache

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/libs/cache"
)

// head forwards a HEAD that no stored response may answer, and updates the stored
// response by its result, if there is one (RFC 9111, section 4.3.5).
func (l *Lookup) head(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	u := headUpdate{lookup: l, since: l.cache.purges.Newest(), at: messageTimes{sent: l.cache.now()}}
	u.load = &originLoad{lookup: l, out: asGet(req), next: next}
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	u.at.received = l.cache.now()
	u.response = &http.Response{StatusCode: res.StatusCode, Header: res.Header.Clone()}
	if r, ok := u.apply(req.Context()); ok {
		_ = res.Body.Close()
		out := l.serve(req, &r, "fwd=stale; fwd-status=200; stored; ttl="+strconv.FormatInt(wholeSeconds(r.Fresh), 10))
		maps.Copy(out.Header, privateFields(res.Header, l.target.PerCaller))
		return out, nil
	}
	return l.passed(res, "fwd=miss"), nil
}

// headUpdate is what a response to HEAD says of a stored one.
type headUpdate struct {
	lookup   *Lookup
	load     *originLoad // of the resource, should the stored response have been replaced meanwhile
	response *http.Response
	at       messageTimes
	since    Position
}

// apply updates the stored response, which is fresh again, and returns it; or makes
// it stale, where the response to HEAD is about another body. ok is false where
// there is none to serve.
func (u *headUpdate) apply(ctx context.Context) (r cache.Result[*storedResponse], ok bool) {
	family, key := u.lookup.family, u.lookup.key
	was, ok := u.lookup.selectVariant(key, func(at string) (cache.Result[*storedResponse], bool) {
		key = at
		return family.PeekStale(ctx, at)
	})
	if !ok || u.response.StatusCode != http.StatusOK || was.Value.status != http.StatusOK || !hasValidator(u.response.Header) {
		return r, false
	}
	if _, fits := u.confirm(was.Value); !fits {
		// The next GET loads. Without Redis the response expires by its own lifetime.
		_ = family.Invalidate(context.WithoutCancel(ctx), key)
		return r, false
	}
	r, err := family.Refresh(ctx, key, func(ctx context.Context, key string) (cache.Loaded[*storedResponse], error) {
		if previous, ok := cache.Previous[*storedResponse](ctx); ok && previous.incarnation == was.Value.incarnation {
			if now, fits := u.confirm(previous); fits {
				return now, nil
			}
		}
		return u.load.load(ctx, key) // others may wait for it
	})
	if live := u.load.take(); live != nil {
		_ = live.Body.Close()
		return r, false
	}
	if r.Value != nil && r.Value.validateEach && r.Source != cache.Miss {
		return r, false // loaded for another request
	}
	return r, err == nil && r.Err == nil && u.lookup.matches(r.Value) && r.Value.incarnation == was.Value.incarnation
}

func (u *headUpdate) confirm(s *storedResponse) (now cache.Loaded[*storedResponse], fits bool) {
	if !sameBody(s, u.response.Header) {
		return now, false
	}
	return u.load.confirmed(s, s.incarnation, u.response, u.at, u.since)
}

// asGet is the request that would load the resource of a HEAD.
func asGet(req *http.Request) *http.Request {
	get := req.Clone(req.Context())
	get.Method = http.MethodGet
	return get
}

// sameBody reports whether a response to HEAD, which has a validator, is about the
// stored body: validators and length are equal. Without any validator, repeated
// HEAD requests could keep a body fresh that the origin has changed.
func sameBody(s *storedResponse, head http.Header) bool {
	for name, own := range map[string]string{
		"Etag": s.header.Get("Etag"), "Last-Modified": s.header.Get("Last-Modified"), "Content-Length": strconv.Itoa(len(s.body)),
	} {
		if given := head.Get(name); given != "" && strings.TrimPrefix(given, "W/") != strings.TrimPrefix(own, "W/") {
			return false
		}
	}
	return true
}
