package explain

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Pattern is served below /debug/<module>/ and at the admin port's root.
const Pattern = "POST /v1/explain"

// maxQuestion bounds a question, in bytes.
const maxQuestion = 64 << 10

// ServeHTTP implements http.Handler.
func (x *Explainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := x.o.Operators.Admit(r); !ok {
		identify.RefuseOperator(w, "gateway.explain.tokens")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		reject.BadQuestion(w, "The body could not be read, or has more than 65536 bytes.")
		return
	}
	var q Question
	if found := strictjson.Decode(body, &q); len(found) > 0 {
		var mistakes []string
		for _, e := range found {
			mistakes = append(mistakes, e.String())
		}
		reject.BadQuestion(w, strings.Join(mistakes, "; "))
		return
	}
	if err := x.o.Ready(); err != nil {
		(&reject.Problem{Type: reject.ReducedCapacity, Status: http.StatusServiceUnavailable, Title: "Not ready", Detail: err.Error()}).Write(w)
		return
	}
	out, err := x.Explain(r.Context(), q)
	switch {
	case errors.Is(err, errQuestion):
		reject.BadQuestion(w, strings.TrimPrefix(err.Error(), errQuestion.Error()+": "))
		return
	case err != nil:
		x.o.Log.ErrorContext(r.Context(), "explain", "error", err)
		(&reject.Problem{Type: reject.AboutBlank, Status: http.StatusInternalServerError, Title: "Internal error"}).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// A client that went away is not our error.
	_ = enc.Encode(out)
}
