package period

import "time"

// Day returns the number of the local day that t lies in, by the clock of c's
// zone: the days from 1 January 1970 to its date. Periods that begin at
// midnight have Day(End) − Day(Start) days, whatever the clocks did meanwhile.
func (c Calendar) Day(t time.Time) int64 {
	p := c.plan()
	if p.changed() {
		return c.At(t).Calendar.Day(t)
	}
	offset, _ := zoneAt(p.loc, t.Unix())
	return floorDiv(t.Unix()+offset, day)
}
