package proxy

import (
	"context"
	"net/http"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// Request is a request to be forwarded. One goroutine owns it; it is not reused
// before Forward has returned.
type Request struct {
	Service *routing.Service
	Path    string // cleaned, escaped
	Caller  *identify.Caller
	// Lookup is what the cache does for it, nil where the route is not cached.
	Lookup *httpcache.Lookup
	// LegacyHeaders: the gate sends X-RateLimit-* with the response.
	LegacyHeaders bool
	Decision      Decision

	in     *http.Request
	body   *clientBody // nil where it has none
	writer writer
}

// Decision is what the gate decided on a request. Answered or Failed is called
// once, before the client sees anything, then SetHeaders.
type Decision interface {
	// ID names the decision to the client.
	ID() string
	// Answered takes the service's status and header; it may remove fields.
	Answered(status int, h http.Header)
	// Failed takes the status that the client is answered in place of the service's.
	Failed(status int, how rule.Failure)
	// SetHeaders writes the decision's fields to the client's response header.
	SetHeaders(h http.Header)
}

type requestKey struct{}

// requestOf is the Request of a forwarded http.Request.
func requestOf(ctx context.Context) *Request {
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}
