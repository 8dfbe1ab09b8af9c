package route_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/route"
)

func TestCleanPath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"/", "/"}, {"/a", "/a"}, {"/a/", "/a/"}, {"/a/b-c_d~e.f", "/a/b-c_d~e.f"},
		{"//a//b", "/a/b"}, {"/a//", "/a/"}, {"//", "/"},
		{"/./a", "/a"}, {"/a/.", "/a/"}, {"/a/..", "/"}, {"/a/b/..", "/a/"}, {"/a/../b", "/b"}, {"/..", "/"},
		{"/../../a", "/a"}, {"/a/./b/../c", "/a/c"}, {"/...", "/..."}, {"/.a/..b", "/.a/..b"},
		{"/%70ay", "/pay"}, {"/%2e%2E/a", "/a"}, {"/a/%2e/b", "/a/b"}, {"/%7Euser", "/~user"},
		{"/a%2Fb", "/a%2Fb"}, {"/a%2fb", "/a%2Fb"}, {"/a%2f..%2fb", "/a%2F..%2Fb"},
		{"/a%20b", "/a%20b"}, {"/a b", "/a%20b"}, {"/ä", "/%C3%A4"}, {"/%c3%a4", "/%C3%A4"}, {"/%00", "/%00"},
		{"/a%3Bb", "/a%3Bb"}, {"/a;b", "/a;b"}, {"/%25", "/%25"}, {"/%252e", "/%252e"}, {`/a\b`, "/a%5Cb"},
		{"/{id}", "/%7Bid%7D"},
	} {
		got, err := route.CleanPath(tc.in)
		if err != nil || got != tc.want {
			t.Errorf("CleanPath(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	for in, want := range map[string]error{
		"": route.ErrNotRooted, "a": route.ErrNotRooted, "*": route.ErrNotRooted, "http://x/": route.ErrNotRooted,
		"/%": route.ErrBadEscape, "/%2": route.ErrBadEscape, "/a%zz": route.ErrBadEscape,
	} {
		if _, err := route.CleanPath(in); !errors.Is(err, want) {
			t.Errorf("CleanPath(%q): error %v, want %v", in, err, want)
		}
	}
}

func TestCleanPathOfCleanDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _, _ = route.CleanPath("/demo/hello/7") }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// Whatever comes in, what comes out is rooted, stays as it is when cleaned
// again, holds no dot segment and no empty one, and names no other resource.
func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/%2e%2e/%2F", "//a/./", "/ä%zz", "/a/.../..", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := route.CleanPath(in)
		if err != nil {
			return
		}
		again, err := route.CleanPath(out)
		if err != nil || again != out {
			t.Fatalf("%q → %q → %q, %v", in, out, again, err)
		}
		segments := strings.Split(out, "/")
		for i, s := range segments[1:] {
			if s == "." || s == ".." || s == "" && i != len(segments)-2 {
				t.Fatalf("%q → %q holds segment %q", in, out, s)
			}
		}
		u, err := url.ParseRequestURI(out)
		if err != nil || u.EscapedPath() != out {
			t.Fatalf("%q → %q is no path to net/url: %v", in, out, err)
		}
	})
}
