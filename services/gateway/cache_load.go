package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// originError is an answer that stands for a failure of the service.
type originError struct{ status int }

func (e *originError) Error() string { return fmt.Sprintf("the service answered %d", e.status) }

// answerLoad asks the service on behalf of one caller. Its load may run when the
// caller has gone, or for others: it knows neither exchange nor writer.
type answerLoad struct {
	plan *cachePlan
	out  *http.Request // to be cloned
	next http.RoundTripper
	now  func() time.Time
	// other is the resource's answer to other headers, nil if there is none: it
	// may be the one to these as well (RFC 9111, section 4.1).
	other *storedAnswer

	mu sync.Mutex
	// live is an answer that is not stored, for the caller alone; ended says that
	// nobody will take it any more.
	live  *http.Response
	ended bool
	// What the caller learns of its own load.
	prior    bool // there was an answer to be confirmed
	status   int
	own      http.Header // of its answer, what nobody else may see
	unstored string
	body     *loadBody // of the last request
}

// take hands the live answer to the caller, whose it is to close, and ends the
// load's part with the caller: what comes later is closed at once.
func (l *answerLoad) take() *http.Response {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := l.live
	l.live, l.ended = nil, true
	return live
}

// hand keeps a live answer for the caller.
func (l *answerLoad) hand(res *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = res.Body.Close() // nobody wants it
		return
	}
	l.live = res
}

// load is the cache.Loader.
func (l *answerLoad) load(ctx context.Context, _ string) (cache.Loaded[*storedAnswer], error) {
	since := l.plan.cache.purges.now()
	prior, ok := cache.Prior[*storedAnswer](ctx)
	// A purge that came since it was read counts here: since is behind it.
	ok = ok && l.plan.cache.purges.valid(l.plan.family.service, prior)
	var incarnation string
	if ok {
		incarnation = prior.incarnation
		if ok = prior.matches(l.plan.header); !ok {
			l.other = prior
		}
		ok = ok && hasValidator(prior.header)
	} else {
		incarnation = rand.Text()
	}
	if !ok {
		prior = l.likely()
	}
	res, at, err := l.ask(ctx, prior)
	if err == nil && res.StatusCode == http.StatusNotModified && prior != nil {
		if kept, fits := l.confirmed(prior, incarnation, res, at, since); fits {
			_ = res.Body.Close()
			return kept, nil
		}
		_ = res.Body.Close()
		res, at, err = l.ask(ctx, nil)
	}
	if err != nil {
		return cache.Loaded[*storedAnswer]{}, err
	}
	return l.keep(res, at, since, incarnation)
}

// likely is what to ask for where there is no answer to be confirmed: the other
// one, if the service has said for certain which body that is. Another caller's
// is never asked for: services count versions in their tags, alike for everybody.
func (l *answerLoad) likely() *storedAnswer {
	if l.other == nil || l.other.status != http.StatusOK || !strings.HasPrefix(l.other.header.Get("Etag"), `"`) ||
		!l.other.sameCaller(l.plan.header) || !l.plan.cache.purges.valid(l.plan.family.service, l.other) {
		return nil
	}
	return l.other
}

// ask sends the request, with the validators of an answer to be confirmed.
func (l *answerLoad) ask(ctx context.Context, prior *storedAnswer) (*http.Response, answerTimes, error) {
	// A live answer outlives the load, and ends with its caller.
	own, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	req := l.out.Clone(own)
	for _, name := range [...]string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		req.Header.Del(name)
	}
	if prior != nil {
		if tag := prior.header.Get("Etag"); tag != "" {
			req.Header.Set("If-None-Match", tag)
		}
		if changed := prior.header.Get("Last-Modified"); changed != "" && prior != l.other {
			req.Header.Set("If-Modified-Since", changed)
		}
	}
	at := answerTimes{sent: l.now()}
	res, err := l.next.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, at, err
	}
	at.came = l.now()
	body := &loadBody{ReadCloser: res.Body, stop: stop, cancel: cancel}
	res.Body = body
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = body
	l.prior, l.status = prior != nil, res.StatusCode
	l.own = ownFields(res.Header, l.plan.costHeader)
	return res, at, nil
}

// loadBody ends the request when it is closed.
type loadBody struct {
	io.ReadCloser
	stop   func() bool
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *loadBody) Close() error {
	err := b.ReadCloser.Close()
	b.stop()
	b.cancel()
	return err
}

// keep stores what may be stored, and hands the rest to the caller as it comes.
func (l *answerLoad) keep(res *http.Response, at answerTimes, since purgePoint, incarnation string) (cache.Loaded[*storedAnswer], error) {
	p := l.plan.policy
	life, why := p.storable(res.StatusCode, res.Header, l.plan.authorized, at)
	switch {
	case failing(res.StatusCode) && (why != "" || life.fresh <= 0):
		l.release(res, "failure")
		return cache.Loaded[*storedAnswer]{}, &originError{res.StatusCode}
	case why != "":
		return l.release(res, why), nil
	case len(res.Trailer) > 0:
		return l.release(res, "trailer"), nil
	case res.ContentLength > p.maxBytes:
		return l.release(res, "size"), nil
	}
	body, whole, err := readUpTo(res.Body, p.maxBytes)
	if err != nil {
		_ = res.Body.Close()
		return cache.Loaded[*storedAnswer]{}, fmt.Errorf("read answer: %w", err)
	}
	if !whole {
		res.Body = &resumedBody{Reader: io.MultiReader(bytes.NewReader(body), res.Body), Closer: res.Body}
		return l.release(res, "size"), nil
	}
	_ = res.Body.Close()
	return l.loaded(l.stored(res.StatusCode, res.Header, body, since, incarnation, life), life), nil
}

// release hands the answer to the caller alone. Others load for themselves, and
// for a while nobody waits for anybody.
func (l *answerLoad) release(res *http.Response, why string) cache.Loaded[*storedAnswer] {
	l.mu.Lock()
	l.body.stop()
	l.unstored = why
	l.mu.Unlock()
	l.hand(res)
	return cache.Loaded[*storedAnswer]{Value: &storedAnswer{}, Private: true}
}

// resumedBody is a body of which a part was read.
type resumedBody struct {
	io.Reader
	io.Closer
}

// readUpTo reads a body that has at most n bytes whole.
func readUpTo(r io.Reader, n int64) (body []byte, whole bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, n+1))
	return body, int64(len(body)) <= n, err
}

// ownFields are those of an answer that are for the load's caller alone: what
// no-cache and private name, and the cost.
func ownFields(h http.Header, costHeader string) http.Header {
	own := http.Header{}
	for _, name := range append(cacheControl(h).fields(), costHeader) {
		if values, ok := h[name]; ok {
			own[name] = values
		}
	}
	return own
}

func (l *answerLoad) stored(status int, h http.Header, body []byte, since purgePoint, incarnation string, life shelfLife) *storedAnswer {
	p := l.plan.policy
	s := &storedAnswer{
		status: status, header: l.kept(h), body: body, resource: l.plan.resource, vary: p.nominated(h),
		since: since, incarnation: incarnation, age: life.age, each: life.fresh <= 0 && life.revalidate <= 0,
	}
	for _, name := range s.vary {
		s.varyValues = append(s.varyValues, seen(l.plan.header, name))
	}
	for _, line := range h[p.tagsHeader] {
		s.tags = append(s.tags, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })...)
	}
	return s
}

// kept is the part of an answer's header that every later client may see.
func (l *answerLoad) kept(h http.Header) http.Header {
	kept := h.Clone()
	dropHopByHop(kept)
	for name := range kept {
		switch canonical := dashed(name); {
		case strings.HasPrefix(canonical, sluicePrefix), strings.HasPrefix(canonical, "X-Ratelimit-"):
			delete(kept, name)
		}
	}
	// Fields that may not be shared, or not without a word from the service.
	for _, name := range cacheControl(h).fields() {
		delete(kept, name)
	}
	for _, name := range [...]string{"Age", "Content-Length", headerLimit, headerPolicy, l.plan.costHeader, l.plan.policy.tagsHeader} {
		delete(kept, name)
	}
	return kept
}

// confirmed is the stored answer with what a 304 says of it (RFC 9111, section
// 3.2 and 4.3.4); fits is false where the 304 is about another one.
func (l *answerLoad) confirmed(prior *storedAnswer, incarnation string, res *http.Response, at answerTimes, since purgePoint) (kept cache.Loaded[*storedAnswer], fits bool) {
	tag := res.Header.Get("Etag")
	if prior == l.other && tag != "" && tag != prior.header.Get("Etag") {
		return kept, false // one tag was sent: without its own the answer means that one
	}
	if tag != "" && strings.TrimPrefix(tag, "W/") != strings.TrimPrefix(prior.header.Get("Etag"), "W/") {
		return kept, false
	}
	h := prior.header.Clone()
	for name, values := range res.Header {
		switch name {
		case "Content-Length", "Content-Encoding", "Content-Range", "Content-Md5": // of a body that did not come
		default:
			h[name] = values
		}
	}
	life, why := l.plan.policy.storable(prior.status, h, l.plan.authorized, at)
	if why != "" {
		return kept, false // to be asked again, for this caller alone
	}
	s := l.stored(prior.status, h, prior.body, since, incarnation, life)
	if len(res.Header[l.plan.policy.tagsHeader]) == 0 {
		s.tags = prior.tags
	}
	return l.loaded(s, life), true
}

func (l *answerLoad) loaded(s *storedAnswer, life shelfLife) cache.Loaded[*storedAnswer] {
	never := func(d time.Duration) time.Duration {
		if d <= 0 {
			return -1
		}
		return d
	}
	fresh := max(spread(life.fresh), unfresh)
	return cache.Loaded[*storedAnswer]{
		Value: s, TTL: fresh, StaleWhileRevalidate: never(life.revalidate), StaleIfError: never(life.failing),
	}
}

// unfresh is the freshness of what must be validated before each use.
const unfresh = time.Microsecond

// spread takes up to a twentieth off a long freshness, so that what was loaded
// together is not loaded again together.
func spread(d time.Duration) time.Duration {
	if d < time.Minute {
		return d
	}
	return d - time.Duration(spreadShare()*float64(d)/20)
}
