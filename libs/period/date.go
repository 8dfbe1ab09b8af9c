package period

import "time"

// A wall time is what a zone's clock reads, in seconds, counted as if that clock
// were UTC's: midnights are multiples of a day in any zone.

const (
	hour = 60 * 60
	day  = 24 * hour
	// epochWeekday is the day of the week of 1 January 1970.
	epochWeekday = int64(time.Thursday)
)

// datesAt returns the period that holds the second u: the wall time it begins
// at by the calendar, and its bounds in seconds since the epoch.
func (p *plan) datesAt(u int64) (wall, start, end int64) {
	offset, _ := zoneAt(p.loc, u)
	// The clock reads wall or later at u, so the period has begun. It can be
	// over already where the clock was set back across a midnight, and nothing
	// of it be left where the zone skipped a day.
	wall = p.begin(u + offset)
	start = firstAt(p.loc, wall)
	for {
		next := p.next(wall)
		if end = firstAt(p.loc, next); u < end {
			return wall, start, end
		}
		wall, start = next, end
	}
}

// begin returns the latest beginning of a period at or before a wall time.
func (p *plan) begin(wall int64) int64 {
	days := floorDiv(wall, day)
	switch p.unit {
	case UnitDay:
		return days * day
	case UnitWeek:
		since := floorMod(days+epochWeekday-int64(p.weekStart), 7)
		return (days - since) * day
	case UnitYear:
		y, _, _ := date(wall)
		return wallOf(y, time.January, 1)
	}
	y, m, _ := date(wall)
	if begin := p.monthBegin(y, m); begin <= wall {
		return begin
	}
	return p.monthBegin(y, m-1)
}

// next returns the beginning of the period after the one that begins at wall.
func (p *plan) next(wall int64) int64 {
	switch p.unit {
	case UnitDay:
		return wall + day
	case UnitWeek:
		return wall + 7*day
	case UnitYear:
		y, _, _ := date(wall)
		return wallOf(y+1, time.January, 1)
	}
	y, m, _ := date(wall)
	return p.monthBegin(y, m+1)
}

// monthBegin returns the beginning of the period that begins in a month. m may
// be 0 or 13.
func (p *plan) monthBegin(y int, m time.Month) int64 {
	last := wallOf(y, m+1, 0)
	return min(last, wallOf(y, m, int(p.anchor)))
}

// dateID names a period by the wall time it begins at. No month is passed over,
// so the month is enough whatever the anchor day.
func (p *plan) dateID(wall int64) string {
	y, m, d := date(wall)
	var buf [8]byte
	id := appendDigits(buf[:0], y, 4)
	if p.unit != UnitYear {
		id = appendDigits(id, int(m), 2)
	}
	if p.unit == UnitDay || p.unit == UnitWeek {
		id = appendDigits(id, d, 2)
	}
	return string(id)
}

func date(wall int64) (int, time.Month, int) { return time.Unix(wall, 0).UTC().Date() }

func wallOf(y int, m time.Month, d int) int64 {
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
}

// appendDigits appends n, 0 or more, with at least width digits.
func appendDigits(b []byte, n, width int) []byte {
	if n >= 10 || width > 1 {
		b = appendDigits(b, n/10, width-1)
	}
	return append(b, byte('0'+n%10))
}

func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
