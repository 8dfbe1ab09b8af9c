package chart

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPicturesAreCurrent(t *testing.T) {
	t.Parallel()
	for name, want := range Files() {
		got, err := os.ReadFile(filepath.Join("../../../docs/walks/cache-stampede", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/walks/cache-stampede/%s is stale: make generate", name)
		}
	}
}

// What the page says of the pictures.
func TestWhatThePageSays(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]float64{0: 1, delta: 0.368, 2 * delta: 0.135, 5 * delta: 0.007} {
		if got := chance(left, 1); math.Abs(got-want) > 0.001 {
			t.Errorf("%s before expiry a read refreshes with %.3f, want %.3f", left, got, want)
		}
	}
	for beta, want := range map[float64]float64{1: math.E, 2: math.Sqrt(math.E)} {
		if got := recomputed(beta); math.Abs(got-want) > 0.1*want {
			t.Errorf("beta %g costs %.2f loads an expiry, want %.2f", beta, got, want)
		}
	}
	fresh, stale := string(methods("", 0)), string(methods("", tolerated))
	if xfetch := `fill="` + colours[2] + `"`; !strings.Contains(fresh, xfetch) || strings.Count(stale, xfetch) >= strings.Count(fresh, xfetch) {
		t.Error("where values may be stale for longer than a load, XFetch is advised all the same")
	}
}
