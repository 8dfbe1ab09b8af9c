package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
)

// call is what the chain below learns of a request before a handler runs.
type call struct {
	who  principal
	body []byte
	log  *slog.Logger
	// routed is the request the mux saw; it knows the pattern that matched.
	routed *http.Request
}

type callKey struct{}

// callOf returns the call that every request in a handler has.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// Actor is who sent the request of ctx, for the audit log: the name of the token.
func Actor(ctx context.Context) string { return callOf(ctx).who.name }

// Log is for what only the operator may see of the request of ctx.
func Log(ctx context.Context) *slog.Logger { return callOf(ctx).log }

// Body is the body of the request of ctx.
func Body(ctx context.Context) []byte { return callOf(ctx).body }

// ServeHTTP is the way of every request: counted, recovered, authenticated,
// its URL and body checked, then routed.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := a.cfg.Now()
	rec := &recorder{ResponseWriter: w}
	c := &call{log: a.cfg.Log}
	defer func() {
		a.cfg.Observer.Observe(c.routed, r.Method, rec.status(), a.cfg.Now().Sub(start))
	}()
	defer a.recover(rec, r)
	a.serve(rec, r, c)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, c *call) {
	if p := checkHeader(r.Header); p != nil {
		p.write(w)
		return
	}
	if !isPublic(r.URL.Path) {
		who, p := a.tokens.authenticate(r)
		if p != nil {
			p.write(w)
			return
		}
		c.who = who
	}
	if p := checkURL(r.URL); p != nil {
		p.write(w)
		return
	}
	var p *Problem
	if c.body, p = readBody(w, r); p != nil {
		p.write(w)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), callKey{}, c), a.cfg.RequestTimeout)
	defer cancel()
	c.routed = r.WithContext(ctx)
	// Only JSON is spoken. Huma would choose by Accept, after the handler has
	// committed, and its parser panics at a header such as "text/html;, */*".
	c.routed.Header = r.Header.Clone()
	c.routed.Header.Del("Accept")
	a.mux.ServeHTTP(w, c.routed)
}

// isPublic tells what needs no token: the contract, its page, and health.
func isPublic(path string) bool {
	switch path {
	case "/", "/openapi.json", "/openapi.yaml", "/docs", "/healthz":
		return true
	}
	return false
}

// onceHeaders are those that decide about a request and are read as one value.
var onceHeaders = []string{"Authorization", "If-Match", "If-None-Match", "Content-Type", "Content-Encoding", "Idempotency-Key"}

// checkHeader refuses a request that a proxy before us may have read in another
// way than we would: by the second of two values.
func checkHeader(h http.Header) *Problem {
	var found []FieldError
	for _, name := range onceHeaders {
		if len(h[name]) > 1 {
			found = append(found, FieldError{"header", name, "must be given once"})
		}
	}
	if found == nil {
		return nil
	}
	return Invalid(found...)
}

// checkURL refuses what Postgres could not hold, and a query that net/url
// would silently cut short.
func checkURL(u *url.URL) *Problem {
	if !ValidText(u.Path) {
		return Invalid(FieldError{"path", "", "must be UTF-8 without NUL once its percent escapes are resolved"})
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Invalid(FieldError{"query", "", "must be name=value pairs with valid percent escapes, joined by &"})
	}
	for name, vs := range values {
		if len(vs) > 1 {
			return Invalid(FieldError{"query", Printable(name), "must be given once"})
		}
		if !ValidText(name) || !ValidText(vs[0]) {
			return Invalid(FieldError{"query", Printable(name), "must be UTF-8 without NUL"})
		}
	}
	return nil
}

// recover answers a panic with 500 where nothing was sent yet. Its text goes
// to the log alone.
func (a *API) recover(w *recorder, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	a.cfg.Observer.Panicked()
	a.cfg.Log.ErrorContext(r.Context(), "request panicked", "method", r.Method, "path", r.URL.Path,
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.code == 0 {
		NewProblem(http.StatusInternalServerError, "internal", "an unexpected error; it is in the log").write(w)
	}
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// fallback answers what no pattern matches, in place of ServeMux's plain text.
func (a *API) fallback(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := r.WithContext(r.Context())
		probe.Method = method
		if _, pattern := a.mux.Handler(probe); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		NewProblem(http.StatusNotFound, "no-such-resource", "there is no such resource; /docs lists them").write(w)
		return
	}
	p := NewProblem(http.StatusMethodNotAllowed, "method-not-allowed", fmt.Sprintf("%s is not possible here", Printable(r.Method)))
	p.header = http.Header{"Allow": allowed}
	p.write(w)
}

// Health answers as long as the process serves.
func health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
}
