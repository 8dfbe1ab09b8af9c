package event

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestDecisionIDsAreUUIDv7(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 10_000 {
		at := time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Millisecond / 10)
		id := NewID(at)
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 || parsed.String() != id {
			t.Fatalf("%s is no UUID version 7: %v", id, err)
		}
		if sec, nsec := parsed.Time().UnixTime(); time.Unix(sec, nsec).UnixMilli() != at.UnixMilli() {
			t.Fatalf("%s carries %d, want %d", id, time.Unix(sec, nsec).UnixMilli(), at.UnixMilli())
		}
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
}
