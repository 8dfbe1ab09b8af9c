package routing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/route"
)

// Whatever a client writes, the bytes that are forwarded are the cleaned path
// that rules were matched against.
func TestForwardedPathIsTheCleanedPath(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"/", "//", "/.", "/..", "%2F", "%2f", "%2e", "%2E%2e", "%", "%5B", "[", "]", "%25", "%00", "%C3%BC", ";", "?", "#", " ", "*", "'"}),
		rapid.StringN(0, 4, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		path := "/"
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			path += piece.Draw(t, "piece")
		}
		clean, err := route.CleanPath(path)
		if err != nil {
			return
		}
		up := Upstream{scheme: "http", host: "up"}
		if got := up.Target(clean, "").RequestURI(); got != clean {
			t.Fatalf("%q is matched as %q and forwarded as %q", path, clean, got)
		}
	})
}
