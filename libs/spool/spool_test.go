package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func drain(s *Spool) (values []string) {
	for {
		records, mark := s.Next(64)
		if len(records) == 0 {
			return values
		}
		for _, r := range records {
			values = append(values, string(r.Value))
		}
		s.Advance(mark)
	}
}

func fill(s *Spool, from, to int) {
	for n := from; n < to; n++ {
		s.AppendKeyed("tenant", []byte(fmt.Sprintf("%06d", n)))
	}
}

func TestSecondOpenerIsToldWhoHoldsTheFolder(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), SizeBytes: 1 << 20}
	s := mustOpen(t, o)
	defer s.Close() //nolint:errcheck // the test is over
	_, err := Open(o)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("Open = %v, want ErrLocked naming process %d", err, os.Getpid())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, o).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFilesAreMovedAside(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(b []byte) []byte{
		"file header":  func(b []byte) []byte { b[17] ^= 1; return b },
		"head slots":   func(b []byte) []byte { b[pageBytes] ^= 1; b[pageBytes+slotSize] ^= 1; return b },
		"cut":          func(b []byte) []byte { return b[:len(b)/2] },
		"empty":        func(b []byte) []byte { return nil },
		"other format": func(b []byte) []byte { copy(b, geometry{shards: 9}.encode()); return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: t.TempDir(), SizeBytes: 1 << 20, Shards: 2}
			s := mustOpen(t, o)
			fill(s, 0, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(o.Dir, ringName)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, harm(b), 0o600); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
			defer s.Close() //nolint:errcheck // the test is over
			fill(s, 10, 12)
			if got := drain(s); len(got) != 2 {
				t.Fatalf("fresh spool gave %q", got)
			}
			aside, err := filepath.Glob(path + ".corrupt-*")
			if err != nil || len(aside) != 1 {
				t.Fatalf("files moved aside: %q, %v", aside, err)
			}
		})
	}
}

func TestOneDamagedRecordCostsOnlyItself(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), SizeBytes: 1 << 20, Shards: 1}
	s := mustOpen(t, o)
	fill(s, 0, 100)
	s.shards[0].ring[40*64+33] ^= 1 // each of these records takes 64 bytes
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Close() //nolint:errcheck // the test is over
	got := drain(s)
	if len(got) != 99 || got[40] != "000041" || s.Stats().Dropped != 1 || s.Stats().Pending != 0 {
		t.Fatalf("%d records, stats %+v", len(got), s.Stats())
	}
}

func TestTornTailIsIgnoredAndOverwritten(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), SizeBytes: 1 << 20, Shards: 1}
	s := mustOpen(t, o)
	fill(s, 0, 3)
	s.shards[0].ring[2*64+40] ^= 1
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Close() //nolint:errcheck // the test is over
	fill(s, 7, 8)
	if got := drain(s); fmt.Sprint(got) != "[000000 000001 000007]" || s.Stats().Dropped != 0 {
		t.Fatalf("got %v, %+v", got, s.Stats())
	}
}

func TestResizeCarriesRecordsAndDropsOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, Options{Dir: dir, SizeBytes: 1 << 20, Shards: 4})
	fill(s, 0, 200)
	if s.Append(make([]byte, s.MaxRecord()+1)) != 1 {
		t.Fatal("a record over MaxRecord was not dropped")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, Options{Dir: dir, SizeBytes: 2 << 20, Shards: 1})
	defer s.Close() //nolint:errcheck // the test is over
	if n := len(drain(s)); n != 200 || s.Stats().Dropped != 1 {
		t.Fatalf("%d records after the resize, %+v", n, s.Stats())
	}
	if olds, err := filepath.Glob(filepath.Join(dir, resizeName+"*")); err != nil || len(olds) != 0 {
		t.Fatalf("left behind: %q, %v", olds, err)
	}
}

func TestConcurrentAppendsAllArriveAndWakeTheReader(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, Options{Dir: t.TempDir(), SizeBytes: 8 << 20})
	defer s.Close() //nolint:errcheck // the test is over
	const writers, each = 8, 2000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { fill(s, w*each, (w+1)*each) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < writers*each {
		if err := s.Wait(ctx); err != nil {
			t.Fatalf("reader was not woken: %d of %d records", len(seen), writers*each)
		}
		for _, v := range drain(s) {
			seen[v] = true
		}
	}
	wg.Wait()
	if st := s.Stats(); st.Pending != 0 || st.Dropped != 0 {
		t.Fatalf("stats %+v", st)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		// Made in the bubble, as its wake-up channel is part of the wait.
		s := mustOpen(t, Options{Dir: dir, SizeBytes: 1 << 20})
		defer s.Close() //nolint:errcheck // the test is over
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Wait = %v", err)
		}
	})
}

func TestAppendAfterCloseIsADrop(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, Options{Dir: t.TempDir(), SizeBytes: 1 << 20})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Append([]byte("late")) != 1 {
		t.Fatal("Append after Close claims to have stored the record")
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Dir: "x", SizeBytes: 1000}, {Dir: "x", Shards: -1}, {Dir: "x", Shards: 1000}} {
		if _, err := Open(o); err == nil {
			t.Errorf("Open(%+v) took it", o)
		}
	}
}

// A sync writes down where the reader is and moves nothing; the next process goes on
// from there.
func TestSyncLeavesAllAsItIs(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), SizeBytes: 1 << 20, Shards: 2}
	s := mustOpen(t, o)
	fill(s, 0, 50)
	_, mark := s.Next(10)
	s.Advance(mark)
	want := s.Stats()
	for range 3 { // each writes the other copy of a head
		if err := s.Sync(); err != nil || s.Stats() != want {
			t.Fatalf("%v, %+v of %+v", err, s.Stats(), want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed spool: %v", err)
	}
	s = mustOpen(t, o)
	defer s.Close() //nolint:errcheck // the test is over
	if s.Stats() != want {
		t.Errorf("%+v of %+v", s.Stats(), want)
	}
}
