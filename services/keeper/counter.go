package keeper

import "strings"

// A quota counter's identity (schemas/redis) is
// {t:<tenant>}:<kind>:<name>:<metric>:quota:<period>:<period id>, parts
// percent-escaped; the tag of a counter that belongs to no tenant begins
// otherwise.
const (
	tenantTag  = "{t:"
	quotaWord  = "quota"
	afterQuota = 2 // parts behind the word: the period's name and its id
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

// periodOf is the id of the period that a counter counts, such as 202607;
// empty where it has none.
func periodOf(counter string) string {
	parts := strings.Split(counter, ":")
	if n := len(parts); n > afterQuota && parts[n-1-afterQuota] == quotaWord {
		return parts[n-1]
	}
	return ""
}
