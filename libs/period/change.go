package period

import (
	"fmt"
	"time"
	"unique"
)

// change is two calendars and the second, since the epoch, at which the second
// one takes over: a boundary of the first. Of a plan that is no change both are
// the zero value.
type change struct {
	from      int64
	old, then Calendar
}

func (c *change) changed() bool { return c.old != c.then }

// Then returns the calendar that is c until the end of c's period that holds at,
// and next from there on. As that end is seldom a boundary of next, the first
// period of next can be short: it is the rest of the one that next was in, and
// has its id (see Bounds.Prorate).
//
// c may be changed already: a change that has not come into force at at is
// replaced, one that has is kept, for the sake of periods before it. The units
// must be the same; another unit is another counter, at once, and no change.
//
// After the end of the first period of next, next alone says the same. Before,
// a rule must carry the change; of any earlier one it needs only the calendar
// that is in force, c.At(at).Calendar.
func (c Calendar) Then(next Calendar, at time.Time) (Calendar, error) {
	p, q := c.plan(), next.plan()
	if p.unit != q.unit {
		return Calendar{}, fmt.Errorf("change calendar %s to %s: periods of another unit", c, next)
	}
	if p.changed() && at.Unix() < p.from {
		return p.old.Then(next, at)
	}
	running := c.At(at)
	if running.Calendar == next {
		return c, nil
	}
	end := running.End
	n := plan{unit: p.unit, change: change{end.Unix(), c, next}}
	n.name = c.String() + "-until-" + end.Format("20060102T150405Z") + "-then-" + next.String()
	return Calendar{unique.Make(n)}, nil
}

func (c *change) at(t time.Time) Bounds {
	if t.Unix() < c.from {
		return c.old.At(t)
	}
	b := c.then.At(t)
	if b.Start.Unix() < c.from {
		b.Start = time.Unix(c.from, 0).UTC()
	}
	return b
}
