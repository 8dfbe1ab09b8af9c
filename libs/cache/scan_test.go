package cache_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// A survey tells of each value what was stored, and of nothing else; it changes nothing.
func TestSurvey(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	n := s.node(func(o *options) {
		o.Load = func(_ context.Context, key string) (cache.Loaded[string], error) {
			if key == "none" {
				return cache.Loaded[string]{}, cache.ErrNotFound
			}
			return cache.Loaded[string]{Value: strings.Repeat("x", 1000), TTL: 30 * time.Second, StaleWhileRevalidate: 5 * time.Second, StaleIfError: time.Hour}, nil
		}
	})
	for _, key := range []string{"a", "{b}%7B*", "none"} {
		_, _ = n.Get(t.Context(), key)
	}
	if err := n.Invalidate(t.Context(), "c"); err != nil { // a barrier is no value
		t.Fatal(err)
	}
	rdb := client(t, s.mini.Addr())
	before := s.mini.Dump()
	survey := func(family string, most int) map[string]cache.Stored {
		t.Helper()
		found := map[string]cache.Stored{}
		if err := cache.Scan(t.Context(), rdb, "", family, most, func(v cache.Stored) { found[v.Key] = v }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := survey("test", 100)
	if len(found) != 3 || !found["none"].Negative {
		t.Fatalf("found %+v", found)
	}
	a := found["a"]
	a.Delta = 0 // it is what the machine took
	if want := (cache.Stored{Key: "a", TTL: 30 * time.Second, StaleWhileRevalidate: 5 * time.Second, StaleIfError: time.Hour, Bytes: 1002}); a != want {
		t.Errorf("found %+v, want %+v", a, want)
	}
	if b := found["{b}%7B*"]; b.Bytes != 1002 {
		t.Errorf("a key with signs is %+v", b)
	}
	if got := survey("test", 2); len(got) != 2 {
		t.Errorf("%d of at most 2", len(got))
	}
	if got := survey("te*", 100); len(got) != 0 {
		t.Errorf("a family is no pattern: %+v", got)
	}
	if after := s.mini.Dump(); after != before {
		t.Error("the survey changed what is stored")
	}
	if !slices.Contains(s.mini.Keys(), cache.EpochKey("cache:", "test")) {
		t.Errorf("no key is the epoch's among %q", s.mini.Keys())
	}
}
