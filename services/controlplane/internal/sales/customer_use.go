package sales

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
)

// Use is what a tenant has used of a quota in the running period.
type Use struct {
	Metric    string    `json:"metric"`
	Counter   string    `json:"counter" doc:"The counter with its period, as usage events name it."`
	Rule      string    `json:"rule" doc:"The rule that says the limit; of several on the counter the one with the widest scope."`
	Period    UsePeriod `json:"period"`
	Consumed  int64     `json:"consumed" doc:"Units charged."`
	Refunded  int64     `json:"refunded" doc:"Units of those that were given back."`
	Forfeited int64     `json:"forfeited,omitempty" doc:"Of a prepaid quota: units that expired."`
	Granted   int64     `json:"granted,omitempty" doc:"Of a prepaid quota: all that was ever granted."`
	Balance   *int64    `json:"balance,omitempty" doc:"Of a prepaid quota: granted − consumed + refunded − forfeited; negative after an overdraft."`
	Carried   int64     `json:"carried,omitempty" doc:"Units carried over from the last period, once the first charge of this one has fixed them."`
	Limit     *int64    `json:"limit,omitempty" doc:"Units of the whole period, an override and what was carried counted in; absent is unlimited, and of a prepaid quota."`
	Remaining *int64    `json:"remaining,omitempty" doc:"What is left of limit."`
	Source    string    `json:"source" enum:"counters,checkpoint" doc:"Where use was read from: the counters, or the last checkpoint, where those are away or know less."`
}

// UsePeriod is the running period of a quota.
type UsePeriod struct {
	ID    string     `json:"id" doc:"As counters name it, such as 202607; all for one without end."`
	Start *time.Time `json:"start,omitempty"`
	End   *time.Time `json:"end,omitempty" doc:"The first instant after it."`
	Zone  string     `json:"timezone,omitempty" doc:"Whose midnights these are: the quota's, an IANA name."`
}

const (
	fromCounters   = "counters"
	fromCheckpoint = "checkpoint"
	// counterPatience is how long a list waits for the counters; it has the
	// checkpoints otherwise.
	counterPatience = time.Second
)

// quotaOf is a quota of a customer of a page, and its counter's running period.
type quotaOf struct {
	customer int
	match    rule.Match
	counter  limit.Counter
	bounds   period.Bounds // zero of prepaid ones
	key      string        // the counter's identity with its period
}

// uses works out the use of each customer of a page, with one read of the counters.
func (s *Handlers) uses(ctx context.Context, page quotaPage) [][]Use {
	out := make([][]Use, len(page.customers))
	now := s.Store.Now()
	var quotas []quotaOf
	for i, c := range page.customers {
		out[i] = []Use{}
		about := slices.Concat(page.rules[c.ID], page.rules["*"])
		for _, m := range rule.TenantQuotas(c.ID, about, page.overrides[c.ID], now) {
			q := quotaOf{customer: i, match: m, counter: m.Counter(0)}
			q.key = q.counter.Key
			if q.counter.Renews() {
				q.bounds = q.counter.Calendar.At(now)
				q.key += ":" + q.bounds.Name()
			}
			quotas = append(quotas, q)
		}
	}
	counted := s.counted(ctx, quotas)
	for i, q := range quotas {
		totals, source := page.checkpoints[q.key], fromCheckpoint
		if counted != nil {
			// Whatever a checkpoint holds was charged: counters that know less
			// have lost something, and are yet to be restored.
			if whole := totals.Max(counted[i]); whole == counted[i] {
				source = fromCounters
			}
			totals = totals.Max(counted[i])
		}
		out[q.customer] = append(out[q.customer], q.use(totals, source, page.granted[q.key]))
	}
	return out
}

// counted reads the counters; nil where they cannot be read.
func (s *Handlers) counted(ctx context.Context, quotas []quotaOf) []redisstore.Totals {
	if s.Redis == nil || len(quotas) == 0 {
		return nil
	}
	keys := make([]string, len(quotas))
	for i, q := range quotas {
		keys[i] = q.key
	}
	ctx, cancel := context.WithTimeout(ctx, counterPatience)
	defer cancel()
	found, err := redisstore.ReadTotals(ctx, s.Redis, s.KeyPrefix, keys)
	if err != nil {
		s.Log.WarnContext(ctx, "counters cannot be read; customers are listed by their checkpoints", "error", err)
		return nil
	}
	return found
}

func (q *quotaOf) use(t redisstore.Totals, source string, granted int64) Use {
	u := Use{
		Metric: q.match.Rule.Metric, Counter: q.key, Rule: q.match.Rule.ID, Period: UsePeriod{ID: q.bounds.ID}, Source: source,
		Consumed: t.Consumed, Refunded: t.Refunded, Forfeited: t.Forfeited, Carried: t.Carried,
	}
	if !q.bounds.Endless() {
		u.Period.Start, u.Period.End, u.Period.Zone = &q.bounds.Start, &q.bounds.End, q.bounds.Calendar.Zone()
	}
	if q.counter.Wallet() {
		balance := granted - t.Consumed + t.Refunded - t.Forfeited
		u.Granted, u.Balance = granted, &balance
		return u
	}
	if q.counter.Unlimited {
		return u
	}
	all := int64(0)
	if q.counter.Limit > 0 {
		all = q.bounds.Prorate(q.counter.Limit) + t.Carried
	}
	left := max(0, all-t.Used())
	u.Limit, u.Remaining = &all, &left
	return u
}
