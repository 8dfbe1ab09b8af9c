package counter

import (
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

const (
	tenantTag       = "{t:"
	quotaWord       = "quota"
	shadowMark      = "-shadow" // behind the word, of counters that deny nothing
	shadowAlgorithm = quotaWord + shadowMark
	afterQuota      = 2 // parts behind the word: the period's name and its id
	metricPart      = 2 // behind the tag come kind, name and metric
	algorithmPart   = 3
)

// KeptAfterPeriod is how long the keys of a period outlive it.
const KeptAfterPeriod = 72 * time.Hour

// Tenant is whose use a counter counts, empty for one of no tenant. It comes
// from the identity and not from the event: all tenants' requests charge the
// counter of a service.
func Tenant(identity string) string {
	rest, ok := strings.CutPrefix(identity, tenantTag)
	if !ok {
		return ""
	}
	escaped, _, ok := strings.Cut(rest, "}")
	if !ok {
		return ""
	}
	return unescaped(escaped)
}

// Metric is what a counter counts.
func Metric(identity string) string { return unescaped(part(identity, metricPart)) }

// Shadow reports a counter that only shadow rules charge.
func Shadow(identity string) bool {
	return strings.Contains(identity, shadowAlgorithm) && part(identity, algorithmPart) == shadowAlgorithm
}

// part is the nth part behind the tag, empty where there are fewer.
func part(identity string, n int) string {
	_, rest, _ := strings.Cut(identity, "}:")
	parts := strings.SplitN(rest, ":", n+2)
	if len(parts) <= n {
		return ""
	}
	return parts[n]
}

// Period is the id of the period that a counter counts, such as 202607; empty
// where it has none.
func Period(identity string) string {
	parts := strings.Split(identity, ":")
	if n := len(parts); n > afterQuota && strings.TrimSuffix(parts[n-1-afterQuota], shadowMark) == quotaWord {
		return parts[n-1]
	}
	return ""
}

// Calendar is the calendar and the period's id, such as month:202607; empty for
// a wallet.
func Calendar(identity string) string {
	if Period(identity) == "" {
		return ""
	}
	parts := strings.Split(identity, ":")
	return strings.Join(parts[len(parts)-afterQuota:], ":")
}

// Expires is when the keys of a counter's period may go; zero is never. It goes
// by a quota with rollover, whose keys the next period needs.
func Expires(identity string) time.Time {
	b, err := period.Parse(Calendar(identity))
	if err != nil || b.Endless() {
		return time.Time{}
	}
	return b.Calendar.At(b.End).End.Add(KeptAfterPeriod)
}

// unescaped resolves a part's percent escapes. What Postgres cannot hold as text
// is replaced: one such name would keep every other counter out.
func unescaped(part string) string {
	plain, err := url.PathUnescape(part)
	if err != nil {
		return part
	}
	return strings.ReplaceAll(strings.ToValidUTF8(plain, "\uFFFD"), "\x00", "\uFFFD")
}
