package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Problem is an RFC 9457 problem, the body of every answer that is an error.
type Problem struct {
	Type   string       `json:"type" doc:"Stable identifier of the kind of problem." example:"urn:sluice:problem:invalid"`
	Title  string       `json:"title" doc:"The status in words."`
	Status int          `json:"status" doc:"The HTTP status code."`
	Detail string       `json:"detail,omitempty" doc:"What is wrong this time, for people."`
	Errors []FieldError `json:"errors,omitempty" doc:"Each mistake in the request, by its field."`

	header http.Header
}

// FieldError is one mistake in a request.
type FieldError struct {
	Location string `json:"location" enum:"body,query,path,header" doc:"The part of the request that holds the field."`
	Field    string `json:"field,omitempty" doc:"Path of the field, such as limit.window; absent for the part as a whole."`
	Message  string `json:"message" doc:"What would be right."`
}

// InBody is a mistake in the body.
func InBody(field, message string) FieldError { return FieldError{"body", field, message} }

// InQuery is a mistake in a query parameter.
func InQuery(field, message string) FieldError { return FieldError{"query", field, message} }

// InPath is a mistake in a part of the path.
func InPath(field, message string) FieldError { return FieldError{"path", field, message} }

// InHeader is a mistake in a header field.
func InHeader(field, message string) FieldError { return FieldError{"header", field, message} }

const problemType = "application/problem+json"

// NewProblem makes a problem; id becomes part of its type and never changes.
func NewProblem(status int, id, detail string) *Problem {
	return &Problem{Type: "urn:sluice:problem:" + id, Title: http.StatusText(status), Status: status, Detail: detail}
}

// Invalid is the answer to a request whose fields are wrong.
func Invalid(found ...FieldError) *Problem {
	p := NewProblem(http.StatusBadRequest, "invalid", "the request is not valid; errors names each field")
	p.Errors = found
	return p
}

// SetHeader adds a field to the header of the answer, and returns p.
func (p *Problem) SetHeader(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// Error makes a Problem an error that handlers return.
func (p *Problem) Error() string { return p.Detail }

// Reason is what is wrong in one line, where a problem is part of an answer.
func (p *Problem) Reason() string {
	if len(p.Errors) > 0 {
		return p.Errors[0].Field + ": " + p.Errors[0].Message
	}
	return p.Detail
}

// GetStatus is for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders is for huma: Retry-After, WWW-Authenticate and the like.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType is for huma.
func (p *Problem) ContentType(string) string { return problemType }

// write answers outside of huma's handlers.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // the client is gone, and nobody else to tell
}

// huma makes its own errors through this variable, for parameters it cannot
// parse. It is the only hook there is, and the control plane is huma's only
// user in this program; set before main, so that no request sees another.
func init() { huma.NewError = fromHuma }

func fromHuma(status int, message string, errs ...error) huma.StatusError {
	switch status {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		p := Invalid()
		for _, err := range errs {
			p.Errors = append(p.Errors, fieldOfHuma(err))
		}
		if len(errs) == 0 {
			p.Detail = message
		}
		return p
	case http.StatusInternalServerError:
		return NewProblem(status, "internal", "an unexpected error; it is in the log")
	}
	return NewProblem(status, "http", message)
}

// humaTexts are its words for values of a wrong type, which do not say what
// would be right.
var humaTexts = map[string]string{"invalid integer": "must be a whole number", "invalid boolean": "must be true or false"}

// fieldOfHuma turns query.limit into location and field.
func fieldOfHuma(err error) FieldError {
	var detailer huma.ErrorDetailer
	if !errors.As(err, &detailer) {
		return FieldError{Location: "query", Message: err.Error()}
	}
	detail := detailer.ErrorDetail()
	location, field, _ := strings.Cut(detail.Location, ".")
	message := detail.Message
	if better, ok := humaTexts[message]; ok {
		message = better
	}
	if strings.Contains(message, time.RFC3339Nano) { // Go's way to write a format, which says nothing elsewhere
		message = "must be RFC 3339, such as 2026-07-23T00:00:00Z"
	}
	return FieldError{Location: location, Field: field, Message: message}
}
