package cache_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

func TestInvalidationReachesAll(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	var nodes []*cache.Cache[string]
	for range 3 {
		nodes = append(nodes, s.node(func(o *options) { o.Load = src.load }))
	}
	for _, n := range nodes {
		get(t, n, "k")
	}
	src.set(func(s *source) { s.version++ })
	if err := nodes[0].Invalidate(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	wants(t, get(t, nodes[0], "k"), "k@1", cache.Miss) // reads its own write
	for _, n := range nodes[1:] {
		eventually(t, "the new value", func() bool { return get(t, n, "k").Value == "k@1" })
	}
	if n := src.loads.Load(); n != 2 {
		t.Errorf("%d loads", n)
	}
}

// A soft invalidation is an expiry: stale limits count from it, from the first one when there are several.
func TestSoftInvalidationCountsFromItself(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) { o.Load, o.StaleIfError = src.load, 30*time.Second })
	get(t, c, "k")
	src.set(func(s *source) { s.err = errors.New("down") })
	for range 3 {
		if err := c.Invalidate(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		wants(t, get(t, c, "k"), "k@0", cache.Stale)
		s.advance(9 * time.Second)
	}
	s.advance(4 * time.Second) // 31 s after the first
	if r, err := c.Fetch(t.Context(), "k"); err == nil {
		t.Fatalf("served %+v", r)
	}
}

// A cleared value is never served again, also when the source is down and every stale limit would allow it.
func TestClearedIsNeverServed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	set := func(o *options) { o.Load, o.StaleIfError, o.StaleWhileRevalidate = src.load, time.Hour, time.Hour }
	a, b := s.node(set), s.node(set)
	get(t, a, "k")
	get(t, b, "k")
	src.set(func(s *source) { s.err = errors.New("down") })
	if err := a.Clear(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Fetch(t.Context(), "k"); err == nil {
		t.Fatalf("served %+v", r)
	}
	eventually(t, "the other process to forget", func() bool { _, err := b.Get(t.Context(), "k"); return err != nil })
	for range 100 {
		s.advance(time.Second)
		for _, c := range []*cache.Cache[string]{a, b} {
			if r, err := c.Fetch(t.Context(), "k"); err == nil {
				t.Fatalf("served %+v", r)
			}
		}
	}
}

// What a leader read before an invalidation is not stored, and nobody who came after it gets it; still one load at a time.
func TestInvalidationDuringALoad(t *testing.T) {
	t.Parallel()
	for _, hard := range []bool{false, true} {
		t.Run(fmt.Sprint("hard ", hard), func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			var src source
			a := s.node(func(o *options) { o.Load = src.load })
			b := s.node(func(o *options) { o.Load = src.load })
			begun, release := src.held()
			first, second := make(chan string, 1), make(chan string, 1)
			go func() { first <- get(t, a, "k").Value }()
			await(t, begun, "the load") // it has read version 0
			src.set(func(s *source) { s.version++ })
			invalidate := b.Invalidate
			if hard {
				invalidate = b.Clear
			}
			if err := invalidate(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			go func() { second <- get(t, b, "k").Value }()
			eventually(t, "the second to meet the lock", func() bool { return cache.Paused(b, "k") })
			release()
			for _, ch := range []chan string{first, second} {
				if v := await(t, ch, "a reader"); v != "k@1" {
					t.Errorf("got %q", v)
				}
			}
			if src.loads.Load() != 2 || src.most.Load() != 1 {
				t.Errorf("%d loads, %d at once", src.loads.Load(), src.most.Load())
			}
		})
	}
}

// An invalidation is a drop: nobody loads until somebody reads, and then one does.
func TestInvalidationsMakeNoHerd(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	var nodes []*cache.Cache[string]
	const processes, invalidations = 100, 1000
	for range processes {
		nodes = append(nodes, s.node(func(o *options) { o.Load = src.load }))
	}
	readers(processes, func(i int) { get(t, nodes[i], "k") })
	if n := src.loads.Load(); n != 1 {
		t.Fatalf("%d loads", n)
	}
	src.set(func(s *source) { s.version++ })
	readers(10, func(i int) {
		for range invalidations / 10 {
			if err := nodes[i].Invalidate(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}
	})
	if n := src.loads.Load(); n != 1 {
		t.Fatalf("%d loads: somebody re-reads what nobody asked for", n)
	}
	readers(processes, func(i int) {
		eventually(t, "the new value", func() bool { return get(t, nodes[i], "k").Value == "k@1" })
	})
	if n := src.loads.Load(); n != 2 {
		t.Errorf("%d loads, want one after all invalidations", n)
	}
}

func TestKeysStayApart(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) { o.Load, o.L1Size = src.load, -1 })
	keys := []string{"", "{", "}", "{}", "%7B", "a}:v", "a", "a{b}", "\x00", strings.Repeat("long", 1000)}
	for _, key := range keys {
		get(t, c, key)
	}
	for _, key := range keys {
		wants(t, get(t, c, key), key+"@0", cache.HitL2)
	}
}
