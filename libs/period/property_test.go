package period_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
)

// zones that have done to their clocks what can be done.
var zones = []string{
	"UTC", "Europe/Paris", "Europe/Istanbul", "Europe/London", "Europe/Dublin", "Africa/Cairo", "Africa/Casablanca",
	"Africa/Monrovia", "America/Sao_Paulo", "America/St_Johns", "America/New_York", "America/Caracas", "America/Juneau",
	"America/Asuncion", "America/Havana", "America/Scoresbysund", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut",
	"Asia/Gaza", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Manila", "Asia/Pyongyang", "Asia/Tehran", "Australia/Lord_Howe",
	"Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Marquesas", "Etc/GMT+12", "Etc/GMT-14",
}

// drawnSpec is any calendar of a unit.
func drawnSpec(t *rapid.T, unit string) period.Spec {
	s := period.Spec{Unit: unit}
	if unit == "never" {
		return s
	}
	s.Zone = rapid.SampledFrom(zones).Draw(t, "zone")
	if unit == "month" {
		s.AnchorDay = rapid.IntRange(0, 31).Draw(t, "anchor")
	}
	if unit == "week" {
		s.WeekStart = rapid.SampledFrom([]string{"", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}).Draw(t, "week")
	}
	return s
}

func drawnCalendar(t *rapid.T, unit string) period.Calendar {
	c, err := period.New(drawnSpec(t, unit))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var drawnUnit = rapid.SampledFrom([]string{"hour", "day", "week", "month", "year"})

// drawnInstant is of 1840 to 2120, half of the time within a day of a change of
// some zone's clock.
func drawnInstant(t *rapid.T, label string) time.Time {
	at := time.UnixMicro(rapid.Int64Range(-4102444800_000000, 4733510400_000000).Draw(t, label))
	if rapid.Bool().Draw(t, label+" near a change") {
		l, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, label+" zone"))
		if err != nil {
			t.Fatal(err)
		}
		if _, end := at.In(l).ZoneBounds(); !end.IsZero() {
			at = end.Add(time.Duration(rapid.Int64Range(-86400, 86400).Draw(t, label+" s")) * time.Second)
		}
	}
	return at.UTC()
}

// tiles checks that at's period holds it and meets its neighbours.
func tiles(t *rapid.T, c period.Calendar, at time.Time) {
	b := c.At(at)
	if !b.Contains(at) {
		t.Fatalf("%s: %s is not in its own period %s [%s, %s)", c, at, b.ID, b.Start, b.End)
	}
	if first, last := c.At(b.Start), c.At(b.End.Add(-1)); first != b || last != b {
		t.Fatalf("%s: %s, %s and %s are one period", c, first, b, last)
	}
	next, last := c.At(b.End), c.At(b.Start.Add(-1))
	if !next.Start.Equal(b.End) || !last.End.Equal(b.Start) {
		t.Fatalf("%s: gap round %s: %s, %s", c, b.ID, last.End, next.Start)
	}
	for _, pair := range [][2]period.Bounds{{last, b}, {b, next}} {
		if pair[0].Calendar == pair[1].Calendar && pair[0].ID >= pair[1].ID || pair[0].Name() == pair[1].Name() {
			t.Fatalf("%s: ids do not sort: %s %s", c, pair[0].Name(), pair[1].Name())
		}
	}
}

func TestPeriodsTile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tiles(t, drawnCalendar(t, drawnUnit.Draw(t, "unit")), drawnInstant(t, "at"))
	})
}

// What a local clock reads says where periods of whole days begin, without any
// of the arithmetic that finds them: at Start it reads the period's date or
// later, and at no instant before does it.
func TestPeriodsBeginWhenTheClockSaysSo(t *testing.T) {
	t.Parallel()
	layouts := map[string]string{"day": "20060102", "week": "20060102", "month": "200601", "year": "2006"}
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSpec(t, rapid.SampledFrom([]string{"day", "week", "month", "year"}).Draw(t, "unit"))
		s.AnchorDay = min(s.AnchorDay, 1)
		c, err := period.New(s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := time.LoadLocation(s.Zone)
		if err != nil {
			t.Fatal(err)
		}
		b, layout := c.At(drawnInstant(t, "at")), layouts[s.Unit]
		if read := b.Start.In(l).Format(layout); read < b.ID {
			t.Fatalf("%s begins when the clock reads %s", b.Name(), read)
		}
		before := time.Duration(rapid.Int64Range(1, int64(72*time.Hour)).Draw(t, "before"))
		if read := b.Start.Add(-before).In(l).Format(layout); read >= b.ID {
			t.Fatalf("%s begins %s after the clock reads %s", b.Name(), before, read)
		}
	})
}

// An hour is an hour, and begins when the clock reads a full one, but where the
// clock is moved by part of an hour.
func TestHoursAreLocal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSpec(t, "hour")
		c, err := period.New(s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := time.LoadLocation(s.Zone)
		if err != nil {
			t.Fatal(err)
		}
		b := c.At(drawnInstant(t, "at"))
		_, m, sec := b.Start.In(l).Clock()
		_, was := b.Start.Add(-1).In(l).Zone()
		_, is := b.Start.In(l).Zone()
		if (m != 0 || sec != 0) && (is-was)%3600 == 0 {
			t.Fatalf("%s begins at %s", b.Name(), b.Start.In(l))
		}
		_, last := b.End.Add(-1).In(l).Zone()
		_, next := b.End.In(l).Zone()
		moved := (is-was)%3600 != 0 || (next-last)%3600 != 0
		if long := b.End.Sub(b.Start); long > time.Hour || long < time.Hour && !moved {
			t.Fatalf("%s is %s long", b.Name(), long)
		}
	})
}

// Day by day through every zone, so that no clock change is missed: the last
// days of leap years among them, and 1844 to 2110.
func TestEveryDay(t *testing.T) {
	t.Parallel()
	for _, zone := range zones {
		c := calendar(t, period.Spec{Unit: "day", Zone: zone})
		b := c.At(instant(t, "1844-06-01T00:00:00Z"))
		for b.Start.Year() < 2110 {
			next := c.At(b.End)
			if !next.Start.Equal(b.End) || next.ID <= b.ID {
				t.Fatalf("%s: after %s [%s, %s) comes %s [%s", c, b.ID, b.Start, b.End, next.ID, next.Start)
			}
			if long := b.End.Sub(b.Start); long < time.Hour || long > 48*time.Hour {
				t.Fatalf("%s: %s is %s long", c, b.ID, long)
			}
			b = next
		}
	}
}

// Calendars changed again and again tile time all the same, and no name is used
// for two periods.
func TestChangedCalendarsTile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := drawnUnit.Draw(t, "unit")
		c, at := drawnCalendar(t, unit), drawnInstant(t, "at")
		// Few calendars, so that one comes back.
		choice := []period.Calendar{c, drawnCalendar(t, unit), drawnCalendar(t, unit)}
		from := c.At(at)
		var plain period.Calendar
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			running := c.At(at)
			plain = rapid.SampledFrom(choice).Draw(t, "next")
			changed, err := c.Then(plain, at)
			if err != nil {
				t.Fatal(err)
			}
			if got := changed.At(at); got != running {
				t.Fatalf("the running period was %v, is %v", running, got)
			}
			if got := changed.At(running.End).Calendar; got != plain {
				t.Fatalf("%s is in force after the change to %s", got, plain)
			}
			c = changed
			tiles(t, c, at)
			tiles(t, c, running.End)
			at = at.Add(time.Duration(rapid.Float64Range(0, 3).Draw(t, "periods") * float64(running.End.Sub(running.Start))))
		}
		walk(t, c, from, at)
		// Settled, the new calendar alone says the same.
		if settled := c.At(c.At(at).End).End; c.At(settled) != plain.At(settled) {
			t.Fatalf("%v is not yet %v", c.At(settled), plain.At(settled))
		}
	})
}

// walk goes from one period past another instant.
func walk(t *rapid.T, c period.Calendar, b period.Bounds, to time.Time) {
	seen := map[string]bool{}
	for !b.Start.After(to) {
		if seen[b.Name()] {
			t.Fatalf("%s: %s comes twice", c, b.Name())
		}
		seen[b.Name()] = true
		if n := b.Prorate(1_000_000); n < 1 || n > 1_000_000 {
			t.Fatalf("%s: the part of %v is %d", c, b, n)
		}
		next := c.At(b.End)
		if !next.Start.Equal(b.End) {
			t.Fatalf("%s: %v is followed by %v", c, b, next)
		}
		b = next
	}
}
