package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// reuse is one case: two requests for one URL, and whether the second is
// answered from the store.
type reuse struct {
	name   string
	route  catalog.Cache
	status int      // of the first answer; 0 is 200
	fields []string // of the first answer
	first  []string // fields of the first request
	wait   time.Duration
	second []string // fields of the second request
	stored bool
	want   int // status of the second answer; 0 is that of the first
}

func cc(value string) []string { return []string{"Cache-Control", value} }

// What may be stored, and how long it is fresh: RFC 9111, sections 3 and 4.2.
var freshnessCases = []reuse{
	{name: "nothing said", stored: false},
	{name: "nothing said, validator", fields: []string{"ETag", `"a"`}, stored: false},
	{name: "nothing said, last-modified: no guesses", fields: []string{"Last-Modified", "{-8760h}"}, stored: false},
	{name: "route ttl", route: catalog.Cache{TTL: "60s"}, wait: 50 * time.Second, stored: true},
	{name: "route ttl over", route: catalog.Cache{TTL: "30s"}, wait: 31 * time.Second, stored: false},
	{name: "route ttl, answer says less", route: catalog.Cache{TTL: "60s"}, fields: cc("max-age=10"), wait: 11 * time.Second, stored: false},
	{name: "route ttl, answer says no-store", route: catalog.Cache{TTL: "60s"}, fields: cc("no-store"), stored: false},
	{name: "route ttl, answer is expired", route: catalog.Cache{TTL: "60s"}, fields: []string{"Expires", "{-1s}"}, stored: false},
	{name: "route ttl, cache-control without freshness", route: catalog.Cache{TTL: "60s"}, fields: cc("public"), stored: true},
	{name: "route ttl, not for a 302", route: catalog.Cache{TTL: "60s"}, status: 302, stored: false},
	{name: "route ttl, not for a 500", route: catalog.Cache{TTL: "60s"}, status: 500, stored: false},
	{name: "route ttl, redirect for ever", route: catalog.Cache{TTL: "60s"}, status: 301, stored: true},
	{name: "route ttl, 404 has a tenth", route: catalog.Cache{TTL: "100s"}, status: 404, wait: 11 * time.Second, stored: false},
	{name: "negative ttl", route: catalog.Cache{NegativeTTL: "20s"}, status: 404, wait: 15 * time.Second, stored: true},
	{name: "negative ttl over", route: catalog.Cache{NegativeTTL: "20s"}, status: 410, wait: 21 * time.Second, stored: false},
	{name: "negative ttl is not for a 200", route: catalog.Cache{NegativeTTL: "20s"}, stored: false},
	{name: "max-age", fields: cc("max-age=60"), wait: 50 * time.Second, stored: true},
	{name: "max-age over", fields: cc("max-age=30"), wait: 30 * time.Second, stored: false},
	{name: "max-age 0", fields: cc("max-age=0"), stored: false},
	{name: "max-age, upper case", fields: cc("MaX-AgE=50"), stored: true},
	{name: "max-age, quoted", fields: cc(`max-age="50"`), stored: true},
	{name: "max-age, negative", fields: cc("max-age=-1"), stored: false},
	{name: "max-age, no number", fields: cc("max-age=soon"), stored: false},
	{name: "max-age, no value", fields: cc("max-age"), stored: false},
	{name: "max-age, a fraction", fields: cc("max-age=50.5"), stored: false},
	{name: "max-age, huge", fields: cc("max-age=99999999999999999999"), wait: time.Hour, stored: true},
	{name: "max-age, space before =", fields: cc("max-age =50"), stored: false},
	{name: "max-age, space behind =", fields: cc("max-age= 50"), stored: false},
	{name: "max-age, first of two", fields: cc("max-age=50, max-age=0"), stored: true},
	{name: "max-age, first of two lines", fields: append(cc("max-age=0"), cc("max-age=50")...), stored: false},
	{name: "max-age in a quoted string of another", fields: cc(`extension="max-age=50"`), stored: false},
	{name: "max-age behind a quoted comma", fields: cc(`extension="a, b", max-age=50`), stored: true},
	{name: "max-age behind a quoted escape", fields: cc(`extension="a\", no-store", max-age=50`), stored: true},
	{name: "unknown directive", fields: cc("max-age=50, whatever=1, other"), stored: true},
	{name: "immutable changes nothing", fields: cc("max-age=10, immutable"), wait: 11 * time.Second, stored: false},
	{name: "s-maxage before max-age", fields: cc("max-age=0, s-maxage=50"), stored: true},
	{name: "s-maxage 0 before max-age", fields: cc("s-maxage=0, max-age=50"), stored: false},
	{name: "max-age before expires", fields: []string{"Cache-Control", "max-age=0", "Expires", "{+60s}"}, stored: false},
	{name: "max-age before expires in the past", fields: []string{"Cache-Control", "max-age=60", "Expires", "{-60s}"}, stored: true},
	{name: "expires", fields: []string{"Expires", "{+60s}"}, wait: 50 * time.Second, stored: true},
	{name: "expires over", fields: []string{"Expires", "{+30s}"}, wait: 31 * time.Second, stored: false},
	{name: "expires 0", fields: []string{"Expires", "0"}, stored: false},
	{name: "expires, no date", fields: []string{"Expires", "tomorrow"}, stored: false},
	{name: "expires, zone in lower case", fields: []string{"Expires", "Fri, 06 Nov 2026 08:49:37 gmt"}, stored: true},
	{name: "expires, day and month in upper case", fields: []string{"Expires", "FRI, 06 NOV 2026 08:49:37 GMT"}, stored: true},
	{name: "expires, rfc 850, zone in lower case", fields: []string{"Expires", "Friday, 06-Nov-26 08:49:37 gmt"}, stored: true},
	{name: "expires, rfc 850, other zone", fields: []string{"Expires", "Friday, 06-Nov-26 08:49:37 EST"}, stored: false},
	{name: "expires, other zone", fields: []string{"Expires", "Fri, 06 Nov 2026 08:49:37 UTC"}, stored: false},
	{name: "expires, asctime", fields: []string{"Expires", "Fri Nov  6 08:49:37 2026"}, stored: true},
	{name: "expires, nothing", fields: []string{"Expires", ""}, stored: false},
	{name: "expires, rfc 850", fields: []string{"Expires", "Sunday, 06-Nov-94 08:49:37 GMT"}, stored: false},
	{name: "expires counts from date", fields: []string{"Date", "{-40s}", "Expires", "{+20s}"}, wait: 10 * time.Second, stored: true},
	{name: "old by date", fields: []string{"Date", "{-50s}", "Cache-Control", "max-age=40"}, stored: false},
	{name: "nearly old by date", fields: []string{"Date", "{-50s}", "Cache-Control", "max-age=70"}, wait: 10 * time.Second, stored: true},
	{name: "old by date and time", fields: []string{"Date", "{-50s}", "Cache-Control", "max-age=70"}, wait: 21 * time.Second, stored: false},
	{name: "old by age", fields: []string{"Age", "50", "Cache-Control", "max-age=40"}, stored: false},
	{name: "nearly old by age", fields: []string{"Age", "50", "Cache-Control", "max-age=70"}, wait: 10 * time.Second, stored: true},
	{name: "old by age and time", fields: []string{"Age", "50", "Cache-Control", "max-age=70"}, wait: 21 * time.Second, stored: false},
	{name: "age, no number, is ignored", fields: []string{"Age", "old", "Cache-Control", "max-age=70"}, stored: true},
	{name: "age, first of a list", fields: []string{"Age", "60, 1", "Cache-Control", "max-age=50"}, stored: false},
	{name: "no-store", fields: cc("no-store, max-age=60"), stored: false},
	{name: "no-store, upper case", fields: cc("No-StOrE, max-age=60"), stored: false},
	{name: "no-store on a line of its own", fields: append(cc("max-age=60"), cc("no-store")...), stored: false},
	{name: "private", fields: cc("private, max-age=60"), stored: false},
	{name: "private field only", fields: append(cc(`private="x-secret", max-age=60`), "X-Secret", "a"), stored: true},
	{name: "no-cache", fields: append(cc("no-cache, max-age=60"), "ETag", `"a"`), wait: time.Second, stored: false},
	{name: "no-cache field only", fields: append(cc(`no-cache="x-secret", max-age=60`), "X-Secret", "a"), stored: true},
	{name: "pragma in an answer means nothing beside cache-control", fields: append(cc("max-age=60"), "Pragma", "no-cache"), stored: true},
	{name: "pragma in an answer alone", route: catalog.Cache{TTL: "60s"}, fields: []string{"Pragma", "no-cache"}, stored: false},
	{name: "public alone", fields: cc("public"), stored: false},
	{name: "must-understand of what is understood", fields: cc("max-age=60, no-store, must-understand"), stored: true},
	{name: "must-understand of what is not", status: 299, fields: cc("max-age=60, must-understand"), stored: false},
	{name: "set-cookie", fields: append(cc("max-age=60, public"), "Set-Cookie", "a=b"), stored: false},
	{name: "event stream", fields: append(cc("max-age=60"), "Content-Type", "text/event-stream"), stored: false},
	{name: "content-range of a whole answer means nothing", fields: append(cc("max-age=60"), "Content-Range", "bytes 0-1/9"), stored: true},
	{name: "content-range of a 416", status: 416, fields: append(cc("max-age=60"), "Content-Range", "bytes */9"), stored: false},
	{name: "vary *", fields: append(cc("max-age=60"), "Vary", "*"), stored: false},
	{name: "vary * in a list", fields: append(cc("max-age=60"), "Vary", "accept, *"), stored: false},
	{name: "too large", route: catalog.Cache{MaxObjectBytes: 3}, fields: append(cc("max-age=60"), "X-Long", "yes"), stored: false},
}

func init() {
	for _, status := range []int{200, 203, 204, 300, 301, 302, 303, 307, 308, 299, 400, 403, 404, 405, 410, 414, 429, 451, 500, 501, 502, 503, 504, 599} {
		freshnessCases = append(freshnessCases, reuse{
			name: "explicit freshness of a " + http.StatusText(status), status: status, fields: cc("max-age=60"), stored: true,
		})
	}
	for _, status := range []int{302, 303, 307, 400, 403, 429, 451, 599} {
		freshnessCases = append(freshnessCases, reuse{
			name: "no freshness of a " + http.StatusText(status), route: catalog.Cache{TTL: "60s"}, status: status, stored: false,
		})
	}
}

// What a request says of stored answers: RFC 9111, sections 3.5, 4.1, 5.2.1, 5.4.
var requestCases = []reuse{
	{name: "request no-store", fields: cc("max-age=60"), second: cc("no-store"), stored: false},
	{name: "first request no-store", fields: cc("max-age=60"), first: cc("no-store"), stored: false},
	{name: "request no-cache", fields: cc("max-age=60"), second: cc("no-cache"), stored: false},
	{name: "request pragma", fields: cc("max-age=60"), second: []string{"Pragma", "no-cache"}, stored: false},
	{name: "request pragma beside cache-control", fields: cc("max-age=60"), second: []string{"Pragma", "no-cache", "Cache-Control", "max-stale"}, stored: true},
	{name: "request max-age 0", fields: cc("max-age=60"), second: cc("max-age=0"), wait: time.Second, stored: false},
	{name: "request max-age young enough", fields: cc("max-age=60"), second: cc("max-age=20"), wait: 10 * time.Second, stored: true},
	{name: "request max-age too old", fields: cc("max-age=60"), second: cc("max-age=20"), wait: 21 * time.Second, stored: false},
	{name: "request max-age counts age", fields: append(cc("max-age=60"), "Age", "30"), second: cc("max-age=35"), wait: 6 * time.Second, stored: false},
	{name: "request min-fresh", fields: cc("max-age=60"), second: cc("min-fresh=20"), wait: 30 * time.Second, stored: true},
	{name: "request min-fresh too stale", fields: cc("max-age=60"), second: cc("min-fresh=40"), wait: 30 * time.Second, stored: false},
	{name: "request max-stale", fields: cc("max-age=10"), second: cc("max-stale=1000"), wait: 11 * time.Second, stored: true},
	{name: "request max-stale, however stale", fields: cc("max-age=10"), second: cc("max-stale"), wait: 5 * time.Minute, stored: true},
	{name: "request max-stale, not so stale", fields: cc("max-age=10"), second: cc("max-stale=5"), wait: 16 * time.Second, stored: false},
	{name: "request max-stale, no number", fields: cc("max-age=10"), second: cc("max-stale=long"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale and max-age", fields: cc("max-age=10"), second: cc("max-stale=1000, max-age=5"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale and no-cache", fields: cc("max-age=10"), second: cc("max-stale=1000, no-cache"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale, answer must be revalidated", fields: cc("max-age=10, must-revalidate"), second: cc("max-stale=1000"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale, answer must be by proxies", fields: cc("max-age=10, proxy-revalidate"), second: cc("max-stale=1000"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale, answer has s-maxage", fields: cc("s-maxage=10"), second: cc("max-stale=1000"), wait: 11 * time.Second, stored: false},
	{name: "request max-stale of what is not stored", fields: cc("no-store"), second: cc("max-stale=1000"), stored: false},
	{name: "only-if-cached", fields: cc("max-age=60"), second: cc("only-if-cached"), stored: true},
	{name: "only-if-cached of nothing", fields: cc("no-store"), second: cc("only-if-cached"), stored: true, want: http.StatusGatewayTimeout},
	{name: "only-if-cached of what is over", fields: cc("max-age=10"), second: cc("only-if-cached"), wait: 11 * time.Second, stored: true, want: http.StatusGatewayTimeout},
	{name: "authorization", fields: cc("max-age=60"), first: []string{"Authorization", "Basic YTpi"}, second: []string{"Authorization", "Basic YTpi"}, stored: false},
	{name: "authorization, then without", fields: cc("max-age=60"), first: []string{"Authorization", "Basic YTpi"}, stored: false},
	{name: "authorization, public", fields: cc("max-age=60, public"), first: []string{"Authorization", "Basic YTpi"}, second: []string{"Authorization", "Basic Yzpk"}, stored: true},
	{name: "authorization, public, then without", fields: cc("max-age=60, public"), first: []string{"Authorization", "Basic YTpi"}, stored: true},
	{name: "authorization, s-maxage, then without", fields: cc("s-maxage=60"), first: []string{"Authorization", "Basic YTpi"}, stored: true},
	{name: "authorization, must-revalidate, then without", fields: cc("max-age=60, must-revalidate"), first: []string{"Authorization", "Basic YTpi"}, stored: true},
	{name: "without, public, then authorization", fields: cc("max-age=60, public"), second: []string{"Authorization", "Basic YTpi"}, stored: true},
	{name: "without, then authorization", fields: cc("max-age=60"), second: []string{"Authorization", "Basic YTpi"}, stored: false},
	{name: "without, public, then authorization and no-cache", fields: cc("max-age=60, public"), second: []string{"Authorization", "Basic YTpi", "Cache-Control", "no-cache"}, stored: false},
	{name: "authorization, s-maxage", fields: cc("s-maxage=60"), first: []string{"Authorization", "Basic YTpi"}, second: []string{"Authorization", "Basic Yzpk"}, stored: true},
	{name: "authorization, must-revalidate", fields: cc("max-age=60, must-revalidate"), first: []string{"Authorization", "Basic YTpi"}, second: []string{"Authorization", "Basic Yzpk"}, stored: true},
	{name: "vary, same", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "de"}, second: []string{"Accept-Language", "de"}, stored: true},
	{name: "vary, other", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "de"}, second: []string{"Accept-Language", "fr"}, stored: false},
	{name: "vary, absent", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "de"}, stored: false},
	{name: "vary, absent both", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), stored: true},
	{name: "vary, empty is not absent", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), second: []string{"Accept-Language", ""}, stored: false},
	{name: "vary, whitespace", fields: append(cc("max-age=60"), "Vary", "X-List"), first: []string{"X-List", "a,b"}, second: []string{"X-List", "a,  b"}, stored: true},
	{name: "vary, lines", fields: append(cc("max-age=60"), "Vary", "X-List"), first: []string{"X-List", "a, b"}, second: []string{"X-List", "a", "X-List", "b"}, stored: true},
	{name: "vary, order tells apart", fields: append(cc("max-age=60"), "Vary", "X-List"), first: []string{"X-List", "a, b"}, second: []string{"X-List", "b, a"}, stored: false},
	{name: "vary, name in lower case", fields: append(cc("max-age=60"), "Vary", "x-list"), first: []string{"X-List", "a"}, second: []string{"X-List", "b"}, stored: false},
	{name: "vary, languages, case", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "en-GB, de;q=0.5"}, second: []string{"Accept-Language", "EN-gb, De;Q=0.5"}, stored: true},
	{name: "vary, languages, order tells apart", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "en, de"}, second: []string{"Accept-Language", "de, en"}, stored: false},
	{name: "vary, languages, what looks like a letter", fields: append(cc("max-age=60"), "Vary", "Accept-Language"), first: []string{"Accept-Language", "\u212ao"}, second: []string{"Accept-Language", "ko"}, stored: false},
	{name: "vary, codings, case", fields: append(cc("max-age=60"), "Vary", "Accept-Encoding"), first: []string{"Accept-Encoding", "GZIP"}, second: []string{"Accept-Encoding", "gzip"}, stored: true},
	{name: "vary, others, case tells apart", fields: append(cc("max-age=60"), "Vary", "X-List"), first: []string{"X-List", "a"}, second: []string{"X-List", "A"}, stored: false},
	{name: "vary, two names, one differs", fields: append(cc("max-age=60"), "Vary", "X-A, X-B"), first: []string{"X-A", "1", "X-B", "1"}, second: []string{"X-A", "1", "X-B", "2"}, stored: false},
	{name: "vary, two lines, one differs", fields: append(cc("max-age=60"), "Vary", "X-A", "Vary", "X-B"), first: []string{"X-A", "1", "X-B", "1"}, second: []string{"X-A", "2", "X-B", "1"}, stored: false},
	{name: "vary, others do not matter", fields: append(cc("max-age=60"), "Vary", "X-A"), first: []string{"X-A", "1", "X-B", "1"}, second: []string{"X-A", "1", "X-B", "2"}, stored: true},
	{name: "route header, other", route: catalog.Cache{Headers: []string{"x-shop"}}, fields: cc("max-age=60"), first: []string{"X-Shop", "1"}, second: []string{"X-Shop", "2"}, stored: false},
	{name: "route header, same", route: catalog.Cache{Headers: []string{"x-shop"}}, fields: cc("max-age=60"), first: []string{"X-Shop", "1"}, second: []string{"X-Shop", "1"}, stored: true},
	{name: "if-match goes to the service", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-Match", `"a"`}, stored: false},
	{name: "if-unmodified-since goes to the service", fields: cc("max-age=60"), second: []string{"If-Unmodified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"}, stored: false},
}

// Conditions and ranges on what is stored: RFC 9110, sections 13 and 14.
var conditionCases = []reuse{
	{name: "if-none-match", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `"a"`}, stored: true, want: 304},
	{name: "if-none-match, bytes beyond ascii", fields: append(cc("max-age=60"), "ETag", "\"\xfc\""), second: []string{"If-None-Match", "\"\xfc\""}, stored: true, want: 304},
	{name: "if-none-match, other", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `"b"`}, stored: true},
	{name: "if-none-match, weak for strong", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `W/"a"`}, stored: true, want: 304},
	{name: "if-none-match, strong for weak", fields: append(cc("max-age=60"), "ETag", `W/"a"`), second: []string{"If-None-Match", `"a"`}, stored: true, want: 304},
	{name: "if-none-match, one of a list", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `"x", "a" , "y"`}, stored: true, want: 304},
	{name: "if-none-match, comma in a tag", fields: append(cc("max-age=60"), "ETag", `"a,b"`), second: []string{"If-None-Match", `"x", "a,b"`}, stored: true, want: 304},
	{name: "if-none-match, quotes that do not close", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `"x,"a",y"`}, stored: true},
	{name: "if-none-match *", fields: cc("max-age=60"), second: []string{"If-None-Match", `*`}, stored: true, want: 304},
	{name: "if-none-match without a tag", fields: cc("max-age=60"), second: []string{"If-None-Match", `"a"`}, stored: true},
	{name: "if-none-match before if-modified-since", fields: append(cc("max-age=60"), "ETag", `"a"`, "Last-Modified", "{-1h}"), second: []string{"If-None-Match", `"b"`, "If-Modified-Since", "{+0s}"}, stored: true},
	{name: "if-modified-since", fields: append(cc("max-age=60"), "Last-Modified", "{-1h}"), second: []string{"If-Modified-Since", "{-30m}"}, stored: true, want: 304},
	{name: "if-modified-since, same instant", fields: append(cc("max-age=60"), "Last-Modified", "{-1h}"), second: []string{"If-Modified-Since", "{-1h}"}, stored: true, want: 304},
	{name: "if-modified-since, changed", fields: append(cc("max-age=60"), "Last-Modified", "{-1h}"), second: []string{"If-Modified-Since", "{-2h}"}, stored: true},
	{name: "if-modified-since, no last-modified", fields: cc("max-age=60"), second: []string{"If-Modified-Since", "{+1s}"}, stored: true, want: 304},
	{name: "if-modified-since, no date", fields: append(cc("max-age=60"), "Last-Modified", "{-1h}"), second: []string{"If-Modified-Since", "now"}, stored: true},
	{name: "condition on a 404", status: 404, fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"If-None-Match", `"a"`}, stored: true},
	{name: "range", fields: cc("max-age=60"), second: []string{"Range", "bytes=0-0"}, stored: true, want: 206},
	{name: "range, open", fields: cc("max-age=60"), second: []string{"Range", "bytes=0-"}, stored: true, want: 206},
	{name: "range, suffix", fields: cc("max-age=60"), second: []string{"Range", "bytes=-1"}, stored: true, want: 206},
	{name: "range, nothing there", fields: cc("max-age=60"), second: []string{"Range", "bytes=10-"}, stored: true, want: 416},
	{name: "range, last 0 bytes", fields: cc("max-age=60"), second: []string{"Range", "bytes=-0"}, stored: true, want: 416},
	{name: "range, several", fields: cc("max-age=60"), second: []string{"Range", "bytes=0-0,0-0"}, stored: true},
	{name: "range, no sense", fields: cc("max-age=60"), second: []string{"Range", "bytes=a-b"}, stored: true},
	{name: "range, other unit", fields: cc("max-age=60"), second: []string{"Range", "lines=0-1"}, stored: true},
	{name: "range, backwards", fields: cc("max-age=60"), second: []string{"Range", "bytes=1-0"}, stored: true},
	{name: "if-range, same", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"Range", "bytes=0-0", "If-Range", `"a"`}, stored: true, want: 206},
	{name: "if-range, other", fields: append(cc("max-age=60"), "ETag", `"a"`), second: []string{"Range", "bytes=0-0", "If-Range", `"b"`}, stored: true},
	{name: "if-range, weak", fields: append(cc("max-age=60"), "ETag", `W/"a"`), second: []string{"Range", "bytes=0-0", "If-Range", `W/"a"`}, stored: true},
	{name: "range of what is not stored", fields: cc("no-store"), second: []string{"Range", "bytes=0-0"}, stored: false},
}

func TestReuse(t *testing.T) {
	t.Parallel()
	for group, cases := range map[string][]reuse{"freshness": freshnessCases, "requests": requestCases, "conditions": conditionCases} {
		for i, c := range cases {
			t.Run(group+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				cases[i].check(t)
			})
		}
	}
	if n := len(freshnessCases) + len(requestCases) + len(conditionCases); n < 120 {
		t.Errorf("only %d cases", n)
	}
}

func (c *reuse) check(t *testing.T) {
	s := newCacheStand(t, c.route, nil)
	status := c.status
	if status == 0 {
		status = http.StatusOK
	}
	s.answers(status, c.fields...)
	if c.route.MaxObjectBytes > 0 {
		s.asked.Store(100_000) // the body is the number
	}
	if a := s.get("/demo/a", c.first...); a.StatusCode != status {
		t.Fatalf("the first answer is %d, want %d: %v", a.StatusCode, status, a.Header)
	}
	asked := s.asked.Load()
	s.clock.advance(c.wait)
	second := make([]string, len(c.second))
	for i := range second {
		second[i] = s.dates(c.second[i])
	}
	a := s.get("/demo/a", second...)
	if stored := s.asked.Load() == asked; stored != c.stored {
		t.Errorf("the second answer is from the store: %v, want %v; %d %v", stored, c.stored, a.StatusCode, a.Header)
	}
	want := c.want
	if want == 0 {
		want = status
	}
	if a.StatusCode != want {
		t.Errorf("the second answer is %d, want %d: %v", a.StatusCode, want, a.Header)
	}
}
