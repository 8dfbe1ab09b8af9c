package reject

import (
	"math/rand/v2"
	"net/http"
	"strconv"
)

// Reason says why a request was answered without a decision.
type Reason uint8

// The reasons.
const (
	NotReady Reason = iota
	BadHeader
	UnknownKey
	KeyRefused
	KeyRequired
	BadPath
	NoService
	NoUpstream
	TokenRefused
	IssuerAway
	StaleKeys
	BadMethod
	Reservation
	Reasons // their number
)

// ReasonNames are the values of the metric's label.
var ReasonNames = [Reasons]string{
	"not-ready", "bad-header", "unknown-key", "key-refused", "key-required", "bad-path", "no-service", "no-upstream",
	"token-refused", "issuer-away", "stale-keys", "bad-method", "reservation",
}

// Rejection answers a request on which no decision was made.
type Rejection struct {
	Reason Reason
	Problem
	// Challenge is the WWW-Authenticate of a 401, Allow the methods of a 405.
	Challenge, Allow string
	// Retry says that a later request may succeed: the answer has a Retry-After.
	Retry bool
}

// Challenges of a 401 (RFC 6750, section 3).
const (
	AnyBearer    = "Bearer"
	InvalidToken = `Bearer error="invalid_token"`
)

// Busy rejects with 503: another request may succeed within seconds.
func Busy(reason Reason, detail string) *Rejection {
	return &Rejection{Reason: reason, Problem: *Capacity(detail), Retry: true}
}

// Write sends the rejection.
func (r *Rejection) Write(w http.ResponseWriter) {
	h := w.Header()
	for name, value := range map[string]string{"WWW-Authenticate": r.Challenge, "Allow": r.Allow} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if r.Retry {
		h.Set("Retry-After", ShortWait())
	}
	r.Problem.Write(w)
}

// ShortWait is a Retry-After of 1 to 3 seconds: clients that are rejected together must not return together.
func ShortWait() string {
	return strconv.Itoa(1 + rand.IntN(3)) //nolint:gosec // spreads load, guards nothing
}
