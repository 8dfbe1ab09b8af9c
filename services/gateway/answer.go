package gateway

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Header names in canonical form, so that maps can be written directly.
const (
	headerDecisionID = "Sluice-Decision-Id"
	headerDegraded   = "Sluice-Degraded"
	headerRetryAfter = "Retry-After"
)

// setHeaders puts what the decision says on an answer, in place of what an
// upstream may have written there.
func (g *gate) setHeaders(x *exchange, h http.Header) {
	x.setHeaders(h)
	if g.tellsLegacy(x) {
		x.setLegacyHeaders(h)
	}
}

// tellsLegacy: clients of the service are told in X-RateLimit-* too.
func (g *gate) tellsLegacy(x *exchange) bool {
	return g.answers.LegacyHeaders || x.service.LegacyHeaders
}

func (x *exchange) setHeaders(h http.Header) {
	degraded := x.charges.Verdict.Degraded
	n := 1
	values := make([]string, 4) // one allocation for all single values
	values[0] = x.id
	h[headerDecisionID] = values[0:1:1]
	if !onlyUnlimited(x.charges.Judged) {
		policies, limits := x.fields()
		values[1], values[2], n = policies, limits, 3
		h[proxy.HeaderPolicy], h[proxy.HeaderLimit] = values[1:2:2], values[2:3:3]
	}
	if degraded {
		values[n] = x.charges.Verdict.Loss.Degraded
		h[headerDegraded] = values[n : n+1 : n+1]
	}
}

func onlyUnlimited(judged []charge.Judgement) bool {
	return !slices.ContainsFunc(judged, func(j charge.Judgement) bool { return !j.State.Unlimited })
}

// setLegacyHeaders says of the tightest policy what the RateLimit fields say,
// for clients of older drafts and habits: Reset in seconds from now. Where
// nothing is limited an upstream's own stay.
func (x *exchange) setLegacyHeaders(h http.Header) {
	i := slices.IndexFunc(x.charges.Judged, func(j charge.Judgement) bool { return !j.State.Unlimited })
	if i < 0 {
		return
	}
	j := &x.charges.Judged[i]
	h.Set(proxy.HeaderLegacyLimit, strconv.FormatInt(j.State.Limit, 10))
	h.Set(proxy.HeaderLegacyRemaining, strconv.FormatInt(available(j), 10))
	h.Del(proxy.HeaderLegacyReset)
	if t := max(j.State.Reset, j.State.RetryAfter); !neverRenews(j, t) {
		h.Set(proxy.HeaderLegacyReset, strconv.FormatInt(wholeSeconds(t), 10))
	}
}

// cut answers a request that the decision does not let pass. The event is
// recorded first.
func (g *gate) cut(x *exchange) bool {
	v := &x.charges.Verdict
	if v.Status == 0 {
		return true
	}
	g.record(x, v.Status)
	h := x.w.Header()
	g.setHeaders(x, h)
	p := reject.Problem{Status: v.Status, Violated: policyNames(v.Violated), DecisionID: x.id}
	switch v.Status {
	case http.StatusServiceUnavailable:
		h[headerRetryAfter] = []string{reject.ShortWait()}
		p.Type, p.Title, p.Detail = reject.ReducedCapacity, "Temporarily reduced capacity", v.Loss.Detail
	case http.StatusTooManyRequests:
		if wait, ok := g.retryAfter(x); ok {
			h[headerRetryAfter] = []string{strconv.FormatInt(wait, 10)}
		}
		p.Type, p.Title, p.Detail = reject.QuotaExceeded, "Quota exceeded", "The request would exceed what the violated policies allow."
	default:
		p.Type, p.Title, p.Detail = reject.NotEntitled, "Not entitled", "The violated policies entitle to nothing here."
		if v.Reason == charge.IdentityMissing {
			p.Type, p.Title, p.Detail = reject.IdentityMissing, "Identity missing", "The violated policies demand an identity that the request does not have."
		}
	}
	p.Write(x.w)
	return false
}
