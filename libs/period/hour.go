package period

import (
	"sort"
	"time"
)

// hourAt returns the bounds of the local hour that holds the second u. An hour
// that the clock shows twice is two periods. Where the clock is moved by part of
// an hour, as Lord Howe's is by half of one, the periods on both sides end at
// the change and are shorter.
func hourAt(loc *time.Location, u int64) (start, end int64) {
	past := pastHour(loc, u)
	grid := u - past
	start, end = grid, grid+hour
	// onGrid holds for the seconds of the hour that are of u's side of a change.
	onGrid := func(v int64) bool { return pastHour(loc, v) == v-grid }
	if !onGrid(start) {
		start += int64(sort.Search(int(past), func(i int) bool { return onGrid(grid + int64(i)) }))
	}
	if !onGrid(end - 1) {
		end = u + int64(sort.Search(int(end-u), func(i int) bool { return !onGrid(u + int64(i)) }))
	}
	return start, end
}

// pastHour returns how many seconds past the full hour a zone's clock reads.
func pastHour(loc *time.Location, u int64) int64 {
	offset, _ := zoneAt(loc, u)
	return floorMod(u+offset, hour)
}

// hourID names an hour by its beginning in UTC: unlike local hours those neither
// come twice nor out of order.
func hourID(start int64) string {
	y, m, d := date(start)
	h, minute, s := time.Unix(start, 0).UTC().Clock()
	var buf [14]byte
	id := appendDigits(buf[:0], y, 4)
	for _, n := range [...]int{int(m), d, h} {
		id = appendDigits(id, n, 2)
	}
	if minute != 0 || s != 0 {
		id = appendDigits(id, minute, 2)
	}
	if s != 0 {
		id = appendDigits(id, s, 2)
	}
	return string(id)
}
