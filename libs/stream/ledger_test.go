package stream

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestDigestIsLengthSafeAndSumNeedsNoOrder(t *testing.T) {
	if Digest("ab", 1, []byte("c")) == Digest("a", 1, []byte("bc")) {
		t.Fatal("key and value run into each other")
	}
	if Digest("a", 1, []byte("x")) == Digest("a", 2, []byte("x")) {
		t.Fatal("the version does not count")
	}
	// A fixed value: another implementation must come to the same.
	if got := FormatDigest(Digest("hello", 7, []byte(`{"id": "hello"}`))); got != fixedDigest {
		t.Fatalf("digest changed to %s; every mirror record out there says otherwise", got)
	}
}

// TestLedgerAgreesWithTheHistory shows random records, with versions that come
// late, twice and after deletions, to a ledger and to the plain definition:
// of a key counts the record with the greatest (generation, version), the
// later of equals.
func TestLedgerAgreesWithTheHistory(t *testing.T) {
	t.Parallel()
	type step struct {
		key                 string
		generation, version int64
		value               []byte
	}
	steps := rapid.Custom(func(t *rapid.T) step {
		s := step{
			key:        fmt.Sprintf("k%d", rapid.IntRange(0, 3).Draw(t, "key")),
			generation: rapid.Int64Range(1, 2).Draw(t, "generation"),
			version:    rapid.Int64Range(1, 6).Draw(t, "version"),
		}
		if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
			s.value = []byte{byte(rapid.IntRange('a', 'c').Draw(t, "value"))}
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(steps, 0, 40).Draw(t, "history")
		var ledger Ledger
		best := map[string]step{}
		for _, s := range history {
			old, known := best[s.key]
			older := known && (s.generation < old.generation || s.generation == old.generation && s.version < old.version)
			if got := ledger.Apply(s.key, s.generation, s.version, s.value); (got == Stale) != older {
				t.Fatalf("%+v after %+v: outcome %d", s, old, got)
			}
			if !older {
				best[s.key] = s
			}
		}
		var count int64
		var sum uint64
		for key, s := range best {
			m, ok := ledger.Get(key)
			if !ok || m.Generation != s.generation || m.Version != s.version || m.Live != (s.value != nil) {
				t.Fatalf("%s: mark %+v, want %+v", key, m, s)
			}
			if s.value != nil {
				count++
				sum += Digest(key, s.version, s.value)
			}
		}
		if ledger.Count() != count || ledger.Sum() != sum {
			t.Fatalf("count %d sum %x, want %d %x", ledger.Count(), ledger.Sum(), count, sum)
		}
		if c := ledger.Clone(); c.Count() != count || c.Sum() != sum || c.Generation() != ledger.Generation() {
			t.Fatal("the clone differs")
		}
	})
}

const fixedDigest = "8e343fd738ba3650"
