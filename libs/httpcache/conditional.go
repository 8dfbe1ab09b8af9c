package httpcache

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// makeNotModified makes a 304 of a 200, without the fields that describe its body.
func makeNotModified(res *http.Response) {
	res.StatusCode, res.Status, res.Body, res.ContentLength = http.StatusNotModified, "", http.NoBody, 0
	for _, name := range [...]string{"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Content-Language"} {
		delete(res.Header, name)
	}
}

// notModified evaluates If-None-Match, else If-Modified-Since (RFC 9110, section
// 13.2.2).
func notModified(request, response http.Header) bool {
	if tags, ok := request["If-None-Match"]; ok {
		own := strings.TrimPrefix(response.Get("Etag"), "W/")
		return anyTag(tags, func(tag string) bool { return tag == "*" || own != "" && strings.TrimPrefix(tag, "W/") == own })
	}
	since, ok := httpDate(request["If-Modified-Since"])
	if !ok {
		return false
	}
	changed, ok := httpDate(response["Last-Modified"])
	if !ok {
		if changed, ok = httpDate(response["Date"]); !ok {
			return false
		}
	}
	return !changed.After(since)
}

// anyTag reads lists of entity tags, which may contain quoted commas.
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

// serveRange makes a 206 of a 200 where the request asks for one range. A request
// for several gets the whole body (RFC 9110, section 14.2).
func serveRange(res *http.Response, request http.Header, body []byte) {
	spec, ok := strings.CutPrefix(request.Get("Range"), "bytes=")
	if !ok || strings.Contains(spec, ",") || !ifRangeHolds(request.Get("If-Range"), res.Header) {
		return
	}
	from, to, ok := parseRange(strings.Trim(spec, " \t"), int64(len(body)))
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

// ifRangeHolds evaluates If-Range: a strong tag, or the exact date.
func ifRangeHolds(condition string, h http.Header) bool {
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

// parseRange reads 0-99, 100- or -100 of n bytes. from is n or more where the body
// has no byte of the range.
func parseRange(spec string, n int64) (from, to int64, ok bool) {
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
