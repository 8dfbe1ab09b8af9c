package charge

import "time"

// Wait is the Retry-After of a denied request in seconds, at least 1: the
// longest of those that deny. ok is false when waiting does not help.
func Wait(judged []Judgement) (seconds int64, ok bool) {
	seconds = 1
	for i := range judged {
		switch j := &judged[i]; {
		case j.State.Allowed:
		case j.State.Never:
			return 0, false
		case j.Shared: // its share renews then, but the store may be back before
			seconds = max(seconds, WholeSeconds(j.State.RetryAfter))
		default:
			seconds = max(seconds, WholeSeconds(max(j.State.RetryAfter, j.State.Reset)))
		}
	}
	return seconds, true
}

// WholeSeconds rounds up: a client that waits must not come too early.
func WholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
