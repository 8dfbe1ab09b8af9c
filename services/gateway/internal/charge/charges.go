package charge

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
)

// Charges are a request's. One goroutine owns them from New to Free; they come
// from a pool and their slices keep their capacity.
type Charges struct {
	Verdict Verdict
	// Matches are the rules that hold, without those that have no counter to ask,
	// and Counters what they charge.
	Matches  []rule.Match
	Counters []limit.Counter
	// Judged are the counters' answers, tightest first; empty when nothing was
	// counted or the store could not be asked.
	Judged []Judgement
	// JudgedAt is the store's clock at that moment.
	JudgedAt time.Time
	// Cost is the request's, corrected by Finish.
	Cost int64

	by    *Charger
	start time.Time
	// shadows are the answers of shadow rules' counters, in the same order. They
	// are reported and decide nothing: no client hears of them.
	shadows []Judgement
	// shadowMissing is a shadow rule that would deny for want of an identity.
	shadowMissing *rule.Compiled

	// uncounted are the rules that let the request pass without their counters.
	uncounted []uncounted
	// outage: the store could not charge them. It is false where they go by shares
	// until the journal is settled.
	outage bool
	taken  []taken // of this gateway's shares

	inFlight journal.InFlight // what may have to be given back, in the journal
	finished bool
	// begunAt is the cost when the request was forwarded.
	begunAt int64
	events  []usage.Charge
}

// uncounted is a rule that let the request pass without its counter.
type uncounted struct {
	match    rule.Match
	refunded bool
}

// taken is what a request was charged of this gateway's shares.
type taken struct {
	counters []limit.Counter
	decision limit.Decision
}

var pool = sync.Pool{New: func() any { return new(Charges) }}

// New returns the charges of a request that costs so much and that those rules
// hold for: nothing is charged, and the verdict lets it pass. It keeps matches.
func (c *Charger) New(start time.Time, cost int64, matches []rule.Match) *Charges {
	q, _ := pool.Get().(*Charges)
	q.by, q.start, q.Cost, q.Matches = c, start, cost, matches
	q.Verdict = Verdict{Decision: usage.DecisionAllow, Outcome: Allow}
	return q
}

// Free returns q to the pool, without a reference to its request.
func (q *Charges) Free() {
	clear(q.Counters[:cap(q.Counters)])
	clear(q.Judged[:cap(q.Judged)])
	clear(q.shadows[:cap(q.shadows)])
	clear(q.uncounted[:cap(q.uncounted)])
	clear(q.taken[:cap(q.taken)])
	clear(q.events[:cap(q.events)])
	*q = Charges{
		Counters: q.Counters[:0], Judged: q.Judged[:0], shadows: q.shadows[:0], uncounted: q.uncounted[:0],
		taken: q.taken[:0], events: q.events[:0],
	}
	pool.Put(q)
}

// DenyBy denies when one of the rules is against the request for a reason that no
// counter is needed for. Shadow rules deny nothing.
func (q *Charges) DenyBy(against func(*rule.Match) bool, status int, reason string, o Outcome) bool {
	v := Verdict{Decision: usage.DecisionDeny, Outcome: o, Status: status, Reason: reason}
	for i := range q.Matches {
		if m := &q.Matches[i]; !m.Rule.Shadow && against(m) {
			if v.Decisive == nil {
				v.Decisive = m.Rule
			}
			v.Violated = append(v.Violated, m.Rule.ID)
		}
	}
	if v.Decisive == nil {
		return false
	}
	q.Verdict = v
	return true
}

// DenyMissing denies where a rule demands an identity that the request lacks.
func (q *Charges) DenyMissing() bool {
	return q.DenyBy(func(m *rule.Match) bool { return m.MissingDeny }, http.StatusForbidden, IdentityMissing, Deny)
}

// DenyUnentitled denies where a quota is 0, which no counter can change.
func (q *Charges) DenyUnentitled() bool {
	return q.DenyBy((*rule.Match).GrantsNothing, http.StatusForbidden, NotEntitled, Deny)
}

// Judge turns the counters' answers into the verdict: 403 goes before 429, the
// longest wait before shorter ones.
func (q *Charges) Judge(matches []rule.Match, counters []limit.Counter, d limit.Decision) {
	q.JudgedAt = d.Now
	for i := range d.States {
		j := Judgement{Rule: matches[i].Rule, match: &matches[i], State: d.States[i], Cost: counters[i].Cost, carries: counters[i].Rolls()}
		if j.State.Shadow {
			q.shadows = append(q.shadows, j)
		} else {
			q.Judged = append(q.Judged, j)
		}
	}
	if len(q.Judged) == 0 {
		return
	}
	slices.SortStableFunc(q.Judged, tighter)
	tightest := &q.Judged[0]
	if !q.Verdict.Degraded {
		q.Verdict.Decisive = tightest.Rule
	}
	if !d.Allowed {
		q.denyByCounters(tightest)
	}
}

func (q *Charges) denyByCounters(tightest *Judgement) {
	q.Verdict = Verdict{
		Decision: usage.DecisionDeny, Outcome: Deny, Status: http.StatusTooManyRequests,
		Reason: QuotaExceeded, Decisive: tightest.Rule, Degraded: q.Verdict.Degraded, Loss: q.Verdict.Loss,
	}
	if !tightest.entitled() {
		q.Verdict.Status, q.Verdict.Reason = http.StatusForbidden, NotEntitled
	}
	for i := range q.Judged {
		if j := &q.Judged[i]; !j.State.Allowed {
			q.Verdict.Violated = append(q.Verdict.Violated, j.Rule.ID)
		}
	}
}

// eachCharged calls do for each counter that the store charged.
func (q *Charges) eachCharged(do func(*Judgement)) {
	for _, list := range [...][]Judgement{q.Judged, q.shadows} {
		for i := range list {
			if list[i].charged() {
				do(&list[i])
			}
		}
	}
}

// Held reports whether a rule goes by its share until the journal is settled.
func (q *Charges) Held() bool {
	return slices.ContainsFunc(q.Matches, func(m rule.Match) bool { return q.by.Unsettled.Holds(m.Rule) })
}
