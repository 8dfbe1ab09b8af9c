package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Header names in canonical form, so that maps can be written directly.
const (
	headerDecisionID = "Sluice-Decision-Id"
	headerDegraded   = "Sluice-Degraded"
	headerLimit      = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerRetryAfter = "Retry-After"
)

// degradedStore is the value of Sluice-Degraded while the counters are away.
const degradedStore = "store"

// maxSFInteger bounds integers of structured fields (RFC 9651, section 3.3.1).
const maxSFInteger = 999_999_999_999_999

// setHeaders puts what the decision says on an answer, in place of what an
// upstream may have written there.
func (x *exchange) setHeaders(h http.Header) {
	degraded := x.verdict.degraded
	n := 1
	values := make([]string, 4) // one allocation for all single values
	values[0] = x.id
	h[headerDecisionID] = values[0:1:1]
	if len(x.judged) > 0 && !x.onlyUnlimited() {
		policies, limits := x.fields()
		values[1], values[2], n = policies, limits, 3
		h[headerPolicy], h[headerLimit] = values[1:2:2], values[2:3:3]
	}
	if degraded {
		values[n] = degradedStore
		h[headerDegraded] = values[n : n+1 : n+1]
	}
}

func (x *exchange) onlyUnlimited() bool {
	return !slices.ContainsFunc(x.judged, func(j judgement) bool { return !j.state.Unlimited })
}

// fields writes RateLimit-Policy and RateLimit: lists of strings with integer
// parameters, strict RFC 9651, tightest first (IETF draft "RateLimit header
// fields for HTTP"). A counter without a limit has no place in either.
func (x *exchange) fields() (policies, limits string) {
	b := x.scratch[:0]
	for i := range x.judged {
		if j := &x.judged[i]; !j.state.Unlimited {
			b = appendPolicyName(separate(b, 0), j.rule.ID)
			b = appendParam(b, ";q=", j.state.Limit)
			if w := j.window(x.judgedAt); w > 0 {
				b = appendParam(b, ";w=", wholeSeconds(w))
			}
		}
	}
	middle := len(b)
	for i := range x.judged {
		if j := &x.judged[i]; !j.state.Unlimited {
			b = appendPolicyName(separate(b, middle), j.rule.ID)
			b = appendParam(b, ";r=", j.state.Remaining)
			if !j.state.Never {
				b = appendParam(b, ";t=", wholeSeconds(max(j.state.Reset, j.state.RetryAfter)))
			}
		}
	}
	x.scratch = b
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

func appendParam(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), min(max(n, 0), maxSFInteger), 10)
}

// wholeSeconds rounds up: a client that waits must not come too early.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// cut answers a request that the decision does not let pass. The event is
// recorded first.
func (g *gate) cut(x *exchange) bool {
	v := &x.verdict
	if v.status == 0 {
		return true
	}
	g.record(x, v.status)
	h := x.w.Header()
	x.setHeaders(h)
	p := problem{status: v.status, violated: v.violated, decision: x.id}
	switch v.status {
	case http.StatusServiceUnavailable:
		h[headerRetryAfter] = []string{shortWait()}
		p.kind, p.title, p.detail = problemReducedCapacity, "Temporarily reduced capacity", "The counters cannot be reached; a policy forbids to go on without them."
	case http.StatusTooManyRequests:
		if wait, ok := x.wait(); ok {
			h[headerRetryAfter] = []string{strconv.FormatInt(wait, 10)}
		}
		p.kind, p.title, p.detail = problemQuotaExceeded, "Quota exceeded", "The request would exceed what the violated policies allow."
	default:
		p.kind, p.title, p.detail = problemNotEntitled, "Not entitled", "The violated policies entitle to nothing here."
		if v.reason == reasonIdentityMissing {
			p.kind, p.title, p.detail = problemIdentityMissing, "Identity missing", "The violated policies demand an identity that the request does not have."
		}
	}
	x.scratch = p.write(x.w, x.scratch)
	return false
}

// wait is the Retry-After of a denied request in seconds, at least 1: the
// longest of those that deny. ok is false when waiting does not help.
func (x *exchange) wait() (seconds int64, ok bool) {
	seconds = 1
	for i := range x.judged {
		switch j := &x.judged[i]; {
		case j.state.Allowed:
		case j.state.Never:
			return 0, false
		default:
			seconds = max(seconds, wholeSeconds(max(j.state.RetryAfter, j.state.Reset)))
		}
	}
	return seconds, true
}

// window is the policy's length: a rate's window, a quota's current period.
func (j *judgement) window(at time.Time) time.Duration {
	if j.rule.Algorithm == limit.RenewingQuota {
		b := j.rule.Calendar.At(at)
		return b.End.Sub(b.Start)
	}
	return j.rule.Window
}
