package respond

import (
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
)

// maxSFInteger bounds integers of structured fields (RFC 9651, section 3.3.1).
const maxSFInteger = 999_999_999_999_999

// fields writes RateLimit-Policy and RateLimit: lists of strings with integer
// parameters, strict RFC 9651, tightest first (IETF draft "RateLimit header
// fields for HTTP"). A counter without a limit has no place in either.
func fields(q *charge.Charges) (policies, limits string) {
	b := make([]byte, 0, 96*len(q.Judged))
	for i := range q.Judged {
		if j := &q.Judged[i]; !j.State.Unlimited {
			b = appendPolicyName(separate(b, 0), j.Rule.ID)
			b = appendParam(b, ";q=", j.State.Limit)
			if w := window(j, q.JudgedAt); w > 0 {
				b = appendParam(b, ";w=", charge.WholeSeconds(w))
			}
		}
	}
	middle := len(b)
	for i := range q.Judged {
		if j := &q.Judged[i]; !j.State.Unlimited {
			b = appendPolicyName(separate(b, middle), j.Rule.ID)
			b = appendParam(b, ";r=", available(j))
			if t := max(j.State.Reset, j.State.RetryAfter); !neverRenews(j, t) {
				b = appendParam(b, ";t=", charge.WholeSeconds(t))
			}
		}
	}
	return string(b[:middle]), string(b[middle:])
}

func separate(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return b
}

// appendPolicyName writes a rule's id as an sf-string. Such a string is ASCII:
// what is not printable is percent-escaped, and so is the percent sign itself,
// so that two ids never share a name.
func appendPolicyName(b []byte, id string) []byte {
	b = append(b, '"')
	for i := range len(id) {
		switch c := id[i]; {
		case c < 0x20 || c >= 0x7f || c == '%':
			const digits = "0123456789ABCDEF"
			b = append(b, '%', digits[c>>4], digits[c&15])
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// policyName is the name as a plain string: what a client reads in the field.
func policyName(id string) string {
	quoted := appendPolicyName(nil, id)
	plain := quoted[:0]
	for i := 1; i < len(quoted)-1; i++ {
		if quoted[i] == '\\' {
			i++
		}
		plain = append(plain, quoted[i])
	}
	return string(plain)
}

// policyNames are those of rules, nil of none.
func policyNames(ids []string) (names []string) {
	for _, id := range ids {
		names = append(names, policyName(id))
	}
	return names
}

func appendParam(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), min(max(n, 0), maxSFInteger), 10)
}

// neverRenews reports a counter of which no time brings more units: t, its
// reset, says nothing then. A quota's period ends later than now, unless it is
// endless.
func neverRenews(j *charge.Judgement, t time.Duration) bool {
	return j.State.Never || j.Rule.Algorithm.Quota() && t <= 0
}

// available is what clients are told is left: units that would pass now, and
// never more than the policy's quota, since q says what a whole window has. A
// rested counter whose burst is above its limit would let more pass.
func available(j *charge.Judgement) int64 {
	return max(0, min(j.State.Remaining, j.State.Limit))
}

// window is the policy's length: a rate's window, a quota's current period; 0
// for what has none.
func window(j *charge.Judgement, at time.Time) time.Duration {
	switch {
	case j.Rule.Prepaid:
		return 0
	case j.Rule.Algorithm.Quota():
		b := j.Rule.Calendar.At(at)
		return b.End.Sub(b.Start) // of an endless one both are zero
	}
	return j.Rule.Window
}
