package keeper

import (
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

// A quota counter's identity (schemas/redis) is
// {t:<tenant>}:<kind>:<name>:<metric>:quota:<period>:<period id>, parts
// percent-escaped; the tag of a counter that belongs to no tenant begins
// otherwise.
const (
	tenantTag  = "{t:"
	quotaWord  = "quota"
	shadowMark = "-shadow" // behind the word, of counters that deny nothing
	afterQuota = 2         // parts behind the word: the period's name and its id
	metricPart = 2         // behind the tag come kind, name and metric
)

// tenantOf is whose use a counter counts, empty for one of no tenant. It comes
// from the identity and not from the event: all tenants' requests charge the
// counter of a service.
func tenantOf(counter string) string {
	rest, ok := strings.CutPrefix(counter, tenantTag)
	if !ok {
		return ""
	}
	escaped, _, ok := strings.Cut(rest, "}")
	if !ok {
		return ""
	}
	return unescaped(escaped)
}

// metricOf is what a counter counts.
func metricOf(counter string) string {
	_, rest, _ := strings.Cut(counter, "}:")
	parts := strings.Split(rest, ":")
	if len(parts) <= metricPart {
		return ""
	}
	return unescaped(parts[metricPart])
}

// periodOf is the id of the period that a counter counts, such as 202607;
// empty where it has none.
func periodOf(counter string) string {
	parts := strings.Split(counter, ":")
	if n := len(parts); n > afterQuota && strings.TrimSuffix(parts[n-1-afterQuota], shadowMark) == quotaWord {
		return parts[n-1]
	}
	return ""
}

// keepPeriod is how long a period's keys outlive it (schemas/redis).
const keepPeriod = 72 * time.Hour

// expires is when the keys of a counter's period may go; zero is never. It goes
// by a quota with rollover, whose keys the next period needs.
func expires(counter string) time.Time {
	parts := strings.Split(counter, ":")
	n := len(parts)
	if n < afterQuota || periodOf(counter) == "" {
		return time.Time{}
	}
	b, err := period.Parse(parts[n-2] + ":" + parts[n-1])
	if err != nil || b.Endless() {
		return time.Time{}
	}
	return b.Calendar.At(b.End).End.Add(keepPeriod)
}
