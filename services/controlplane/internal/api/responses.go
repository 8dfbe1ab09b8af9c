package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// statusNotes say what each answer means that is no success, in the contract
// and on its page.
var statusNotes = map[int]string{
	http.StatusBadRequest:            "A field, parameter or header is wrong; errors names each.",
	http.StatusUnauthorized:          "No token, or one that is not known here.",
	http.StatusForbidden:             "The token has role readonly.",
	http.StatusNotFound:              "There is nothing by this id.",
	http.StatusConflict:              "Another resource has this id or prefix, the key was revoked for good, a subscription, a customer's accounts or what names a service stand in the way, or the first request with this Idempotency-Key is still under way; detail says which.",
	http.StatusPreconditionFailed:    "It was changed since the ETag in If-Match, or is there in spite of If-None-Match.",
	http.StatusRequestEntityTooLarge: "The body has more than 1 MB, or is too long to be carried to the gateways.",
	http.StatusUnsupportedMediaType:  "The body is not JSON in UTF-8, or is compressed.",
	http.StatusUnprocessableEntity:   "The Idempotency-Key came before, with another request.",
	http.StatusPreconditionRequired:  "Neither If-Match nor If-None-Match was sent.",
	http.StatusServiceUnavailable:    "The database or the usage store cannot be reached; Retry-After says when to come back.",
}

// statusesOf lists the refusals of an operation. default stays for the rest:
// a bug of ours (500), a body that does not arrive in time (408).
func statusesOf(op huma.Operation) []int {
	statuses := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusServiceUnavailable}
	if op.Method != http.MethodGet {
		statuses = append(statuses, http.StatusForbidden)
	}
	if strings.Contains(op.Path, "{id}") {
		statuses = append(statuses, http.StatusNotFound)
	}
	switch op.Method {
	case http.MethodPost:
		statuses = append(statuses, http.StatusConflict)
		if strings.HasSuffix(op.Path, "/topups") {
			statuses = append(statuses, http.StatusUnprocessableEntity)
		}
	case http.MethodPut, http.MethodPatch:
		statuses = append(statuses, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	case http.MethodDelete:
		return append(statuses, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	default:
		return statuses
	}
	return append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
}

// describeResponses writes an operation's refusals into the contract. Huma's
// own way to do so would promise 422 everywhere.
func describeResponses(op *huma.Operation) {
	other := op.Responses["default"]
	other.Description = "Any other error."
	for _, status := range statusesOf(*op) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: statusNotes[status], Content: other.Content}
	}
}
