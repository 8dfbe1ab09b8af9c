package period

import (
	"math/bits"
	"time"
)

// Bounds is one period of a calendar.
type Bounds struct {
	// ID names the period within Calendar: a month or year by the local month
	// or year it begins in (202607, 2026), a day or week by the local date it
	// begins on (20260723), an hour by its beginning in UTC (2026072314, with
	// minutes where those are not zero: 202607231430), never by "all".
	ID string
	// Calendar is the one whose period this is: of a changed calendar the old
	// one or the new one, whichever is in force at Start. Counter keys name it
	// beside ID.
	Calendar Calendar
	// Start is the first instant, End the first instant after; UTC, whole
	// seconds. Both are zero where the period is endless.
	Start, End time.Time
}

// Name is the period's name among all calendars, such as month:202607: the
// calendar and the id as counter keys hold them.
func (b Bounds) Name() string { return b.Calendar.String() + ":" + b.ID }

// Endless reports a period without bounds, that of UnitNever: it renews nothing
// and expires nothing.
func (b Bounds) Endless() bool { return b.End.IsZero() }

// Contains reports whether t lies in [Start, End).
func (b Bounds) Contains(t time.Time) bool {
	return !t.Before(b.Start) && (t.Before(b.End) || b.Endless())
}

// Prorate returns the part of n, a limit of 0 or more units for a whole period,
// that falls on b, rounded up to a whole unit. It is n unless a change of
// calendar made b begin in the middle of a period.
func (b Bounds) Prorate(n int64) int64 {
	if b.Endless() || n <= 0 {
		return n
	}
	whole := b.Calendar.At(b.Start)
	length, all := seconds(b.Start, b.End), seconds(whole.Start, b.End)
	if length >= all {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), length)
	q, r := bits.Div64(hi, lo, all)
	if r > 0 {
		q++
	}
	return int64(q)
}

func seconds(from, to time.Time) uint64 { return uint64(to.Unix() - from.Unix()) }
