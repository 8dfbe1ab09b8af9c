package period

import "time"

// Unit is the length of a period.
type Unit uint8

// Units.
const (
	// UnitMonth is a calendar month.
	UnitMonth Unit = iota
)

// Names of units as rules write them.
const NameMonth = "month"

// String returns the unit as rules write it.
func (u Unit) String() string {
	if u == UnitMonth {
		return NameMonth
	}
	return "unknown"
}

// Calendar says how time is cut into periods. The zero value is the calendar
// month in UTC. It is comparable, and safe for concurrent use.
type Calendar struct {
	unit Unit
}

// Month returns the calendar of months in UTC that begin on the first.
func Month() Calendar { return Calendar{unit: UnitMonth} }

// Unit returns the length of the calendar's periods.
func (c Calendar) Unit() Unit { return c.unit }

// String names the calendar inside counter keys; it must never change for a
// calendar in use, since it is part of each counter's identity.
func (c Calendar) String() string { return c.unit.String() }

// Bounds is one period of a calendar.
type Bounds struct {
	// ID names the period within its calendar, such as 202607. Ids of one
	// calendar sort as their periods do.
	ID string
	// Start is the first instant, End the first instant after; UTC.
	Start, End time.Time
}

// Contains reports whether t lies in [Start, End).
func (b Bounds) Contains(t time.Time) bool {
	return !t.Before(b.Start) && t.Before(b.End)
}

// At returns the period that holds t; t may be in any zone.
func (c Calendar) At(t time.Time) Bounds {
	t = t.UTC()
	start := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	return Bounds{
		ID:    start.Format("200601"),
		Start: start,
		End:   start.AddDate(0, 1, 0),
	}
}
