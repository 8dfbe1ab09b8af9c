package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// explainPattern is served below /debug/<module>/ and at the admin port's root.
const explainPattern = "POST /v1/explain"

// maxQuestion bounds a question, in bytes.
const maxQuestion = 64 << 10

// ServeHTTP implements http.Handler.
func (x *explainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := x.callers.admit(r); !ok {
		refuseCaller(w, "gateway.explain.tokens")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		badQuestion(w, "The body could not be read, or has more than 65536 bytes.")
		return
	}
	var q question
	if found := strictjson.Decode(body, &q); len(found) > 0 {
		var mistakes []string
		for _, e := range found {
			mistakes = append(mistakes, e.String())
		}
		badQuestion(w, strings.Join(mistakes, "; "))
		return
	}
	if err := x.ready(); err != nil {
		(&problem{kind: problemReducedCapacity, status: http.StatusServiceUnavailable, title: "Not ready", detail: err.Error()}).write(w, nil)
		return
	}
	out, err := x.explain(r.Context(), q)
	switch {
	case errors.Is(err, errQuestion):
		badQuestion(w, strings.TrimPrefix(err.Error(), errQuestion.Error()+": "))
		return
	case err != nil:
		x.gate.log.ErrorContext(r.Context(), "explain", "error", err)
		(&problem{kind: problemNone, status: http.StatusInternalServerError, title: "Internal error"}).write(w, nil)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// A client that went away is not our error.
	_ = enc.Encode(out)
}

func badQuestion(w http.ResponseWriter, detail string) {
	(&problem{kind: problemNone, status: http.StatusBadRequest, title: "Bad question", detail: detail}).write(w, nil)
}
