package period_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
)

func TestRunningIDsHoldEveryCalendars(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawnCalendar(t, rapid.SampledFrom([]string{"hour", "day", "week", "month", "year", "never"}).Draw(t, "unit"))
		at := time.Unix(rapid.Int64Range(1.3e9, 4e9).Draw(t, "at"), 0) // 2011 to 2096
		if id, ids := c.At(at).ID, period.RunningIDs(at); !slices.Contains(ids, id) {
			t.Fatalf("%s at %s is %s, not one of %v", c, at.UTC(), id, ids)
		}
	})
}

func TestDayCountsLocalDates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, from, to string
		days           int64
	}{
		{"UTC", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z", 31},
		{"UTC", "2026-07-01T23:59:59Z", "2026-07-02T00:00:00Z", 1},
		{"Europe/Paris", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", 31}, // an hour more
		{"Europe/Paris", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", 31}, // an hour less
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-30T10:00:00Z", 2},  // the day that was not
		{"UTC", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z", 1},           // below zero
		{"Asia/Tokyo", "2026-07-01T14:59:59Z", "2026-07-01T15:00:00Z", 1},    // midnight is at 15:00Z
	} {
		calendar := calendar(t, period.Spec{Unit: "day", Zone: c.zone})
		if got := calendar.Day(instant(t, c.to)) - calendar.Day(instant(t, c.from)); got != c.days {
			t.Errorf("%s: %s to %s are %d days, want %d", c.zone, c.from, c.to, got, c.days)
		}
	}
	changed := then(t, period.Month(), calendar(t, period.Spec{Unit: "month", Zone: "Asia/Tokyo"}), "2026-07-10T00:00:00Z")
	if before, after := changed.Day(instant(t, "2026-07-20T15:00:00Z")), changed.Day(instant(t, "2026-08-20T15:00:00Z")); after-before != 32 {
		t.Errorf("the changed calendar counts %d days from UTC's 20 July to Tokyo's 21 August", after-before)
	}
}
