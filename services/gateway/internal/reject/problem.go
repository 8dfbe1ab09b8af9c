package reject

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Response fields that the gate writes, in canonical form.
const (
	HeaderLimit  = "Ratelimit"
	HeaderPolicy = "Ratelimit-Policy"

	HeaderLegacyLimit     = "X-Ratelimit-Limit"
	HeaderLegacyRemaining = "X-Ratelimit-Remaining"
	HeaderLegacyReset     = "X-Ratelimit-Reset"
)

// Problem types (RFC 9457). The first two are registered by the IETF draft
// "RateLimit header fields for HTTP"; clients distinguish problems by them.
const (
	QuotaExceeded    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	ReducedCapacity  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	NotEntitled      = "urn:sluice:problem:not-entitled"
	IdentityMissing  = "urn:sluice:problem:identity-missing"
	BadKey           = "urn:sluice:problem:key-refused"
	ReservationEnded = "urn:sluice:problem:reservation-ended"
	ReservationsFull = "urn:sluice:problem:too-many-reservations"
	ReservationOther = "urn:sluice:problem:reservation-of-another-request"
	AboutBlank       = "about:blank" // the status says it all
)

// Problem is an answer of the gate itself.
type Problem struct {
	// Type is about:blank where it is empty.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Violated are the names of the policies that denied, as they stand in
	// RateLimit-Policy.
	Violated []string `json:"violated-policies,omitempty"`
	// DecisionID is empty where nothing was decided.
	DecisionID string `json:"decisionId,omitempty"`
}

// Capacity is a 503.
func Capacity(detail string) *Problem {
	return &Problem{Type: ReducedCapacity, Status: http.StatusServiceUnavailable, Title: "Temporarily reduced capacity", Detail: detail}
}

// Write sends the problem. The caller has set the headers that belong to it.
func (p *Problem) Write(w http.ResponseWriter) {
	if p.Type == "" {
		p.Type = AboutBlank
	}
	b, _ := json.Marshal(p) // strings and a number always have a JSON form
	b = append(b, '\n')
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(p.Status)
	_, _ = w.Write(b) // a client that went away is not an error of the gate
}

// BadQuestion answers 400 to a request of the admin port.
func BadQuestion(w http.ResponseWriter, detail string) {
	(&Problem{Status: http.StatusBadRequest, Title: "Bad question", Detail: detail}).Write(w)
}
