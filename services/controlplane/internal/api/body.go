package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// maxBody bounds a request body, in bytes.
const maxBody = 1 << 20

// readBody reads the whole body of a request that has one. Handlers then work
// on bytes, and none can forget a bound.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil, nil
	}
	if p := checkMediaType(r); p != nil {
		return nil, p
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, NewProblem(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body may have at most %d bytes", maxBody))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, NewProblem(http.StatusRequestTimeout, "timeout", "the body did not arrive in time")
	case err != nil:
		return nil, NewProblem(http.StatusBadRequest, "invalid", "the body could not be read to its end")
	}
	return data, nil
}

func checkMediaType(r *http.Request) *Problem {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "send the body without Content-Encoding")
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	ok := err == nil && (charset == "" || strings.EqualFold(charset, "utf-8")) &&
		(media == "application/json" || r.Method == http.MethodPatch && media == "application/merge-patch+json")
	if !ok {
		return NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "send Content-Type: application/json, in UTF-8")
	}
	return nil
}

// Decode decodes the body of the request of ctx strictly; the problem names
// every mistake.
func Decode(ctx context.Context, into any) *Problem {
	if found := strictjson.Decode(Body(ctx), into); len(found) > 0 {
		return Invalid(BodyErrors(found)...)
	}
	return nil
}

// BodyErrors places mistakes that a library found in the body.
func BodyErrors[E ~struct{ Field, Message string }](found []E) []FieldError {
	out := make([]FieldError, len(found))
	for i, e := range found {
		pair := struct{ Field, Message string }(e)
		out[i] = FieldError{Location: "body", Field: Printable(pair.Field), Message: pair.Message}
	}
	return out
}

// Printable makes what a caller sent fit for an answer and a log line.
func Printable(s string) string {
	const longest = 200 // bytes; nothing of ours has a longer path
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
