package period_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
)

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMonthAt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ at, id, start, end string }{
		{"2026-07-23T14:32:07Z", "202607", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"},
		{"2026-07-01T00:00:00Z", "202607", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"},
		{"2026-07-31T23:59:59.999999999Z", "202607", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"},
		{"2026-12-31T23:59:59.999999Z", "202612", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"2027-01-01T00:00:00Z", "202701", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"},
		{"2028-02-29T12:00:00Z", "202802", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		// Another zone's first of the month is still the last of UTC's.
		{"2026-08-01T01:00:00+03:00", "202607", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"},
		{"2026-12-31T20:00:00-05:00", "202701", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"},
	} {
		b := period.Month().At(instant(t, tc.at))
		if b.ID != tc.id || !b.Start.Equal(instant(t, tc.start)) || !b.End.Equal(instant(t, tc.end)) {
			t.Errorf("At(%s) = %s [%s, %s), want %s [%s, %s)", tc.at, b.ID, b.Start, b.End, tc.id, tc.start, tc.end)
		}
	}
}

// Periods tile time: no instant is in two of them or in none.
func TestMonthsTile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(0, 4102444800_000000).Draw(t, "µs"))
		b := period.Month().At(at)
		if !b.Contains(at) {
			t.Fatalf("%s is not in its own period [%s, %s)", at, b.Start, b.End)
		}
		next, last := period.Month().At(b.End), period.Month().At(b.Start.Add(-1))
		if !next.Start.Equal(b.End) || !last.End.Equal(b.Start) {
			t.Fatalf("gap round %s: %s, %s", b.ID, last.End, next.Start)
		}
		if next.ID <= b.ID || last.ID >= b.ID {
			t.Fatalf("ids do not sort: %s %s %s", last.ID, b.ID, next.ID)
		}
	})
}

func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	if got := period.Month().String(); got != "month" {
		t.Fatalf("the calendar's name is part of counter keys; got %q", got)
	}
	if period.Month() != (period.Calendar{}) {
		t.Fatal("the zero value is no longer the UTC month")
	}
}
