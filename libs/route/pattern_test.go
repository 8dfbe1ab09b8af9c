package route_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/route"
)

func must(t interface{ Fatalf(string, ...any) }, pattern string) route.Pattern {
	p, err := route.Parse(pattern)
	if err != nil {
		t.Fatalf("Parse(%q): %v", pattern, err)
	}
	return p
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, method, path string
		want                  bool
	}{
		{"GET /pay", "GET", "/pay", true}, {"GET /pay", "HEAD", "/pay", true}, {"GET /pay", "POST", "/pay", false},
		{"HEAD /pay", "GET", "/pay", false}, {"/pay", "PURGE", "/pay", true}, {"GET /pay", "GET", "/pay/", false},
		{"/pay/", "GET", "/pay/", true}, {"/pay/", "GET", "/pay/a/b", true}, {"/pay/", "GET", "/pay", false},
		{"/pay/{$}", "GET", "/pay/", true}, {"/pay/{$}", "GET", "/pay/a", false},
		{"/pay/{id}", "GET", "/pay/7", true}, {"/pay/{id}", "GET", "/pay/", false}, {"/pay/{id}", "GET", "/pay/7/x", false},
		{"/pay/{id}", "GET", "/pay/a%2Fb", true}, {"/pay/a%2Fb", "GET", "/pay/a%2Fb", true}, {"/pay/a/b", "GET", "/pay/a%2Fb", false},
		{"/pay/{rest...}", "GET", "/pay/", true}, {"/pay/{rest...}", "GET", "/pay/a/b", true},
		{"/{x}/y", "GET", "/a/y", true}, {"/", "GET", "/anything", true}, {"/{$}", "GET", "/", true}, {"/{$}", "GET", "/a", false},
		{"/ä b", "GET", "/%C3%A4%20b", true}, {"/a;b", "GET", "/a%3Bb", true},
	} {
		if got := must(t, tc.pattern).Matches(tc.method, tc.path); got != tc.want {
			t.Errorf("%q matches %s %s: %t, want %t", tc.pattern, tc.method, tc.path, got, tc.want)
		}
	}
	if (route.Pattern{}).Matches("GET", "/") {
		t.Error("the zero pattern matches")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for pattern, says := range map[string]string{
		"": "METHOD /path", "GET": "slash", "GET pay": "slash", "G(T /x": "HTTP method", "example.com/x": "slash",
		"GET example.com/x": "slash", "/a//b": "two slashes", "/a/../b": "never matches", "/./": "never matches", "/%2e": "never matches",
		"/{a}b": "whole segment", "/b{a}": "whole segment", "/{": "whole segment", "/{}": "identifier", "/{a-b}": "identifier",
		"/{1a}": "identifier", "/{a...}/b": "at the end", "/{$}/b": "at the end", "/{a}/{a}": "twice", "/%zz": "percent",
	} {
		if _, err := route.Parse(pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Parse(%q): %v, want it to say %q", pattern, err, says)
		}
	}
}

func TestCanonicalText(t *testing.T) {
	t.Parallel()
	p := must(t, "GET \t /a/{id}")
	if p.String() != "GET /a/{id}" || p.Method() != "GET" || p.Path() != "/a/{id}" {
		t.Errorf("%q, %q, %q", p, p.Method(), p.Path())
	}
	if p := must(t, "/a"); p.String() != "/a" || p.Path() != "/a" {
		t.Errorf("%q, %q", p, p.Path())
	}
}

var drawPattern = rapid.Custom(func(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(rapid.SampledFrom([]string{"", "GET ", "HEAD ", "POST "}).Draw(t, "method"))
	for i := range rapid.IntRange(0, 3).Draw(t, "segments") {
		b.WriteString("/" + rapid.SampledFrom([]string{"a", "b", "c%2Fd", "{" + string(rune('x'+i)) + "}"}).Draw(t, "segment"))
	}
	end := rapid.SampledFrom([]string{"", "/", "/{$}", "/{r...}"}).Draw(t, "end")
	if !strings.Contains(b.String(), "/") && end == "" {
		end = "/"
	}
	return b.String() + end
})

var drawPath = rapid.Custom(func(t *rapid.T) string {
	segments := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "c%2Fd"}), 0, 4).Draw(t, "path")
	p := "/" + strings.Join(segments, "/")
	if len(segments) > 0 && rapid.Bool().Draw(t, "slash") {
		p += "/"
	}
	return p
})

// One pattern matches what net/http.ServeMux says it matches.
func TestMatchesEqualsServeMux(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, path := drawPattern.Draw(t, "pattern"), drawPath.Draw(t, "path")
		method := rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "method")
		want := false
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { want = true })
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
		if got := must(t, pattern).Matches(method, path); got != want {
			t.Fatalf("%q matches %s %s: %t, ServeMux says %t", pattern, method, path, got, want)
		}
	})
}

// Of two patterns where ServeMux prefers one, Compare puts that one first.
func TestCompareEqualsServeMux(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPattern.Draw(t, "a"), drawPattern.Draw(t, "b")
		mux := http.NewServeMux()
		if conflicts(mux, a, b) {
			return
		}
		method, path := rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "method"), drawPath.Draw(t, "path")
		p, q := must(t, a), must(t, b)
		if !p.Matches(method, path) || !q.Matches(method, path) {
			return
		}
		first := a
		if route.Compare(q, p) < 0 {
			first = b
		}
		if _, want := mux.Handler(httptest.NewRequest(method, path, nil)); want != first {
			t.Fatalf("%s %s: %q before the other of %q, %q; ServeMux prefers %q", method, path, first, a, b, want)
		}
	})
}

func conflicts(mux *http.ServeMux, patterns ...string) (conflict bool) {
	defer func() { conflict = recover() != nil }()
	for _, p := range patterns {
		mux.Handle(p, http.NotFoundHandler())
	}
	return false
}

func TestCompareIsATotalOrder(t *testing.T) {
	t.Parallel()
	want := []string{
		"HEAD /v1/pay/42", "GET /v1/pay/42", "/v1/pay/42", "GET /v1/pay/{id}", "/v1/pay/{id}",
		"/v1/pay/", "/v1/{x}/42", "/v1/{rest...}", "/{x}", "/",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int { return route.Compare(must(t, a), must(t, b)) })
	if !slices.Equal(got, want) {
		t.Errorf("order\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if route.Compare(must(t, "/a"), must(t, "/a")) != 0 || !must(t, "/a").MoreSpecific(must(t, "/{x}")) {
		t.Error("a pattern differs from itself, or a literal does not come before {x}")
	}
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	p := must(t, "GET /pay/{id}/items/ä")
	if n := testing.AllocsPerRun(100, func() { p.Matches("GET", "/pay/7/items/%C3%A4") }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
