package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// headerCacheStatus is RFC 9211's; each cache on the way adds its part.
const headerCacheStatus = "Cache-Status"

func tell(h http.Header, status string) { h.Add(headerCacheStatus, "sluice; "+status) }

func hitStatus(r *cache.Result[*storedAnswer]) string {
	return "hit; ttl=" + strconv.FormatInt(seconds(r.Fresh), 10)
}

// seconds are whole ones, rounded down: what is a little stale is stale.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		n--
	}
	return n
}

// told is the Cache-Status of what a fetch brought; variant says that the
// resource had an answer, but not for this request.
func (l *answerLoad) told(r *cache.Result[*storedAnswer], variant bool) string {
	switch r.Source {
	case cache.Coalesced:
		return "fwd=miss; collapsed; ttl=" + strconv.FormatInt(seconds(r.Fresh), 10)
	case cache.Stale:
		if r.Err != nil {
			return hitStatus(r) + "; detail=stale-if-error"
		}
		return hitStatus(r)
	case cache.HitL1, cache.HitL2:
		return hitStatus(r)
	}
	return fmt.Sprintf("fwd=%s; fwd-status=%d; stored; ttl=%d", l.forwarded(variant), l.status, seconds(r.Fresh))
}

func (l *answerLoad) forwarded(variant bool) string {
	switch {
	case l.plan.wants.validated:
		return "request"
	case l.prior:
		return "stale"
	case variant:
		return "vary-miss"
	}
	return "uri-miss"
}

// deliver is an answer that is not stored, as it comes, for the caller of the
// load. The caller's end is now the answer's.
func (l *answerLoad) deliver(req *http.Request, live *http.Response) *http.Response {
	context.AfterFunc(req.Context(), l.body.cancel)
	live.Request = req
	delete(live.Header, l.plan.policy.tagsHeader)
	tell(live.Header, fmt.Sprintf("fwd=%s; fwd-status=%d; detail=%s", l.forwarded(false), live.StatusCode, l.unstored))
	if live.StatusCode == http.StatusOK && unchanged(req.Header, live.Header) {
		_ = live.Body.Close()
		notModified(live)
	}
	return live
}

// serve makes an answer of a stored one: 304 and 206 where the request asks for
// them.
func (p *cachePlan) serve(req *http.Request, r *cache.Result[*storedAnswer], status string) *http.Response {
	s := r.Value
	res := &http.Response{
		StatusCode: s.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: s.header.Clone(), Request: req,
		Body: io.NopCloser(bytes.NewReader(s.body)), ContentLength: int64(len(s.body)),
	}
	if age := s.age + max(0, r.Age); age >= time.Second || r.Source != cache.Miss {
		res.Header["Age"] = []string{strconv.FormatInt(seconds(age), 10)}
	}
	tell(res.Header, status)
	switch {
	case s.status == http.StatusOK && unchanged(req.Header, s.header):
		notModified(res)
		return res
	case s.status == http.StatusOK && req.Method == http.MethodGet:
		part(res, req.Header, s.body)
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

// notModified makes a 304 of a 200: what describes its body goes.
func notModified(res *http.Response) {
	res.StatusCode, res.Status, res.Body, res.ContentLength = http.StatusNotModified, "", http.NoBody, 0
	for _, name := range [...]string{"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Content-Language"} {
		delete(res.Header, name)
	}
}

// unchanged evaluates If-None-Match, else If-Modified-Since (RFC 9110, section
// 13.2.2).
func unchanged(request, answer http.Header) bool {
	if tags, ok := request["If-None-Match"]; ok {
		own := strings.TrimPrefix(answer.Get("Etag"), "W/")
		return anyTag(tags, func(tag string) bool { return tag == "*" || own != "" && strings.TrimPrefix(tag, "W/") == own })
	}
	since, ok := httpDate(request["If-Modified-Since"])
	if !ok {
		return false
	}
	changed, ok := httpDate(answer["Last-Modified"])
	if !ok {
		if changed, ok = httpDate(answer["Date"]); !ok {
			return false
		}
	}
	return !changed.After(since)
}

// anyTag reads lists of entity tags, whose quotes may hold commas.
func anyTag(lines []string, is func(tag string) bool) bool {
	for _, s := range lines {
		for s = strings.TrimLeft(s, " \t,"); s != ""; s = strings.TrimLeft(s, " \t,") {
			open := strings.IndexByte(s, '"')
			comma := strings.IndexByte(s, ',')
			end := len(s)
			if open >= 0 && (comma < 0 || open < comma) {
				if n := strings.IndexByte(s[open+1:], '"'); n >= 0 {
					end = open + n + 2
				}
			} else if comma >= 0 {
				end = comma
			}
			if is(strings.TrimRight(s[:end], " \t")) {
				return true
			}
			s = s[end:]
		}
	}
	return false
}

// part makes a 206 of a 200 where the request asks for one range; a list of them
// is answered whole (RFC 9110, section 14.2).
func part(res *http.Response, request http.Header, body []byte) {
	spec, ok := strings.CutPrefix(request.Get("Range"), "bytes=")
	if !ok || strings.Contains(spec, ",") || !sameAs(request.Get("If-Range"), res.Header) {
		return
	}
	from, to, ok := bounds(strings.Trim(spec, " \t"), int64(len(body)))
	switch {
	case !ok:
		return
	case from >= int64(len(body)):
		res.StatusCode, res.Status, res.Body, res.ContentLength = http.StatusRequestedRangeNotSatisfiable, "", http.NoBody, 0
		res.Header["Content-Range"] = []string{fmt.Sprintf("bytes */%d", len(body))}
		return
	}
	res.StatusCode, res.Status = http.StatusPartialContent, ""
	res.Header["Content-Range"] = []string{fmt.Sprintf("bytes %d-%d/%d", from, to, len(body))}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body[from:to+1])), to+1-from
}

// sameAs evaluates If-Range: a strong tag, or the exact date.
func sameAs(condition string, h http.Header) bool {
	switch {
	case condition == "":
		return true
	case strings.HasPrefix(condition, `"`):
		return condition == h.Get("Etag")
	}
	at, err := http.ParseTime(condition)
	changed, ok := httpDate(h["Last-Modified"])
	return err == nil && ok && at.Equal(changed)
}

// bounds reads 0-99, 100- or -100 of n bytes. from is n or more where there is
// nothing of it.
func bounds(spec string, n int64) (from, to int64, ok bool) {
	left, right, ok := strings.Cut(spec, "-")
	if !ok {
		return 0, 0, false
	}
	if left == "" {
		last, err := strconv.ParseInt(right, 10, 64)
		if err != nil || last < 0 {
			return 0, 0, false
		}
		if last == 0 {
			return n, n, true
		}
		return max(0, n-last), n - 1, n > 0
	}
	from, err := strconv.ParseInt(left, 10, 64)
	if err != nil || from < 0 {
		return 0, 0, false
	}
	if right == "" {
		return from, n - 1, true
	}
	to, err = strconv.ParseInt(right, 10, 64)
	if err != nil || to < from {
		return 0, 0, false
	}
	return from, min(to, n-1), true
}
