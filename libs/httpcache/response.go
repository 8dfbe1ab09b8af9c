package httpcache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// addCacheStatus adds this cache's member of Cache-Status (RFC 9211).
func addCacheStatus(h http.Header, status string) { h.Add("Cache-Status", "sluice; "+status) }

func hitStatus(r *cache.Result[*storedResponse]) string {
	return "hit; ttl=" + strconv.FormatInt(wholeSeconds(r.Fresh), 10)
}

// wholeSeconds rounds down: a response that is stale by less than a second is stale.
func wholeSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		n--
	}
	return n
}

// cacheStatus is the Cache-Status of what the load brought; variant says that the
// resource had a response, but not for this request.
func (l *originLoad) cacheStatus(r *cache.Result[*storedResponse], variant bool) string {
	switch r.Source {
	case cache.Coalesced:
		return "fwd=miss; collapsed; ttl=" + strconv.FormatInt(wholeSeconds(r.Fresh), 10)
	case cache.Stale:
		if r.Err != nil {
			return hitStatus(r) + "; detail=stale-if-error"
		}
		return hitStatus(r)
	case cache.HitL1, cache.HitL2:
		return hitStatus(r)
	}
	return fmt.Sprintf("fwd=%s; fwd-status=%d; stored; ttl=%d", l.forwardReason(variant), l.status, wholeSeconds(r.Fresh))
}

func (l *originLoad) forwardReason(variant bool) string {
	switch {
	case l.lookup.directives.noCache:
		return "request"
	case l.validated:
		return "stale"
	case variant:
		return "vary-miss"
	}
	return "uri-miss"
}

// deliver hands a response that is not stored to the load's caller, as it comes. It
// is cancelled with the caller from now on.
func (l *originLoad) deliver(req *http.Request, live *http.Response) *http.Response {
	context.AfterFunc(req.Context(), l.body.cancel)
	live.Request = req
	delete(live.Header, l.lookup.target.Policy.TagsHeader)
	addCacheStatus(live.Header, fmt.Sprintf("fwd=%s; fwd-status=%d; detail=%s", l.forwardReason(false), live.StatusCode, l.unstored))
	if live.StatusCode == http.StatusOK && notModified(req.Header, live.Header) {
		_ = live.Body.Close()
		makeNotModified(live)
	}
	return live
}

// serve makes the client's response of a stored one: 304 and 206 where the request
// asks for them.
func (l *Lookup) serve(req *http.Request, r *cache.Result[*storedResponse], status string) *http.Response {
	s := r.Value
	res := &http.Response{
		StatusCode: s.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: s.header.Clone(), Request: req,
		Body: io.NopCloser(bytes.NewReader(s.body)), ContentLength: int64(len(s.body)),
	}
	if age := s.age + max(0, r.Age); age >= time.Second || r.Source != cache.Miss {
		res.Header["Age"] = []string{strconv.FormatInt(wholeSeconds(age), 10)}
	}
	addCacheStatus(res.Header, status)
	switch {
	case s.status == http.StatusOK && notModified(req.Header, s.header):
		makeNotModified(res)
		return res
	case s.status == http.StatusOK && req.Method == http.MethodGet:
		serveRange(res, req.Header, s.body)
	}
	if bodyAllowed(res.StatusCode) {
		res.Header["Content-Length"] = []string{strconv.FormatInt(res.ContentLength, 10)}
	}
	if req.Method == http.MethodHead {
		res.Body = http.NoBody
	}
	return res
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
