package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// charged is an event with charges of other counters side by side: an amount
// must be summed with its own.
func charged(tenant string, n int, at time.Time, charges ...usage.Charge) usage.Event {
	e := Event(tenant, n)
	e.TS, e.Charges = at, charges
	return e
}

func charge(counter, metric string, amount int64) usage.Charge {
	return usage.Charge{Counter: counter, Metric: metric, Amount: amount}
}

// sumEvents has two tenants, two metrics, a refund, an event without charges
// and one at the last instant of a day.
func sumEvents() []usage.Event {
	return []usage.Event{
		charged("acme", 1, Noon, charge("a:calls", "calls", 1), charge("a:bytes", "bytes", 1<<40)),
		charged("acme", 2, Noon.Add(time.Second), charge("a:calls", "calls", 5)),
		charged("acme", 3, Noon.Add(12*time.Hour-time.Millisecond), charge("a:calls", "calls", -2)),
		charged("acme", 4, Noon.Add(12*time.Hour), charge("a:calls", "calls", 10), charge("u:calls", "calls", 3)),
		charged("acme", 5, Noon),
		charged("globex", 1, Noon, charge("g:calls", "calls", 7)),
	}
}

func totals(t *testing.T, h Harness) {
	s := h.New(t)
	h.putAll(t, s, sumEvents()...)
	acme := []usagestore.CounterSum{{Counter: "a:bytes", Amount: 1 << 40, Events: 1}, {Counter: "a:calls", Amount: 14, Events: 4}, {Counter: "u:calls", Amount: 3, Events: 1}}
	globex := usagestore.CounterSum{Counter: "g:calls", Amount: 7, Events: 1}
	for name, c := range map[string]struct {
		q    usagestore.TotalsQuery
		want []usagestore.CounterSum
	}{
		"one tenant": {usagestore.TotalsQuery{TenantID: "acme"}, acme},
		"everyone":   {usagestore.TotalsQuery{}, []usagestore.CounterSum{acme[0], acme[1], globex, acme[2]}},
		"a span": {usagestore.TotalsQuery{TenantID: "acme", From: Noon.Add(time.Second), To: Noon.Add(12 * time.Hour)},
			[]usagestore.CounterSum{{Counter: "a:calls", Amount: 3, Events: 2}}},
		"nobody": {usagestore.TotalsQuery{TenantID: "acm"}, nil},
	} {
		for _, limit := range []int{0, 1, 2, len(c.want)} {
			c.q.Limit, c.q.After = limit, ""
			var got []usagestore.CounterSum
			for {
				page, err := s.Totals(t.Context(), c.q)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got = append(got, page.Sums...); page.Next == "" {
					break
				}
				c.q.After = page.Next
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, limit %d (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}

func days(t *testing.T, h Harness) {
	s := h.New(t)
	h.putAll(t, s, sumEvents()...)
	istanbul, err := time.LoadLocation("Europe/Istanbul") // 3 hours ahead
	if err != nil {
		t.Fatal(err)
	}
	calls := usagestore.DaysQuery{TenantID: "acme", Metric: "calls", From: Noon.Add(-24 * time.Hour), To: Noon.Add(48 * time.Hour)}
	east := calls
	east.Zone = istanbul
	for name, c := range map[string]struct {
		q    usagestore.DaysQuery
		want []usagestore.DaySum
	}{
		"UTC": {calls, []usagestore.DaySum{{Day: "2026-07-23", Counter: "a:calls", Amount: 4}, {Day: "2026-07-24", Counter: "a:calls", Amount: 10}, {Day: "2026-07-24", Counter: "u:calls", Amount: 3}}},
		"Istanbul": {east, []usagestore.DaySum{
			{Day: "2026-07-23", Counter: "a:calls", Amount: 6}, {Day: "2026-07-24", Counter: "a:calls", Amount: 8}, {Day: "2026-07-24", Counter: "u:calls", Amount: 3}}},
		"another metric": {usagestore.DaysQuery{TenantID: "acme", Metric: "bytes", From: Noon, To: Noon.Add(time.Hour)},
			[]usagestore.DaySum{{Day: "2026-07-23", Counter: "a:bytes", Amount: 1 << 40}}},
		"nobody": {usagestore.DaysQuery{TenantID: "acme", Metric: "call", From: Noon, To: Noon.Add(time.Hour)}, nil},
	} {
		got, err := s.Days(t.Context(), c.q)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func badDays(t *testing.T, h Harness) {
	s := h.New(t)
	for name, q := range map[string]usagestore.DaysQuery{
		"no tenant":    {Metric: "calls", From: Noon, To: Noon.Add(time.Hour)},
		"no metric":    {TenantID: "acme", From: Noon, To: Noon.Add(time.Hour)},
		"backwards":    {TenantID: "acme", Metric: "calls", From: Noon, To: Noon},
		"all too long": {TenantID: "acme", Metric: "calls", From: Noon, To: Noon.AddDate(1, 0, 4)},
	} {
		if _, err := s.Days(t.Context(), q); !errors.Is(err, usagestore.ErrBadQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
