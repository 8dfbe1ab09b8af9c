package period

import "time"

// RunningIDs returns the ids that a period which holds t can have, whatever its
// unit and zone: about forty, for looking up counters by period before their
// calendars are known. Zones of minutes that are no quarters, of which there
// are none today, are left out for hours.
func RunningIDs(t time.Time) []string {
	t = t.UTC()
	ids := []string{"all"}
	for years := -1; years <= 1; years++ {
		ids = append(ids, t.AddDate(0, 0, 2*years).Format("2006"))
	}
	month := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	for months := -2; months <= 1; months++ { // an anchored month begins up to one before the local date's
		ids = append(ids, month.AddDate(0, months, 0).Format("200601"))
	}
	for days := -9; days <= 1; days++ { // a week begins up to six days before the local date, and a zone's skipped day
		ids = append(ids, t.AddDate(0, 0, days).Format("20060102"))
	}
	for begin := t.Truncate(quarter); t.Sub(begin) < 2*time.Hour; begin = begin.Add(-quarter) {
		ids = append(ids, hourID(begin.Unix()))
	}
	return ids
}

const quarter = 15 * time.Minute
