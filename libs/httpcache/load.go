package httpcache

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// originError is a response that reports a failure of the origin.
type originError struct{ status int }

func (e *originError) Error() string { return fmt.Sprintf("the origin responded %d", e.status) }

// originLoad asks the origin on behalf of one caller. It may run on for other
// callers when its own has gone: it must not touch the caller's ResponseWriter.
type originLoad struct {
	lookup *Lookup
	out    *http.Request // to be cloned
	next   http.RoundTripper
	// other is the resource's response to other headers, nil if there is none: the
	// origin may confirm it for these headers as well (RFC 9111, section 4.1).
	other *storedResponse

	mu sync.Mutex
	// live is a response that is not stored, for the caller alone; ended says that
	// the caller takes none any more.
	live  *http.Response
	ended bool
	// What the caller learns of its own load.
	validated bool // there was a response to be confirmed
	status    int
	private   http.Header // response fields for this caller alone
	unstored  string      // why the response is not stored
	body      *loadBody   // of the last request
}

// take hands the live response to the caller, who must close it, and detaches the
// caller from the load: a later response is closed at once.
func (l *originLoad) take() *http.Response {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := l.live
	l.live, l.ended = nil, true
	return live
}

// offer keeps a live response for the caller.
func (l *originLoad) offer(res *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = res.Body.Close() // the caller has gone
		return
	}
	l.live = res
}

// load is the cache.Loader.
func (l *originLoad) load(ctx context.Context, _ string) (cache.Loaded[*storedResponse], error) {
	since := l.lookup.cache.purges.Newest()
	previous, ok := cache.Previous[*storedResponse](ctx)
	// A purge that came after previous was read counts: since is at or behind it.
	ok = ok && l.valid(previous)
	var incarnation string
	if ok {
		incarnation = previous.incarnation
		if ok = l.lookup.matches(previous); !ok {
			l.other = previous
		}
		ok = ok && hasValidator(previous.header)
	} else {
		incarnation = rand.Text()
	}
	if !ok {
		previous = l.otherToConfirm()
	}
	res, at, err := l.ask(ctx, previous)
	if err == nil && res.StatusCode == http.StatusNotModified && previous != nil {
		if kept, fits := l.confirmed(previous, incarnation, res, at, since); fits {
			_ = res.Body.Close()
			return kept, nil
		}
		_ = res.Body.Close()
		res, at, err = l.ask(ctx, nil)
	}
	if err != nil {
		return cache.Loaded[*storedResponse]{}, err
	}
	return l.keep(res, at, since, incarnation)
}

func (l *originLoad) valid(s *storedResponse) bool {
	return l.lookup.cache.purges.valid(l.lookup.family.name, s)
}

// otherToConfirm is what the origin may confirm where the request has no stored
// response: the other one, if it has a strong tag. A response to another caller is
// never offered: origins use tags that are versions, the same for every caller.
func (l *originLoad) otherToConfirm() *storedResponse {
	if l.other == nil || l.other.status != http.StatusOK || !strings.HasPrefix(l.other.header.Get("Etag"), `"`) ||
		!l.lookup.sameCaller(l.other) || !l.valid(l.other) {
		return nil
	}
	return l.other
}

// ask sends the request, with the validators of a response to be confirmed.
func (l *originLoad) ask(ctx context.Context, previous *storedResponse) (*http.Response, messageTimes, error) {
	// A live response outlives the load, and ends with its caller.
	own, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	req := l.out.Clone(own)
	for _, name := range [...]string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		req.Header.Del(name)
	}
	if previous != nil {
		if tag := previous.header.Get("Etag"); tag != "" {
			req.Header.Set("If-None-Match", tag)
		}
		if changed := previous.header.Get("Last-Modified"); changed != "" && previous != l.other {
			req.Header.Set("If-Modified-Since", changed)
		}
	}
	at := messageTimes{sent: l.lookup.cache.now()}
	res, err := l.next.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, at, err
	}
	at.received = l.lookup.cache.now()
	body := &loadBody{ReadCloser: res.Body, stop: stop, cancel: cancel}
	res.Body = body
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = body
	l.validated, l.status = previous != nil, res.StatusCode
	l.private = privateFields(res.Header, l.lookup.target.PerCaller)
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

// keep stores a response that may be stored, and hands any other to the caller as it comes.
func (l *originLoad) keep(res *http.Response, at messageTimes, since Position, incarnation string) (cache.Loaded[*storedResponse], error) {
	p := l.lookup.target.Policy
	f, reason := l.lookup.cache.storable(p, res.StatusCode, res.Header, l.lookup.authorized, at)
	switch {
	case isServerFailure(res.StatusCode) && (reason != "" || f.lifetime <= 0):
		l.release(res, "failure")
		return cache.Loaded[*storedResponse]{}, &originError{res.StatusCode}
	case reason != "":
		return l.release(res, reason), nil
	case len(res.Trailer) > 0:
		return l.release(res, "trailer"), nil
	case res.ContentLength > p.MaxBytes:
		return l.release(res, "size"), nil
	}
	body, whole, err := readUpTo(res.Body, p.MaxBytes)
	if err != nil {
		_ = res.Body.Close()
		return cache.Loaded[*storedResponse]{}, fmt.Errorf("read response: %w", err)
	}
	if !whole {
		res.Body = &resumedBody{Reader: io.MultiReader(bytes.NewReader(body), res.Body), Closer: res.Body}
		return l.release(res, "size"), nil
	}
	_ = res.Body.Close()
	return loaded(l.stored(res.StatusCode, res.Header, body, since, incarnation, f), f), nil
}

// release hands the response to the caller alone. Other callers load for
// themselves, and for a while callers of this resource do not wait for each other.
func (l *originLoad) release(res *http.Response, reason string) cache.Loaded[*storedResponse] {
	l.mu.Lock()
	l.body.stop()
	l.unstored = reason
	l.mu.Unlock()
	l.offer(res)
	return cache.Loaded[*storedResponse]{Value: &storedResponse{}, Private: true}
}

// resumedBody is a body of which a part was read.
type resumedBody struct {
	io.Reader
	io.Closer
}

// readUpTo reads the body; whole is false where it has more than n bytes.
func readUpTo(r io.Reader, n int64) (body []byte, whole bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, n+1))
	return body, int64(len(body)) <= n, err
}

// privateFields are the response fields for the load's caller alone: those that
// no-cache and private name, and the target's.
func privateFields(h http.Header, perCaller string) http.Header {
	fields := http.Header{}
	for _, name := range append(cacheControl(h).fields(), perCaller) {
		if values, ok := h[name]; ok {
			fields[name] = values
		}
	}
	return fields
}

func (l *originLoad) stored(status int, h http.Header, body []byte, since Position, incarnation string, f freshness) *storedResponse {
	c, p := l.lookup.cache, l.lookup.target.Policy
	s := &storedResponse{
		status: status, header: l.storedHeader(h), body: body, resource: l.lookup.resource, vary: c.varyFields(p, h),
		since: since, incarnation: incarnation, age: f.age, validateEach: f.lifetime <= 0 && f.staleWhileRevalidate <= 0,
	}
	for _, name := range s.vary {
		s.varyValues = append(s.varyValues, c.fieldValue(l.lookup.header, name))
	}
	for _, line := range h[p.TagsHeader] {
		s.tags = append(s.tags, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })...)
	}
	return s
}

// storedHeader is the part of a response's header that every later client may see.
func (l *originLoad) storedHeader(h http.Header) http.Header {
	kept := h.Clone()
	RemoveHopByHop(kept)
	if omit := l.lookup.cache.o.Omit; omit != nil {
		maps.DeleteFunc(kept, func(name string, _ []string) bool { return omit(name) })
	}
	// Fields that may not be shared, or not without validation.
	for _, name := range cacheControl(h).fields() {
		delete(kept, name)
	}
	for _, name := range [...]string{"Age", "Content-Length", l.lookup.target.PerCaller, l.lookup.target.Policy.TagsHeader} {
		delete(kept, name)
	}
	return kept
}

// confirmed is the stored response, updated by a 304 (RFC 9111, section 3.2 and
// 4.3.4); fits is false where the 304 is about another one.
func (l *originLoad) confirmed(previous *storedResponse, incarnation string, res *http.Response, at messageTimes, since Position) (kept cache.Loaded[*storedResponse], fits bool) {
	tag := res.Header.Get("Etag")
	if previous == l.other && tag != "" && tag != previous.header.Get("Etag") {
		return kept, false // one tag was sent: a 304 without a tag means that one
	}
	if tag != "" && strings.TrimPrefix(tag, "W/") != strings.TrimPrefix(previous.header.Get("Etag"), "W/") {
		return kept, false
	}
	h := previous.header.Clone()
	for name, values := range res.Header {
		switch name {
		case "Content-Length", "Content-Encoding", "Content-Range", "Content-Md5": // of the 304's absent body
		default:
			h[name] = values
		}
	}
	f, reason := l.lookup.cache.storable(l.lookup.target.Policy, previous.status, h, l.lookup.authorized, at)
	if reason != "" {
		return kept, false // the origin is asked again, for this caller alone
	}
	s := l.stored(previous.status, h, previous.body, since, incarnation, f)
	if len(res.Header[l.lookup.target.Policy.TagsHeader]) == 0 {
		s.tags = previous.tags
	}
	return loaded(s, f), true
}

func loaded(s *storedResponse, f freshness) cache.Loaded[*storedResponse] {
	never := func(d time.Duration) time.Duration {
		if d <= 0 {
			return -1
		}
		return d
	}
	return cache.Loaded[*storedResponse]{
		Value: s, TTL: max(shorten(f.lifetime), alwaysStale), StaleWhileRevalidate: never(f.staleWhileRevalidate), StaleIfError: never(f.staleIfError),
	}
}

// alwaysStale is the lifetime of a response that must be validated before each use.
const alwaysStale = time.Microsecond

// shorten takes up to a twentieth off a long lifetime, so that responses that were
// loaded together do not expire together.
func shorten(d time.Duration) time.Duration {
	if d < time.Minute {
		return d
	}
	return d - time.Duration(mathrand.Float64()*float64(d)/20) //nolint:gosec // spreads load, guards nothing
}
