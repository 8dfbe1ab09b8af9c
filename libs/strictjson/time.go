package strictjson

import (
	"regexp"
	"time"
)

// dateTime is RFC 3339's date-time, section 5.6, with T and Z in upper case as
// encoding/json demands. time.Parse alone takes less digits, a comma before the
// fraction and offsets of a day and more, which it cannot write again.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func (c *checker) checkTime(n node, path string) {
	s, ok := n.scalar.(string)
	if !ok {
		c.add(path, "must be a time such as 2026-07-23T14:32:07Z, not %s", n.describe())
		return
	}
	t, err := time.Parse(time.RFC3339, s)
	// A year that only an offset brings into range is out of it in UTC, where
	// it could not be written again.
	if year := t.UTC().Year(); err != nil || !dateTime.MatchString(s) || year < 0 || year > 9999 {
		c.add(path, "must be a time such as 2026-07-23T14:32:07Z or 2026-07-23T17:32:07.5+03:00 (RFC 3339)")
	}
}
