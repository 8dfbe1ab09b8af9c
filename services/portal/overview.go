package portal

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// account is a customer with its use, as GET /v1/customers/{id}/use answers.
type account struct {
	Name     string `json:"name"`
	Timezone string `json:"timezone"`
	Usage    []use  `json:"usage"`
}

type use struct {
	Metric  string `json:"metric"`
	Counter string `json:"counter"`
	Period  struct {
		Start    *time.Time `json:"start"`
		End      *time.Time `json:"end"`
		Timezone string     `json:"timezone"`
	} `json:"period"`
	Consumed  int64  `json:"consumed"`
	Refunded  int64  `json:"refunded"`
	Forfeited int64  `json:"forfeited"`
	Limit     *int64 `json:"limit"`
	Remaining *int64 `json:"remaining"`
}

// wallet is what was bought in advance, as GET /v1/customers/{id}/wallets answers.
type wallet struct {
	Metric  string  `json:"metric"`
	Balance int64   `json:"balance"`
	Grants  []grant `json:"grants"`
}

type grant struct {
	Left      int64      `json:"left"`
	ExpiresAt *time.Time `json:"expiresAt"`
}

// daySum is what a counter was charged on a day.
type daySum struct {
	Day     string `json:"day"`
	Counter string `json:"counter"`
	Amount  int64  `json:"amount"`
}

// quotaView is one quota as the overview shows it.
type quotaView struct {
	Metric          string
	Used            int64
	Limit           *int64
	Remaining       *int64
	Percent         int64 // of the limit, at most 100
	First, Last     string
	Zone            string // whose days these are, where not the customer's
	Endless         bool
	Chart           *chart
	ChartMissing    bool
	RemainingIsNone bool
}

type overviewContent struct {
	Quotas  []quotaView
	Wallets []wallet
}

func (s *Service) overview(v *visit) {
	ctx := v.r.Context()
	var a account
	var wallets items[wallet]
	err := s.api.get(ctx, &a, nil, "customers", v.customer, "use")
	if err == nil {
		err = s.api.get(ctx, &wallets, nil, "customers", v.customer, "wallets")
	}
	switch {
	case errors.Is(err, errNotFound):
		s.notFound(v)
		return
	case err != nil:
		s.away(v, err)
		return
	}
	zone := zoneOf(a.Timezone)
	content := overviewContent{Wallets: wallets.Items}
	inWallet := map[string]bool{}
	for _, w := range wallets.Items {
		inWallet[w.Metric] = true
	}
	for _, u := range a.Usage {
		if u.Limit == nil && inWallet[u.Metric] && u.Period.End == nil {
			continue // shown as the wallet
		}
		content.Quotas = append(content.Quotas, s.quota(ctx, v.customer, u, zone))
	}
	s.show(v, "overview.html", page{Title: "Your usage", Name: a.Name, Content: content})
}

// quota shows the period by the clock that it follows: by another one it would
// begin and end in the middle of a day.
func (s *Service) quota(ctx context.Context, customer string, u use, zone *time.Location) quotaView {
	q := quotaView{Metric: u.Metric, Used: max(0, u.Consumed-u.Refunded+u.Forfeited), Limit: u.Limit, Remaining: u.Remaining}
	if u.Limit != nil {
		q.RemainingIsNone = u.Remaining != nil && *u.Remaining == 0
		if q.Percent = 100; *u.Limit > 0 {
			q.Percent = min(100, int64(float64(q.Used)/float64(*u.Limit)*100)) // for the eye only
		}
	}
	if u.Period.Start == nil || u.Period.End == nil {
		q.Endless = true
		return q
	}
	if own := zoneOf(u.Period.Timezone); u.Period.Timezone != "" && own.String() != zone.String() {
		zone, q.Zone = own, own.String()
	}
	start, end := *u.Period.Start, *u.Period.End
	q.First, q.Last = day(start.In(zone)), day(end.Add(-time.Nanosecond).In(zone))
	if end.Sub(start) <= 24*time.Hour {
		return q // a chart of one day says nothing
	}
	var days items[daySum]
	err := s.api.get(ctx, &days, url.Values{
		"metric": {u.Metric}, "from": {start.Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}, "timezone": {zone.String()},
	}, "customers", customer, "days")
	if err != nil {
		// The chart comes from the search store; the numbers above do not.
		s.deps.Log.WarnContext(ctx, "chart cannot be shown", "error", err)
		q.ChartMissing = true
		return q
	}
	q.Chart = draw(days.Items, u, zone, s.deps.Now())
	return q
}

// zoneOf is the one of that name, or UTC.
func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return time.UTC
	}
	return zone
}
