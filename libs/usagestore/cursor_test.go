package usagestore

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func TestCursorsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := usage.Event{
			ID: rapid.StringN(1, 20, 80).Draw(t, "id"), TenantID: rapid.String().Draw(t, "tenant"),
			TS: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "ms")),
		}
		want := PositionOf(e)
		got, err := ParseCursor(want.Cursor())
		if err != nil || *got != want {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add("")
	f.Add(Position{At: 1, ID: "x"}.Cursor())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := ParseCursor(cursor)
		switch {
		case err != nil && !errors.Is(err, ErrBadQuery):
			t.Fatalf("%q: %v", cursor, err)
		case err == nil && cursor != "" && p.ID == "":
			t.Fatalf("%q is a position without an id", cursor)
		}
	})
}

func TestOldestKeptIsTheStartOfADay(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("", 3*3600)
	now := time.Date(2026, 3, 2, 1, 30, 0, 0, east) // 1 March, 22:30 UTC
	if got, want := OldestKept(2, now), time.Date(2026, 2, 27, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestPageLimits(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{-1: DefaultLimit, 0: DefaultLimit, 1: 1, MaxLimit: MaxLimit, MaxLimit + 1: MaxLimit} {
		if got := (Query{Limit: limit}).PageLimit(); got != want {
			t.Errorf("limit %d is %d, not %d", limit, got, want)
		}
	}
}
