package explain

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Explanation is the answer.
type Explanation struct {
	Request askedView        `json:"request"`
	Rules   []consideredView `json:"rules"`
	Winners []winnerView     `json:"winners"`
	// Unread are the rules, whomever they concern, of which this gateway could
	// read no version.
	Unread []string `json:"unread,omitempty"`
	// Refused is how the service answers those it does not let in: then no rule
	// is asked, and nothing is charged.
	Refused *refusedView `json:"refused,omitempty"`
	// WouldPass is for a request at this instant; absent when the counters
	// could not be asked.
	WouldPass *bool `json:"wouldPass,omitempty"`
	// Status is how the gate would answer one that would not pass, 0 otherwise.
	Status int `json:"status,omitempty"`
	// RetryAfter is the answer's Retry-After of a 429, in seconds, before jitter
	// (gateway.answers.retryAfterJitter), which only adds to it; 0 where waiting
	// does not help.
	RetryAfter int64  `json:"retryAfter,omitempty"`
	Trouble    string `json:"trouble,omitempty"`
	// Note says who is refused with a cost that the rest is told of, empty for
	// nobody.
	Note string `json:"note,omitempty"`
}

type askedView struct {
	Method   string `json:"method"`
	Path     string `json:"path,omitempty"` // cleaned
	Service  string `json:"service"`
	Endpoint string `json:"endpoint,omitempty"` // of the catalog
	// Demands is the kind of credential that the service demands.
	Demands string `json:"demands,omitempty"`
	// Cached: answers to it may be stored, and come from there.
	Cached        bool   `json:"cached,omitempty"`
	Cost          int64  `json:"cost"`
	TenantID      string `json:"tenantId,omitempty"`
	UserID        string `json:"userId,omitempty"`
	ApplicationID string `json:"applicationId,omitempty"`
	APIKeyID      string `json:"apiKeyId,omitempty"`
}

type refusedView struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

type consideredView struct {
	ID      string        `json:"id"`
	Version int64         `json:"version"`
	Subject rules.Subject `json:"subject"`
	Scope   rules.Scope   `json:"scope,omitzero"`
	Metric  string        `json:"metric"`
	Horizon string        `json:"horizon"`
	Mode    string        `json:"mode"`
	Result  string        `json:"result"`
	// By is the rule it lost to, Because what told them apart.
	By      string `json:"by,omitempty"`
	Because string `json:"because,omitempty"`
}

type winnerView struct {
	ID      string `json:"id"`
	Mode    string `json:"mode"`
	Subject string `json:"subject"` // whose counter; empty is the shared one
	Metric  string `json:"metric"`
	// Counter is the key, of a quota with its period.
	Counter   string `json:"counter,omitempty"`
	Algorithm string `json:"algorithm"`
	Override  string `json:"override,omitempty"`
	Cost      int64  `json:"cost"`
	// Limit is what it is judged by, of a wallet what was granted, Carried included.
	Limit int64 `json:"limit"`
	// Burst is how much a rested gcra or tokenBucket has; Remaining is of it, and
	// may be above Limit.
	Burst     int64 `json:"burst,omitempty"`
	Carried   int64 `json:"carried,omitempty"` // from the last period
	Unlimited bool  `json:"unlimited,omitempty"`
	// CountCached false: an answer that is stored is not charged, and passes.
	CountCached  *bool   `json:"countCached,omitempty"`
	Remaining    *int64  `json:"remaining,omitempty"`
	ResetSeconds float64 `json:"resetSeconds,omitempty"`
	// IdentityMissing: the rule denies requests without the identity.
	IdentityMissing bool `json:"identityMissing,omitempty"`
	// Unreadable is why this gateway cannot read the rule; OnStoreLoss holds then.
	Unreadable  string `json:"unreadable,omitempty"`
	OnStoreLoss string `json:"onStoreLoss,omitempty"`
	WouldPass   *bool  `json:"wouldPass,omitempty"`
	// RetryAfter is Explanation.RetryAfter by this counter alone.
	RetryAfter int64 `json:"retryAfter,omitempty"`
}

func viewWinner(m *rule.Match, cost int64) winnerView {
	w := winnerView{
		ID: m.Rule.ID, Mode: m.Rule.Mode, Subject: m.Subject(), Metric: m.Rule.Metric,
		Algorithm: m.Rule.AlgorithmName(), Cost: m.Cost(cost), IdentityMissing: m.MissingDeny,
	}
	if m.Rule.FreeCached {
		w.CountCached = new(false)
	}
	if m.Override != nil {
		w.Override = m.Override.ID
	}
	return w
}

func viewConsidered(c *rule.Considered) consideredView {
	v := consideredView{
		ID: c.Rule.ID, Version: c.Rule.Version, Subject: c.Rule.Subject(), Metric: c.Rule.Metric, Mode: c.Rule.Mode,
		Scope: rules.Scope{Service: c.Rule.Service, Endpoint: c.Rule.Endpoint}, Horizon: horizon(c.Rule),
		Result: c.Result, Because: c.Because,
	}
	if c.By != nil {
		v.By = c.By.ID
	}
	return v
}

// horizon is the window of a rate or the calendar of a quota, if it has one.
func horizon(r *rule.Compiled) string {
	switch {
	case r.Unreadable != "":
		return ""
	case r.Prepaid:
		return rules.QuotaPrepaid
	}
	if r.Algorithm.Quota() {
		return r.Calendar.String()
	}
	return r.Window.Truncate(time.Second).String()
}

// show adds a counter's state, and reports whether the winner's cost would pass.
func (w *winnerView) show(state *limit.State, c *limit.Counter) bool {
	enough := w.Cost <= state.Remaining || w.Cost <= 0 || c.Overdraws() && state.Remaining > 0
	passes := state.Unlimited || state.Allowed && enough // a limit of 0 denies also what costs nothing
	w.Counter, w.WouldPass = state.Key, &passes
	if !c.Unlimited {
		w.Remaining, w.ResetSeconds = &state.Remaining, state.Reset.Seconds()
		w.Limit, w.Carried = state.Limit, state.Carried
	}
	return passes
}
