package period

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"
)

// Spec describes a calendar in the words of a rule's limit.
type Spec struct {
	// Unit is the rule's period: one of the Name constants.
	Unit string
	// Zone is the rule's timezone, an IANA name; empty is UTC.
	Zone string
	// AnchorDay is the day months begin on, 1 to 31; in a month that lacks it,
	// the last. 0 is 1, and so it must be for other units.
	AnchorDay int
	// WeekStart is the day weeks begin on, monday to sunday; empty is monday,
	// and so it must be for other units.
	WeekStart string
}

// FieldError says what is wrong with one field of a limit.
type FieldError struct {
	// Field is the rule's name of it: period, timezone, anchorDay, weekStart.
	Field string
	// Message is for people: lower case, without the field's name.
	Message string
}

// SpecError lists every field of a Spec that is not right.
type SpecError struct{ Fields []FieldError }

// Error implements error.
func (e *SpecError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}

func (e *SpecError) add(field, format string, args ...any) {
	e.Fields = append(e.Fields, FieldError{field, fmt.Sprintf(format, args...)})
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// New returns the calendar of a Spec. Equal calendars are equal values, however
// often and in which spelling they are made. The error is a *SpecError.
func New(s Spec) (Calendar, error) {
	var bad SpecError
	unit, ok := parseUnit(s.Unit)
	if !ok {
		bad.add("period", "must be one of hour, day, week, month, year, never")
		return Calendar{}, &bad
	}
	p := plan{unit: unit, loc: time.UTC, anchor: 1, weekStart: time.Monday}
	p.setZone(s.Zone, &bad)
	p.setAnchor(s.AnchorDay, &bad)
	p.setWeekStart(s.WeekStart, &bad)
	if len(bad.Fields) > 0 {
		return Calendar{}, &bad
	}
	if p == utcMonth {
		return Calendar{}, nil
	}
	p.name = p.describe()
	return Calendar{unique.Make(p)}, nil
}

func (p *plan) setZone(name string, bad *SpecError) {
	if isUTC(name) {
		return
	}
	if p.unit == UnitNever {
		bad.add("timezone", "must be left out or UTC for period never, which begins and ends in no zone")
		return
	}
	loc, err := load(name)
	if err != nil {
		bad.add("timezone", "must be a name of the IANA time zone database, such as Europe/Istanbul, or UTC")
		return
	}
	p.loc = loc
}

func (p *plan) setAnchor(day int, bad *SpecError) {
	switch {
	case day == 0 || day == 1:
	case p.unit != UnitMonth:
		bad.add("anchorDay", "belongs to period month; leave it out for %s", p.unit)
	case day < 1 || day > 31:
		bad.add("anchorDay", "must be 1 to 31; in a month without that day it is the last")
	default:
		p.anchor = uint8(day)
	}
}

func (p *plan) setWeekStart(day string, bad *SpecError) {
	i := slices.Index(weekdays, day)
	switch {
	case day == "":
	case p.unit != UnitWeek:
		bad.add("weekStart", "belongs to period week; leave it out for %s", p.unit)
	case i < 0:
		bad.add("weekStart", "must be one of monday, tuesday, wednesday, thursday, friday, saturday, sunday")
	default:
		p.weekStart = time.Weekday(i)
	}
}
