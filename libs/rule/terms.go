package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// wording is what a rule says in words, as it is written; the rest of it is
// whose it is and its numbers. Rules of a plan have the same wording.
type wording struct {
	kind, form                         uint8
	unlimited, freeCached              bool
	metric, service, endpoint          string
	mode, onStoreLoss, onMissing       string
	algorithm, window                  string // "" without a limit
	quota, period, timezone, weekStart string
	overdraft                          string
	anchorDay                          int
	// history is Limit.Previous, thresholds are Thresholds and refundOn is
	// RefundOn, written out; few rules have them.
	history, thresholds, refundOn string
}

func wordingOf(r *rules.Rule, k kind, f form) wording {
	w := wording{
		kind: uint8(k), form: uint8(f), unlimited: r.Unlimited,
		metric: r.Metric, service: r.Scope.Service, endpoint: r.Scope.Endpoint,
		mode: r.Mode, onStoreLoss: r.OnStoreLoss, onMissing: r.OnMissing, freeCached: freeCached(r),
	}
	if l := r.Limit; l != nil {
		w.algorithm, w.window, w.quota, w.period = l.Algorithm, l.Window, l.Kind, l.Period
		w.timezone, w.weekStart, w.overdraft, w.anchorDay = l.Timezone, l.WeekStart, l.Overdraft, l.AnchorDay
		for _, p := range l.Previous {
			w.history += fmt.Sprint(p.Timezone, " ", p.AnchorDay, " ", p.WeekStart, " ", p.Until.Unix(), ";")
		}
	}
	if t := r.Thresholds; t != nil {
		w.thresholds = fmt.Sprint(t.Percent, t.Absolute)
	}
	if len(r.RefundOn) > 0 {
		w.refundOn = fmt.Sprintf("%q", r.RefundOn)
	}
	return w
}

// clone lets go of the record that the wording was read from.
func (w wording) clone() wording {
	for _, s := range []*string{
		&w.metric, &w.service, &w.endpoint, &w.mode, &w.onStoreLoss, &w.onMissing, &w.algorithm,
		&w.window, &w.quota, &w.period, &w.timezone, &w.weekStart, &w.overdraft,
	} {
		*s = strings.Clone(*s)
	}
	return w
}

// terms is what follows from a wording. It is immutable and shared.
type terms struct {
	Metric string
	// Service and Endpoint are the scope; Endpoint is METHOD /pattern in
	// canonical spelling.
	Service, Endpoint            string
	Mode, OnStoreLoss, OnMissing string
	// Algorithm judges the counter; an unlimited rule without a limit counts
	// as a RenewingQuota of a month.
	Algorithm limit.Algorithm
	// Window is of rates, Calendar of quotas.
	Window   time.Duration
	Calendar period.Calendar
	// FreeCached: answers from the gateway's cache are not charged (countCached false).
	FreeCached bool
	// Prepaid says of a quota that it counts against what was granted to the
	// tenant; it has no Calendar.
	Prepaid bool
	// Shadow rules are counted and reported, and deny nothing.
	Shadow bool
	// Unreadable is why no version of the rule could be read, empty for all
	// others: it has no counter, and OnStoreLoss holds. See Salvage.
	Unreadable string
	// Thresholds is nil where the rule names none. It is not to be changed.
	Thresholds *rules.Thresholds
	// RefundOn is how a call may fail so that its charge is given back; nil is
	// never.
	RefundOn *Failures

	group     *group // canonical: equal groups are one pointer
	form      form
	scopeRank scopeRank
	off       bool
	pattern   route.Pattern // of Endpoint
	keyTail   string        // the counter's key after the subject
}

// group is what only one rule wins: (subject.kind, metric, horizon), apart for
// shadow rules. A horizon is a rate's window or a quota's period: its algorithm,
// zone, anchor and week start are not part of it.
type group struct {
	metric string
	window time.Duration
	unit   period.Unit
	kind   kind
	class  class
	shadow bool
}

var (
	allTerms  interner[wording, terms]
	allGroups interner[group, group]
)

// newTerms makes terms of a valid, normalized rule.
func newTerms(r *rules.Rule, k kind, f form) (*terms, error) {
	t := &terms{
		Metric: strings.Clone(r.Metric), Service: strings.Clone(r.Scope.Service), Endpoint: strings.Clone(r.Scope.Endpoint),
		Mode: strings.Clone(r.Mode), OnStoreLoss: strings.Clone(r.OnStoreLoss), OnMissing: strings.Clone(r.OnMissing),
		FreeCached: freeCached(r), Shadow: r.Mode == rules.ModeShadow, Thresholds: r.Thresholds, RefundOn: failuresOf(r.RefundOn),
		off: r.Mode == rules.ModeOff, form: f, scopeRank: scopeGlobal,
	}
	g := group{metric: t.Metric, kind: k, shadow: t.Shadow}
	if err := t.setLimit(r, &g); err != nil {
		return nil, err
	}
	if t.Service != "" {
		t.scopeRank = scopeService
	}
	if t.Endpoint != "" {
		p, err := route.Parse(t.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("parse scope of rule %s: %w", r.ID, err)
		}
		t.pattern, t.scopeRank = p, scopeEndpoint
	}
	t.group = allGroups.get(g)
	if t.group == nil {
		t.group = allGroups.put(g, &g)
	}
	return t, nil
}

func freeCached(r *rules.Rule) bool { return r.CountCached != nil && !*r.CountCached }

// rateNames are the algorithms' names in keys; schemas/redis/KEYS.md has them.
var rateNames = map[string]struct {
	name string
	algo limit.Algorithm
}{
	rules.AlgorithmGCRA:          {"gcra", limit.GCRA},
	rules.AlgorithmFixedWindow:   {"fixed", limit.FixedWindow},
	rules.AlgorithmSlidingWindow: {"sliding", limit.SlidingWindow},
	rules.AlgorithmTokenBucket:   {"bucket", limit.TokenBucket},
}

func (t *terms) setLimit(r *rules.Rule, g *group) error {
	var err error
	switch l := r.Limit; {
	case l == nil:
		t.Algorithm, g.class = limit.RenewingQuota, classAny
	case l.Algorithm == rules.AlgorithmQuota && l.Kind == rules.QuotaPrepaid:
		t.Algorithm, t.Prepaid, g.class = limit.PrepaidQuota, true, classWallet
		if l.Overdraft == rules.OverdraftOnce {
			t.Algorithm = limit.OverdraftQuota
		}
	case l.Algorithm == rules.AlgorithmQuota:
		t.Algorithm, g.class = limit.RenewingQuota, classQuota
		if l.Overdraft == rules.OverdraftOnce {
			t.Algorithm = limit.OverdraftQuota
		}
		if t.Calendar, err = calendarOf(l); err != nil {
			return fmt.Errorf("calendar of rule %s: %w", r.ID, err)
		}
		g.unit = t.Calendar.Unit()
	default:
		if t.Window, err = time.ParseDuration(l.Window); err != nil {
			return fmt.Errorf("parse window of rule %s: %w", r.ID, err)
		}
		rate := rateNames[l.Algorithm]
		t.Algorithm, g.class, g.window = rate.algo, classRate, t.Window
		t.keyTail = t.tail(rate.name) + ":" + strconv.FormatInt(int64(t.Window/time.Second), 10)
		return nil
	}
	// The store adds the calendar and the period that the charge falls in.
	t.keyTail = t.tail("quota")
	return nil
}

// tail begins a key's part after the subject. Counters of shadow rules are
// apart: they charge nothing that an enforced rule judges by.
func (t *terms) tail(algorithm string) string {
	if t.Shadow {
		algorithm += "-shadow"
	}
	return ":" + t.Metric + ":" + algorithm
}

// calendarOf returns the calendar of a quota with the changes it went through.
func calendarOf(l *rules.Limit) (period.Calendar, error) {
	next := rules.Calendar{Timezone: l.Timezone, AnchorDay: l.AnchorDay, WeekStart: l.WeekStart}
	if len(l.Previous) == 0 {
		return newCalendar(l.Period, next)
	}
	c, err := newCalendar(l.Period, l.Previous[0])
	for i := 0; err == nil && i < len(l.Previous); i++ {
		step := next
		if i+1 < len(l.Previous) {
			step = l.Previous[i+1]
		}
		var then period.Calendar
		if then, err = newCalendar(l.Period, step); err == nil {
			c, err = c.Then(then, l.Previous[i].Until.Add(-time.Second))
		}
	}
	return c, err
}

func newCalendar(unit string, c rules.Calendar) (period.Calendar, error) {
	return period.New(period.Spec{Unit: unit, Zone: c.Timezone, AnchorDay: c.AnchorDay, WeekStart: c.WeekStart})
}
