package period_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

// Names are part of counter keys: what is here must never change.
func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	if period.Month() != (period.Calendar{}) {
		t.Fatal("the zero value is no longer the UTC month")
	}
	seen := map[string]bool{}
	for _, tc := range []struct {
		want string
		spec period.Spec
	}{
		{"month", period.Spec{Unit: "month"}},
		{"month+15", period.Spec{Unit: "month", AnchorDay: 15}},
		{"month@Europe/Istanbul", period.Spec{Unit: "month", Zone: "Europe/Istanbul"}},
		{"month+15@Europe/Istanbul", period.Spec{Unit: "month", Zone: "Europe/Istanbul", AnchorDay: 15}},
		// An anchor after the zone would make these two one.
		{"month+5@Etc/GMT", period.Spec{Unit: "month", Zone: "Etc/GMT", AnchorDay: 5}},
		{"month@Etc/GMT+5", period.Spec{Unit: "month", Zone: "Etc/GMT+5"}},
		{"hour", period.Spec{Unit: "hour"}},
		{"hour@Asia/Kolkata", period.Spec{Unit: "hour", Zone: "Asia/Kolkata"}},
		{"day", period.Spec{Unit: "day"}},
		{"day@America/Port-au-Prince", period.Spec{Unit: "day", Zone: "America/Port-au-Prince"}},
		{"week", period.Spec{Unit: "week"}},
		{"week+sunday", period.Spec{Unit: "week", WeekStart: "sunday"}},
		{"week+saturday@Asia/Dubai", period.Spec{Unit: "week", WeekStart: "saturday", Zone: "Asia/Dubai"}},
		{"year", period.Spec{Unit: "year"}},
		{"year@Europe/Paris", period.Spec{Unit: "year", Zone: "Europe/Paris"}},
		{"never", period.Spec{Unit: "never"}},
	} {
		c := calendar(t, tc.spec)
		if c.String() != tc.want || seen[c.String()] {
			t.Errorf("%+v is named %q, want %q", tc.spec, c, tc.want)
		}
		seen[c.String()] = true
		if strings.ContainsAny(c.String(), ":{}% ") {
			t.Errorf("%q would need escaping in a key", c)
		}
		if got := c.Unit().String(); got != tc.spec.Unit {
			t.Errorf("%s has unit %s", c, got)
		}
	}
}

func TestEqualCalendarsAreEqualValues(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]period.Spec{
		{{Unit: "month", Zone: "UTC", AnchorDay: 1}, {Unit: "month"}},
		{{Unit: "month", Zone: "Etc/UTC"}, {Unit: "month"}},
		{{Unit: "week", WeekStart: "monday"}, {Unit: "week"}},
		{{Unit: "day", Zone: "Europe/Paris", AnchorDay: 1}, {Unit: "day", Zone: "Europe/Paris"}},
		{{Unit: "never", Zone: "UTC"}, {Unit: "never"}},
	} {
		a, b := calendar(t, pair[0]), calendar(t, pair[1])
		if a != b || len(map[period.Calendar]bool{a: true, b: true}) != 1 {
			t.Errorf("%+v and %+v are two calendars", pair[0], pair[1])
		}
	}
	if calendar(t, period.Spec{Unit: "month", Zone: "UTC"}) != period.Month() {
		t.Error("the UTC month is not Month()")
	}
	if calendar(t, period.Spec{Unit: "day"}) == calendar(t, period.Spec{Unit: "hour"}) {
		t.Error("two units are one calendar")
	}
}

func TestSpecErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		spec   period.Spec
		fields string
	}{
		{period.Spec{}, "period"},
		{period.Spec{Unit: "Month"}, "period"},
		{period.Spec{Unit: "quarter", AnchorDay: 99}, "period"},
		{period.Spec{Unit: "day", Zone: "Europe/Atlantis"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "Europe"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "Local"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "localtime"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "right/Europe/Paris"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "posix/Europe/Paris"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "../zoneinfo/UTC"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "/etc/localtime"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "Europe/Par is"}, "timezone"},
		{period.Spec{Unit: "day", Zone: "+03:00"}, "timezone"},
		{period.Spec{Unit: "never", Zone: "Europe/Paris"}, "timezone"},
		{period.Spec{Unit: "month", AnchorDay: 32}, "anchorDay"},
		{period.Spec{Unit: "month", AnchorDay: -1}, "anchorDay"},
		{period.Spec{Unit: "month", AnchorDay: 257}, "anchorDay"},
		{period.Spec{Unit: "year", AnchorDay: 2}, "anchorDay"},
		{period.Spec{Unit: "day", AnchorDay: 2}, "anchorDay"},
		{period.Spec{Unit: "week", WeekStart: "Sunday"}, "weekStart"},
		{period.Spec{Unit: "week", WeekStart: "0"}, "weekStart"},
		{period.Spec{Unit: "month", WeekStart: "monday"}, "weekStart"},
		{period.Spec{Unit: "hour", Zone: "x", AnchorDay: 3, WeekStart: "monday"}, "timezone anchorDay weekStart"},
	} {
		c, err := period.New(tc.spec)
		var spec *period.SpecError
		if !errors.As(err, &spec) || c != (period.Calendar{}) {
			t.Errorf("New(%+v) = %v, %v; want a SpecError", tc.spec, c, err)
			continue
		}
		var fields []string
		for _, f := range spec.Fields {
			fields = append(fields, f.Field)
			if !strings.Contains(err.Error(), f.Field+": "+f.Message) || f.Message == "" {
				t.Errorf("%q does not hold %+v", err, f)
			}
		}
		if !reflect.DeepEqual(fields, strings.Fields(tc.fields)) {
			t.Errorf("New(%+v) names %v, want %s", tc.spec, fields, tc.fields)
		}
	}
}

func TestZoneIsWhoseClockCutsPeriods(t *testing.T) {
	t.Parallel()
	paris, err := period.New(period.Spec{Unit: period.NameDay, Zone: "Europe/Paris"})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)
	daily, err := period.New(period.Spec{Unit: period.NameDay})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := daily.Then(paris, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{period.Month().Zone(), "UTC"}, {daily.Zone(), "UTC"}, {paris.Zone(), "Europe/Paris"}, {changed.Zone(), ""},
		{changed.At(noon).Calendar.Zone(), "UTC"}, {changed.At(noon.AddDate(0, 0, 3)).Calendar.Zone(), "Europe/Paris"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
