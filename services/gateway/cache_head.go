package gateway

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/libs/cache"
)

// head forwards a HEAD that nothing stored may answer, and takes what it says to
// the answer that is kept, if there is one (RFC 9111, section 4.3.5).
func (t *cacheTransport) head(p *cachePlan, req *http.Request) (*http.Response, error) {
	u := headUpdate{plan: p, since: p.cache.purges.now(), at: answerTimes{sent: t.now()}}
	u.load = &answerLoad{plan: p, out: getOf(req), next: t.next, now: t.now}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	u.at.came = t.now()
	u.said = &http.Response{StatusCode: res.StatusCode, Header: res.Header.Clone()}
	if r, ok := u.apply(req.Context()); ok {
		_ = res.Body.Close()
		out := p.serve(req, &r, "fwd=stale; fwd-status=200; stored; ttl="+strconv.FormatInt(seconds(r.Fresh), 10))
		maps.Copy(out.Header, ownFields(res.Header, p.costHeader))
		return out, nil
	}
	return p.passed(res, "fwd=miss"), nil
}

// headUpdate is what an answer to HEAD says of a stored one.
type headUpdate struct {
	plan  *cachePlan
	load  *answerLoad // of the answer itself, should it have been replaced meanwhile
	said  *http.Response
	at    answerTimes
	since purgePoint
}

// apply makes the stored answer what it says, fresh again, and returns it; or
// stale, where it speaks of another body. ok is false where there is none to
// serve.
func (u *headUpdate) apply(ctx context.Context) (r cache.Result[*storedAnswer], ok bool) {
	family, key := u.plan.family, u.plan.key
	was, ok := u.plan.choose(key, func(at string) (cache.Result[*storedAnswer], bool) {
		key = at
		return family.Kept(ctx, at)
	})
	if !ok || u.said.StatusCode != http.StatusOK || was.Value.status != http.StatusOK || !hasValidator(u.said.Header) {
		return r, false
	}
	if _, fits := u.confirm(was.Value); !fits {
		// The next GET asks. If Redis is away the answer ends by its own time.
		_ = family.Invalidate(context.WithoutCancel(ctx), key)
		return r, false
	}
	r, err := family.Refresh(ctx, key, func(ctx context.Context, key string) (cache.Loaded[*storedAnswer], error) {
		if prior, ok := cache.Prior[*storedAnswer](ctx); ok && prior.incarnation == was.Value.incarnation {
			if now, fits := u.confirm(prior); fits {
				return now, nil
			}
		}
		return u.load.load(ctx, key) // others may wait for it
	})
	if live := u.load.take(); live != nil {
		_ = live.Body.Close()
		return r, false
	}
	if r.Value != nil && r.Value.each && r.Source != cache.Miss {
		return r, false // another request's
	}
	return r, err == nil && r.Err == nil && r.Value.matches(u.plan.header) && r.Value.incarnation == was.Value.incarnation
}

func (u *headUpdate) confirm(s *storedAnswer) (now cache.Loaded[*storedAnswer], fits bool) {
	if !sameBody(s, u.said.Header) {
		return now, false
	}
	return u.load.confirmed(s, s.incarnation, u.said, u.at, u.since)
}

// getOf is the request by which the answer to a HEAD would be loaded.
func getOf(req *http.Request) *http.Request {
	get := req.Clone(req.Context())
	get.Method = http.MethodGet
	return get
}

// kept is the answer that would be chosen for the request, however stale.
func (p *cachePlan) kept(ctx context.Context) (r cache.Result[*storedAnswer], ok bool) {
	return p.choose(p.key, func(key string) (cache.Result[*storedAnswer], bool) { return p.family.Kept(ctx, key) })
}

// sameBody reports whether an answer to HEAD, which has a validator, is about the
// stored answer's body: validators and length are the stored one's. Without any
// validator whoever asks for HEAD again and again could keep a body that the
// service has changed.
func sameBody(s *storedAnswer, head http.Header) bool {
	for name, own := range map[string]string{
		"Etag": s.header.Get("Etag"), "Last-Modified": s.header.Get("Last-Modified"), "Content-Length": strconv.Itoa(len(s.body)),
	} {
		if given := head.Get(name); given != "" && strings.TrimPrefix(given, "W/") != strings.TrimPrefix(own, "W/") {
			return false
		}
	}
	return true
}
