package limit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// A counter that was kept is the same counter, of the period its units were
// used in.
func TestSavedCountersAreTheSame(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)
	for _, spec := range []period.Spec{
		{Unit: "month"}, {Unit: "month", AnchorDay: 15, Zone: "Europe/Istanbul"}, {Unit: "week", WeekStart: "sunday", Zone: "Etc/GMT+5"},
		{Unit: "hour"}, {Unit: "day", Zone: "Europe/Paris"}, {Unit: "year"}, {Unit: "never"},
	} {
		calendar, err := period.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		c := limit.Counter{Key: "{t:a}:t::m:quota", Algorithm: limit.RenewingQuota, Limit: 10, Rollover: 3, Since: at, Calendar: calendar, Cost: 4}
		b, err := json.Marshal(limit.Save(&c, at))
		if err != nil {
			t.Fatal(err)
		}
		var s limit.Saved
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		got, err := s.Counter(at)
		if c.At = at; err != nil || got != c {
			t.Errorf("%+v: %+v, %v", spec, got, err)
		}
	}
	s := limit.Saved{Algorithm: limit.RenewingQuota, Calendar: "fortnight"}
	if _, err := s.Counter(at); err == nil {
		t.Error("fortnight is a calendar")
	}
}
