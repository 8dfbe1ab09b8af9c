package rule

import (
	"slices"
	"strconv"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Bounds of the statuses that refundOn may name: errors, of the client or of
// the service.
const (
	firstErrorStatus = 400
	lastErrorStatus  = 599
)

// Failure is how a call that was let pass ended, beside its status.
type Failure uint8

// Failures.
const (
	// Answered: the service answered, whatever it said.
	Answered Failure = 1 << iota
	// TimedOut: it did not in time.
	TimedOut
	// Unanswered: it could not be reached, or the connection broke.
	Unanswered
	// ClientsFault: the client went away, or its request was broken. That gives
	// nothing back, whatever the status.
	ClientsFault
	// Abandoned: the gate itself did not wait for the end. Every rule that gives
	// back at all does so then.
	Abandoned
)

// Failures are the ends of a call that a rule gives back for. They are immutable.
type Failures struct {
	statuses [lastErrorStatus + 1 - firstErrorStatus]bool
	ways     Failure
}

// failuresOf makes them of a valid refundOn; nil where it is empty.
func failuresOf(refundOn []string) *Failures {
	if len(refundOn) == 0 {
		return nil
	}
	f := new(Failures)
	for _, name := range refundOn {
		switch name {
		case rules.RefundServerErrors:
			for status := 500; status <= lastErrorStatus; status++ {
				f.statuses[status-firstErrorStatus] = true
			}
		case rules.RefundTimeout:
			f.ways |= TimedOut
		case rules.RefundError:
			f.ways |= Unanswered
		default:
			if status, ok := errorStatus(name); ok {
				f.statuses[status-firstErrorStatus] = true
			}
		}
	}
	return f
}

// Has reports whether a call that ended so, with the status that the client is
// answered, is given back. It may be asked of nil.
func (f *Failures) Has(status int, how Failure) bool {
	switch {
	case f == nil || how == ClientsFault:
		return false
	case how == Abandoned:
		return true
	case f.ways&how != 0:
		return true
	}
	return status >= firstErrorStatus && status <= lastErrorStatus && f.statuses[status-firstErrorStatus]
}

// errorStatus reads three digits, 400 to 599.
func errorStatus(name string) (status int, ok bool) {
	status, err := strconv.Atoi(name)
	return status, err == nil && len(name) == 3 && status >= firstErrorStatus && status <= lastErrorStatus
}

func (v *validator) refundOn(names []string) {
	for i, name := range names {
		field := "refundOn[" + strconv.Itoa(i) + "]"
		switch name {
		case rules.RefundServerErrors, rules.RefundTimeout, rules.RefundError:
		default:
			if _, ok := errorStatus(name); !ok {
				v.add(field, "must be %s, %s, %s or a status %d to %d such as \"503\"",
					rules.RefundServerErrors, rules.RefundTimeout, rules.RefundError, firstErrorStatus, lastErrorStatus)
			}
		}
		if slices.Contains(names[:i], name) {
			v.add(field, "must be named once")
		}
	}
}
