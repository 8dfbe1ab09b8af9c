package period_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

func then(t *testing.T, c, next period.Calendar, at string) period.Calendar {
	t.Helper()
	changed, err := c.Then(next, instant(t, at))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// names checks the full names and bounds of consecutive periods.
func names(t *testing.T, c period.Calendar, from string, want ...string) {
	t.Helper()
	b := c.At(instant(t, from))
	for i, w := range want {
		got := b.Name() + " " + b.Start.Format("01-02T15") + " " + b.End.Format("01-02T15")
		if got != w {
			t.Errorf("%s: period %d is %s, want %s", c, i, got, w)
		}
		b = c.At(b.End)
	}
}

func TestAnchorChange(t *testing.T) {
	t.Parallel()
	fifteenth := calendar(t, period.Spec{Unit: "month", AnchorDay: 15})
	c := then(t, period.Month(), fifteenth, "2026-07-10T12:00:00Z")
	names(t, c, "2026-06-15T00:00:00Z",
		"month:202606 06-01T00 07-01T00",
		"month:202607 07-01T00 08-01T00", // the running period ends as it began
		"month+15:202607 08-01T00 08-15T00",
		"month+15:202608 08-15T00 09-15T00")
	first := c.At(instant(t, "2026-08-01T00:00:00Z"))
	for n, want := range map[int64]int64{0: 0, 1: 1, 31: 14, 3100: 1400, 1 << 53: 4067767405366900} {
		if got := first.Prorate(n); got != want {
			t.Errorf("14 of 31 days of %d = %d, want %d", n, got, want)
		}
	}
	if got := c.At(first.End).Prorate(31); got != 31 {
		t.Errorf("a whole period of 31 is prorated to %d", got)
	}
	if strings.ContainsAny(c.String(), ":{}% ") || c.Unit() != period.UnitMonth {
		t.Errorf("changed calendar %s of %s", c, c.Unit())
	}
}

// The old zone's month ends three hours before the new one's does: what is left
// of July is named apart from the July that is over.
func TestZoneChange(t *testing.T) {
	t.Parallel()
	istanbul := calendar(t, period.Spec{Unit: "month", Zone: "Europe/Istanbul"})
	names(t, then(t, istanbul, period.Month(), "2026-07-10T12:00:00Z"), "2026-07-10T12:00:00Z",
		"month@Europe/Istanbul:202607 06-30T21 07-31T21",
		"month:202607 07-31T21 08-01T00",
		"month:202608 08-01T00 09-01T00")
	names(t, then(t, period.Month(), istanbul, "2026-07-10T12:00:00Z"), "2026-07-10T12:00:00Z",
		"month:202607 07-01T00 08-01T00",
		"month@Europe/Istanbul:202608 08-01T00 08-31T21",
		"month@Europe/Istanbul:202609 08-31T21 09-30T21")
}

func TestWeekStartChange(t *testing.T) {
	t.Parallel()
	monday := calendar(t, period.Spec{Unit: "week"})
	sunday := calendar(t, period.Spec{Unit: "week", WeekStart: "sunday"})
	names(t, then(t, monday, sunday, "2026-07-22T00:00:00Z"), "2026-07-22T00:00:00Z",
		"week:20260720 07-20T00 07-27T00",
		"week+sunday:20260726 07-27T00 08-02T00",
		"week+sunday:20260802 08-02T00 08-09T00")
}

func TestChangesInARow(t *testing.T) {
	t.Parallel()
	month := period.Month()
	tenth := calendar(t, period.Spec{Unit: "month", AnchorDay: 10})
	fifteenth := calendar(t, period.Spec{Unit: "month", AnchorDay: 15})
	pending := then(t, month, fifteenth, "2026-07-10T12:00:00Z")

	if then(t, pending, tenth, "2026-07-20T00:00:00Z") != then(t, month, tenth, "2026-07-20T00:00:00Z") {
		t.Error("a change not yet in force was not replaced")
	}
	if then(t, pending, month, "2026-07-20T00:00:00Z") != month {
		t.Error("a change taken back in time leaves something")
	}
	if then(t, pending, fifteenth, "2026-08-02T00:00:00Z") != pending {
		t.Error("a change to the calendar in force is a change")
	}
	// There and back within the first period: July's counter is not met again.
	back := then(t, pending, month, "2026-08-02T00:00:00Z")
	names(t, back, "2026-07-10T12:00:00Z",
		"month:202607 07-01T00 08-01T00",
		"month+15:202607 08-01T00 08-15T00",
		"month:202608 08-15T00 09-01T00",
		"month:202609 09-01T00 10-01T00")
	// Only the calendar in force need be remembered to go on under the same names.
	at := "2026-08-02T00:00:00Z"
	short := then(t, back.At(instant(t, at)).Calendar, month, at)
	for d := range 90 {
		day := instant(t, at).AddDate(0, 0, d)
		if short.At(day).Name() != back.At(day).Name() {
			t.Fatalf("%s: %s and %s", day, short.At(day).Name(), back.At(day).Name())
		}
	}
}

func TestChangeOfUnitIsNone(t *testing.T) {
	t.Parallel()
	day := calendar(t, period.Spec{Unit: "day"})
	if c, err := period.Month().Then(day, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "month to day") {
		t.Errorf("month to day: %s, %v", c, err)
	}
	never := calendar(t, period.Spec{Unit: "never"})
	if c := then(t, never, never, "2026-07-10T12:00:00Z"); c != never {
		t.Errorf("never to never is %s", c)
	}
}

func TestBoundaryMeetsBoundary(t *testing.T) {
	t.Parallel()
	// A change at the very start
	// of a period waits for its end; then new periods begin where old ones do.
	first := calendar(t, period.Spec{Unit: "month", Zone: "Etc/GMT"})
	names(t, then(t, period.Month(), first, "2026-07-01T00:00:00Z"), "2026-06-30T23:59:59Z",
		"month:202606 06-01T00 07-01T00",
		"month:202607 07-01T00 08-01T00",
		"month@Etc/GMT:202608 08-01T00 09-01T00")
}
