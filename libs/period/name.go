package period

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse returns the period of a name that Bounds.Name gave, with the bounds it
// has by its own calendar: a change of calendar may have made it shorter.
func Parse(name string) (Bounds, error) {
	calendar, id, _ := strings.Cut(name, ":")
	c, err := parseCalendar(calendar)
	if err != nil {
		return Bounds{}, fmt.Errorf("period %q: %w", name, err)
	}
	p := c.plan()
	if p.unit == UnitNever {
		return Bounds{ID: "all", Calendar: c}, nil
	}
	wall, err := p.wallOfID(id)
	if err != nil {
		return Bounds{}, fmt.Errorf("period %q: %w", name, err)
	}
	if p.unit == UnitHour {
		start, end := hourAt(p.loc, wall) // hours are named in UTC
		return bounds(c, id, start, end), nil
	}
	return bounds(c, id, firstAt(p.loc, wall), firstAt(p.loc, p.next(wall))), nil
}

// parseCalendar reads what describe writes.
func parseCalendar(name string) (Calendar, error) {
	var s Spec
	name, s.Zone, _ = strings.Cut(name, "@")
	var more string
	s.Unit, more, _ = strings.Cut(name, "+")
	if day, err := strconv.Atoi(more); err == nil {
		s.AnchorDay = day
	} else {
		s.WeekStart = more
	}
	return New(s)
}

// wallOfID is the wall time that a period's id names, of an hour in UTC.
func (p *plan) wallOfID(id string) (int64, error) {
	parts := [6]int{1, 1, 1, 0, 0, 0}
	widths := [6]int{4, 2, 2, 2, 2, 2}
	rest := id
	for i := 0; i < len(parts) && rest != ""; i++ {
		width := min(widths[i], len(rest))
		n, err := strconv.ParseUint(rest[:width], 10, 16)
		if err != nil || width < widths[i] {
			return 0, fmt.Errorf("id %q is no date", id)
		}
		parts[i], rest = int(n), rest[width:]
	}
	if rest != "" || id == "" {
		return 0, fmt.Errorf("id %q is no date", id)
	}
	wall := time.Date(parts[0], time.Month(parts[1]), parts[2], parts[3], parts[4], parts[5], 0, time.UTC).Unix()
	if p.unit == UnitMonth {
		wall = p.monthBegin(parts[0], time.Month(parts[1]))
	}
	return wall, nil
}
