package respond

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// HeaderDecisionID names the decision; canonical, as the others.
const (
	HeaderDecisionID = "Sluice-Decision-Id"
	headerDegraded   = "Sluice-Degraded"
	headerRetryAfter = "Retry-After"
)

// SetHeaders writes what was decided to a response's header, in place of what an
// upstream may have written there; legacy says that X-RateLimit-* are sent too.
func SetHeaders(h http.Header, id string, q *charge.Charges, legacy bool) {
	n := 1
	values := make([]string, 4) // one allocation for all single values
	values[0] = id
	h[HeaderDecisionID] = values[0:1:1]
	if !OnlyUnlimited(q.Judged) {
		values[1], values[2] = fields(q)
		n = 3
		h[reject.HeaderPolicy], h[reject.HeaderLimit] = values[1:2:2], values[2:3:3]
	}
	if q.Verdict.Degraded {
		values[n] = q.Verdict.Loss.Degraded
		h[headerDegraded] = values[n : n+1 : n+1]
	}
	if legacy {
		setLegacyHeaders(h, q.Judged)
	}
}

// OnlyUnlimited reports counters of which none has a limit.
func OnlyUnlimited(judged []charge.Judgement) bool {
	return !slices.ContainsFunc(judged, func(j charge.Judgement) bool { return !j.State.Unlimited })
}

// setLegacyHeaders writes of the tightest policy what the RateLimit fields say, for
// clients of older drafts: Reset in seconds from now. Where nothing is limited the
// upstream's own stay.
func setLegacyHeaders(h http.Header, judged []charge.Judgement) {
	i := slices.IndexFunc(judged, func(j charge.Judgement) bool { return !j.State.Unlimited })
	if i < 0 {
		return
	}
	j := &judged[i]
	h.Set(reject.HeaderLegacyLimit, strconv.FormatInt(j.State.Limit, 10))
	h.Set(reject.HeaderLegacyRemaining, strconv.FormatInt(available(j), 10))
	h.Del(reject.HeaderLegacyReset)
	if t := max(j.State.Reset, j.State.RetryAfter); !neverRenews(j, t) {
		h.Set(reject.HeaderLegacyReset, strconv.FormatInt(charge.WholeSeconds(t), 10))
	}
}

// Reject answers a request that the verdict does not let pass. jitter is the share of
// the wait that Retry-After may add.
func Reject(w http.ResponseWriter, id string, q *charge.Charges, jitter float64) {
	h, v := w.Header(), &q.Verdict
	p := reject.Problem{Status: v.Status, Violated: policyNames(v.Violated), DecisionID: id}
	switch v.Status {
	case http.StatusServiceUnavailable:
		h[headerRetryAfter] = []string{reject.ShortWait()}
		p.Type, p.Title, p.Detail = reject.ReducedCapacity, "Temporarily reduced capacity", v.Loss.Detail
	case http.StatusTooManyRequests:
		if wait, ok := retryAfter(id, q.Judged, jitter); ok {
			h[headerRetryAfter] = []string{strconv.FormatInt(wait, 10)}
		}
		p.Type, p.Title, p.Detail = reject.QuotaExceeded, "Quota exceeded", "The request would exceed what the violated policies allow."
	default:
		p.Type, p.Title, p.Detail = reject.NotEntitled, "Not entitled", "The violated policies entitle to nothing here."
		if v.Reason == charge.IdentityMissing {
			p.Type, p.Title, p.Detail = reject.IdentityMissing, "Identity missing", "The violated policies demand an identity that the request does not have."
		}
	}
	p.Write(w)
}
