package demo

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// handler answers everything and counts what it was asked.
type handler struct {
	requests atomic.Int64
}

// echo says what arrived, so that a reader sees which path the gate forwarded.
type echo struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

type stats struct {
	Requests int64 `json:"requests"`
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		writeJSON(w, map[string]bool{"alive": true})
	case "/stats":
		writeJSON(w, stats{Requests: h.requests.Load()})
	default:
		h.requests.Add(1)
		writeJSON(w, echo{Method: r.Method, Path: r.URL.EscapedPath()})
	}
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	// A client that went away is not our error.
	_ = json.NewEncoder(w).Encode(body)
}
