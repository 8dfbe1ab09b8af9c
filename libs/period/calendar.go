package period

import (
	"strconv"
	"time"
	"unique"
)

// Calendar says how time is cut into periods. The zero value is the calendar
// month in UTC. It is comparable (equal calendars are ==), fit to be a map key,
// immutable, and safe for concurrent use.
type Calendar struct {
	h unique.Handle[plan]
}

// plan is what a Calendar stands for. Equal plans share one handle, so every
// field must be canonical: locations come from load only.
type plan struct {
	unit      Unit
	anchor    uint8
	weekStart time.Weekday
	loc       *time.Location
	name      string
	// change is of changed calendars; of the fields above they have unit and name.
	change
}

var utcMonth = plan{unit: UnitMonth, loc: time.UTC, anchor: 1, weekStart: time.Monday}

// Month returns the calendar of months in UTC that begin on the first.
func Month() Calendar { return Calendar{} }

func (c Calendar) plan() plan {
	if c == (Calendar{}) {
		p := utcMonth
		p.name = NameMonth
		return p
	}
	return c.h.Value()
}

// Unit returns the length of the calendar's periods.
func (c Calendar) Unit() Unit { return c.plan().unit }

// Zone is the IANA name of the zone whose clock cuts the periods, such as UTC;
// empty of a changed calendar: Bounds.Calendar has that of a period.
func (c Calendar) Zone() string {
	p := c.plan()
	if p.loc == nil {
		return ""
	}
	return p.loc.String()
}

// String names the calendar: its unit, +anchor day or +week start where that is
// not the default, @zone where that is not UTC; as in month, week+sunday,
// month+15@Europe/Istanbul. It is part of counters' identity, so it must never
// change; it holds none of : { } % and space. A changed calendar has a name for
// logs only: keys take that of Bounds.Calendar.
func (c Calendar) String() string { return c.plan().name }

// describe puts the day before the zone: zones are called things like Etc/GMT+5.
func (p *plan) describe() string {
	name := p.unit.String()
	if p.anchor != 1 {
		name += "+" + strconv.Itoa(int(p.anchor))
	}
	if p.weekStart != time.Monday {
		name += "+" + weekdays[p.weekStart]
	}
	if p.loc != time.UTC {
		name += "@" + p.loc.String()
	}
	return name
}

// At returns the period that holds t; t may be in any zone, and of years 1 to
// 9999. It allocates the id only.
func (c Calendar) At(t time.Time) Bounds {
	p := c.plan()
	if p.changed() {
		return p.change.at(t)
	}
	switch p.unit {
	case UnitNever:
		return Bounds{ID: "all", Calendar: c}
	case UnitHour:
		start, end := hourAt(p.loc, t.Unix())
		return bounds(c, hourID(start), start, end)
	}
	wall, start, end := p.datesAt(t.Unix())
	return bounds(c, p.dateID(wall), start, end)
}

func bounds(c Calendar, id string, start, end int64) Bounds {
	return Bounds{ID: id, Calendar: c, Start: time.Unix(start, 0).UTC(), End: time.Unix(end, 0).UTC()}
}
