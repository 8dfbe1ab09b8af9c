package gateway

import (
	"net/http"
	"strconv"
)

// Problem types (RFC 9457). The first two are registered by the IETF draft
// "RateLimit header fields for HTTP"; clients tell problems apart by them.
const (
	problemQuotaExceeded    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	problemReducedCapacity  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	problemNotEntitled      = "urn:sluice:problem:not-entitled"
	problemIdentityMissing  = "urn:sluice:problem:identity-missing"
	problemKeyRefused       = "urn:sluice:problem:key-refused"
	problemReservationEnded = "urn:sluice:problem:reservation-ended"
	problemReservationsFull = "urn:sluice:problem:too-many-reservations"
	problemReservationOther = "urn:sluice:problem:reservation-of-another-request"
	problemNone             = "about:blank" // the status says it all
)

// problem is an answer of the gate itself.
type problem struct {
	kind   string
	status int
	title  string
	detail string
	// violated are the names of the policies that denied, as they stand in
	// RateLimit-Policy.
	violated []string
	// decision is the decision's id, empty where nothing was decided.
	decision string
}

// write sends the problem. Headers that belong to it are set already.
func (p *problem) write(w http.ResponseWriter, scratch []byte) []byte {
	b := appendString(append(scratch[:0], `{"type":`...), p.kind)
	b = appendString(append(b, `,"title":`...), p.title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.status), 10)
	b = appendOptional(b, `,"detail":`, p.detail)
	if len(p.violated) > 0 {
		b = append(b, `,"violated-policies":[`...)
		for i, name := range p.violated {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, name)
		}
		b = append(b, ']')
	}
	b = append(appendOptional(b, `,"decisionId":`, p.decision), '}', '\n')

	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	// A client that went away is not our error.
	_, _ = w.Write(b)
	return b
}
