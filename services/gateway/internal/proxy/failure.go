package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// statusClientGone is the status of a request whose client went away before the
// service answered (nginx's 499). It is in events alone: nobody reads the answer.
const statusClientGone = 499

// ErrStopped is the cause of the end of requests that a stop of the gateway no
// longer waits for.
var ErrStopped = errors.New("the gateway stopped")

// problem is the answer to a round trip that failed. A broken body comes first:
// the transport fails because of it, with any error. A client that went away, or
// that a stop disconnects, gets no answer; 499 is for its event.
func (q *Request) problem(err error) reject.Problem {
	broken := q.body.cause()
	var timeout net.Error
	switch {
	case errors.Is(err, httpcache.ErrNotStored):
		return reject.Problem{Status: http.StatusGatewayTimeout, Title: "Gateway timeout", Detail: "There is no stored answer, and the request wants no other."}
	case broken != nil && malformed(q.in, broken):
		return reject.Problem{Status: http.StatusBadRequest, Title: "Bad request body", Detail: "The request's body is not what its headers announce."}
	case broken != nil, errors.Is(err, context.Canceled), errors.Is(err, ErrStopped):
		return reject.Problem{Status: statusClientGone, Title: "Client closed request"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return reject.Problem{Status: http.StatusGatewayTimeout, Title: "Gateway timeout", Detail: "The service did not answer in time."}
	case errors.Is(err, cache.ErrBackingOff):
		return reject.Problem{Status: http.StatusServiceUnavailable, Title: "Service unavailable", Detail: "The service has failed repeatedly; it is asked again in a moment."}
	}
	return reject.Problem{Status: http.StatusBadGateway, Title: "Bad gateway", Detail: "The service did not answer."}
}

// failure is how the call failed, as refundOn of rules names it. A client that went
// away, sent a broken body or accepts a stored response only caused the failure
// itself: its status (499, 400, 504) is not the service's and refunds nothing.
func failure(ctx context.Context, err error, status int) rule.Failure {
	switch {
	case errors.Is(context.Cause(ctx), ErrStopped):
		return rule.Abandoned
	case errors.Is(err, httpcache.ErrNotStored): // a 504, although no service was called
		return rule.ClientsFault
	case status == http.StatusGatewayTimeout:
		return rule.TimedOut
	case status == http.StatusBadGateway:
		return rule.Unanswered
	}
	return rule.ClientsFault
}
