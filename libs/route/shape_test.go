package route_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/route"
)

// A path that a pattern matches is found by the pattern's shape and hash.
func TestShapeFindsWhatMatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, path := drawPattern.Draw(t, "pattern"), drawPath.Draw(t, "path")
		p := must(t, pattern)
		var hashed route.PathHash
		route.HashPath(path, &hashed)
		h, ok := p.Shape().Hash(&hashed)
		if p.Matches(p.Method(), path) && (!ok || h != p.LiteralHash()) {
			t.Fatalf("%q matches %s, but is not found by its shape", pattern, path)
		}
	})
}

func TestShapeTellsPatternsApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("/a", route.MaxHashed+3)
	for _, tc := range []struct {
		pattern, path string
		found         bool
	}{
		{"/a/{x}", "/a/7", true}, {"/a/{x}", "/b/7", false}, {"/a/{x}", "/a/7/8", false}, {"/a/{x}", "/a", false},
		{"/a/", "/a/b/c", true}, {"/a/", "/a", false}, {"/ä b", "/%C3%A4%20b", true}, {"/a%2Fb", "/a%2Fb", true},
		{long + "/b", long + "/b", true}, {"/b" + long, long + "/a", false}, {"/{$}", "/", true}, {"/{$}", "/a", false},
	} {
		p := must(t, tc.pattern)
		var hashed route.PathHash
		route.HashPath(tc.path, &hashed)
		h, ok := p.Shape().Hash(&hashed)
		if found := ok && h == p.LiteralHash(); found != tc.found {
			t.Errorf("%s is found for %s: %t, want %t", tc.pattern, tc.path, found, tc.found)
		}
	}
	if must(t, "/a/{x}/b").Shape() != must(t, "GET /c/{y}/d").Shape() || must(t, "/a/{x}").Shape() == must(t, "/{x}/a").Shape() {
		t.Error("shapes are not told by where the literals stand")
	}
}

func BenchmarkHashPath(b *testing.B) {
	var hashed route.PathHash
	b.ReportAllocs()
	for b.Loop() {
		route.HashPath("/payments/v1/accounts/8472/items", &hashed)
	}
}
