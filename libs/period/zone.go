package period

import (
	"errors"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for containers without a zone database
)

var errZone = errors.New("unknown time zone")

// locations holds the zones that were loaded, by name: a Location is compared by
// its address. The database's zones bound it.
var locations sync.Map // string → *time.Location

func isUTC(name string) bool { return name == "" || name == "UTC" || name == "Etc/UTC" }

// load returns the one Location of a name. Names that mean another zone on
// another machine are refused, and so are the directories of some systems whose
// zones count leap seconds or are copies.
func load(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil
	}
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "Local", "localtime", "posixrules", "Factory", "right", "posix":
		return nil, errZone
	}
	if strings.ContainsFunc(name, notInZoneName) {
		return nil, errZone
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	kept, _ := locations.LoadOrStore(name, l)
	return kept.(*time.Location), nil
}

func notInZoneName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("/_+-", r)
}

// forever is past every second a period can begin or end at.
const forever = 1 << 60

// zoneAt returns the offset from UTC in force at the second u, and a second
// after u up to which it stays in force.
func zoneAt(loc *time.Location, u int64) (offset, until int64) {
	if loc == time.UTC {
		return 0, forever
	}
	t := time.Unix(u, 0).In(loc)
	_, o := t.Zone()
	_, end := t.ZoneBounds()
	if end.IsZero() {
		return int64(o), forever
	}
	if until = end.Unix(); until <= u {
		// Past the database's last entry package time gives the end of the year
		// as 365 days after its start, so that the last day of a leap year lies
		// outside its own bounds. Nothing changes before that day is over.
		until = (floorDiv(u, day) + 1) * day
	}
	return int64(o), until
}

// firstAt returns the first second at which a zone's clock reads wall or later.
func firstAt(loc *time.Location, wall int64) int64 {
	if loc == time.UTC {
		return wall
	}
	const most = 26 * hour // no zone is further from UTC (RFC 8536, section 3.2)
	for u := wall - most; ; {
		offset, until := zoneAt(loc, u)
		if first := max(u, wall-offset); first < until {
			return first
		}
		u = until
	}
}
