package ticket

// Reason is why a ticket was refused. It is an error, to be asked for with
// errors.Is.
type Reason uint8

// The reasons, in the order they are looked for.
const (
	// ErrMalformed: not a ticket of this version, or over MaxLength.
	ErrMalformed Reason = iota
	// ErrUnknownKey: signed with a key that is not, or no longer, in force.
	ErrUnknownKey
	// ErrForged: the MAC does not hold.
	ErrForged
	// ErrPurpose: a ticket for something else.
	ErrPurpose
	// ErrNotYet: its time is still to come, leeway included.
	ErrNotYet
	// ErrExpired: its time is over, leeway included.
	ErrExpired
	// ErrTooLong: it ends later than a ticket of its purpose may.
	ErrTooLong

	reasons
)

var reasonTexts = [reasons]string{
	ErrMalformed:  "malformed ticket",
	ErrUnknownKey: "ticket of an unknown key",
	ErrForged:     "forged ticket",
	ErrPurpose:    "ticket for another purpose",
	ErrNotYet:     "ticket not yet valid",
	ErrExpired:    "ticket expired",
	ErrTooLong:    "ticket ends too far ahead",
}

// Error says the reason in words that may be shown to whoever showed the ticket.
func (r Reason) Error() string {
	if r >= reasons {
		return "refused ticket"
	}
	return reasonTexts[r]
}
