package rule

import "strings"

// kindLetters stand for kinds in keys; they are part of counters' identities.
const kindLetters = "tuakse"

// space is the letter before a hash tag's value: counters of a tenant, or of a
// service. sharedTag holds counters of requests without the identity.
const (
	tenantSpace  = "t"
	serviceSpace = "s"
	sharedTag    = "{-}"
)

// counterKey builds a counter's identity; schemas/redis/KEYS.md is its contract.
func counterKey(k kind, s subjectParts, tail string) string {
	space := tenantSpace
	if k == kindService || k == kindEndpoint {
		space = serviceSpace
	}
	owner, name, letter := escape(s.owner), escape(s.name), kindLetters[k:k+1]
	if owner == "" {
		return sharedTag + ":" + letter + ":" + name + tail
	}
	return "{" + space + ":" + owner + "}:" + letter + ":" + name + tail
}

// WalletCounter returns the identity of the counter that a tenant's prepaid
// quota of a metric charges.
func WalletCounter(tenant, metric string) string {
	return counterKey(kindTenant, subjectParts{owner: tenant}, ":"+metric+":quota")
}

// TenantTag returns the hash tag of a tenant's counters, braces included: what
// lies beside them begins with it.
func TenantTag(tenant string) string { return "{" + tenantSpace + ":" + escape(tenant) + "}" }

const upperHex = "0123456789ABCDEF"

// escape percent-escapes what could close a hash tag, imitate a separator or
// trouble a reader of keys: braces, colon, percent, space and controls.
func escape(s string) string {
	n := 0
	for i := 0; i < len(s); i++ {
		if mustEscape(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !mustEscape(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

func mustEscape(c byte) bool {
	return c <= ' ' || c == 0x7f || c == '{' || c == '}' || c == ':' || c == '%'
}
