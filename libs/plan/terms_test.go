package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// subscribed is a subscription to a plan since a time.
func subscribed(p sales.Plan, since string) sales.Subscription {
	from, err := time.Parse(time.RFC3339, since)
	if err != nil {
		panic(err)
	}
	return sales.Subscription{ID: "sub_1", Customer: "acme", Status: sales.StatusActive, StartedAt: &from,
		Plan: p.ID, PlanVersion: p.Version, Phases: []sales.Phase{{Plan: p.ID, PlanVersion: p.Version, From: from}}}
}

func changed(s sales.Subscription, p sales.Plan, from time.Time) sales.Subscription {
	s.Plan, s.PlanVersion = p.ID, p.Version
	s.Phases = append(s.Phases, sales.Phase{Plan: p.ID, PlanVersion: p.Version, From: from})
	return s
}

func terms(t testing.TB, s sales.Subscription, c sales.Customer, now string, plans ...sales.Plan) plan.Terms {
	t.Helper()
	versions := map[plan.Version]sales.Plan{}
	for _, p := range plans {
		versions[plan.Version{Plan: p.ID, Number: p.Version}] = plan.NormalizePlan(p)
	}
	got, err := plan.TermsAt(s, c, versions, at(t, now))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Rules {
		if found := rule.Validate(r); found != nil {
			t.Fatalf("rule %s: %v", r.ID, found)
		}
	}
	for _, o := range got.Overrides {
		if found := rule.ValidateOverride(o); found != nil {
			t.Fatalf("override %s: %v", o.ID, found)
		}
	}
	return got
}

var acme = sales.Customer{ID: "acme", Timezone: "Europe/Istanbul"}

func TestRulesAreTheTemplatesOfOneTenant(t *testing.T) {
	t.Parallel()
	p := parse[sales.Plan](t, goodPlan)
	got := terms(t, subscribed(p, "2026-06-30T21:00:00Z"), acme, "2026-06-30T21:00:00Z", p)
	if len(got.Rules) != 2 || len(got.Overrides) != 0 || !got.Due.IsZero() {
		t.Fatalf("a whole period gives %+v", got)
	}
	quota, rate := got.Rules[0], got.Rules[1]
	if quota.ID != "sub_1:calls:month" || rate.ID != "sub_1:calls:1s" || quota.Subject.Value != "acme" || quota.Subject.Kind != "tenant" ||
		quota.Limit.Timezone != "Europe/Istanbul" || quota.Limit.Period != "month" || quota.Origin.PlanVersion != 1 || quota.OnStoreLoss != "closed" {
		t.Errorf("rules %+v %+v", quota, rate)
	}
	// Another version of the rules has the same ids, and so the same counters.
	p2 := parse[sales.Plan](t, planWith(`"limit":3100`, `"limit":6200,"timezone":"UTC"`))
	p2.Version = 2
	again := terms(t, changed(subscribed(p, "2026-06-30T21:00:00Z"), p2, at(t, "2026-06-30T21:00:00Z")), acme, "2026-06-30T21:00:00Z", p, p2)
	if again.Rules[0].ID != quota.ID || *again.Rules[0].Limit.Limit != 6200 || again.Rules[0].Limit.Timezone != "UTC" {
		t.Errorf("version 2 gives %+v", again.Rules[0])
	}
}

// The ids of the longest names fit a rule's.
func TestRuleIDsFit(t *testing.T) {
	t.Parallel()
	p := parse[sales.Plan](t, `{"id":"p","version":1,"currency":"EUR","rules":[{"metric":"`+strings.Repeat("m", 64)+
		`","mode":"shadow","scope":{"service":"`+strings.Repeat("s", 128)+`"},"limit":{"algorithm":"fixedWindow","limit":1,"window":"31535999s"}}]}`)
	if found := plan.ValidatePlan(p); found != nil {
		t.Fatal(found)
	}
	s := subscribed(p, "2026-07-01T00:00:00Z")
	s.ID = "sub_" + strings.Repeat("0", 32)
	terms(t, s, sales.Customer{ID: strings.Repeat("c", 128)}, "2026-07-01T00:00:00Z", p) // validates
}

func TestProrationByDays(t *testing.T) {
	t.Parallel()
	p := parse[sales.Plan](t, goodPlan) // 3100 a month
	double := parse[sales.Plan](t, planWith(`3100`, `6200`))
	double.Version = 2
	unlimited := parse[sales.Plan](t, planWith(`"kind":"renewing","limit":3100}`, `"kind":"renewing"},"unlimited":true`))
	unlimited.Version = 3
	whole := parse[sales.Plan](t, planWith(`"days"`, `"none"`))
	whole.Version = 4
	utc := sales.Customer{ID: "acme"}
	ends := func(s sales.Subscription, end string) sales.Subscription {
		e := at(t, end)
		s.EndsAt = &e
		return s
	}
	for _, c := range []struct {
		name     string
		s        sales.Subscription
		customer sales.Customer
		now      string
		limit    int64 // 0: no override
		due      string
	}{
		{"the first day", subscribed(p, "2026-07-01T23:00:00Z"), utc, "2026-07-01T23:00:00Z", 0, ""},
		{"16 of 31 days", subscribed(p, "2026-07-16T12:00:00Z"), utc, "2026-07-16T12:00:00Z", 1600, "2026-08-01T00:00:00Z"},
		{"the last second", subscribed(p, "2026-07-31T23:59:59Z"), utc, "2026-07-31T23:59:59Z", 100, "2026-08-01T00:00:00Z"},
		{"rounded up, 2 of 30", subscribed(p, "2026-06-29T00:00:00Z"), utc, "2026-06-29T00:00:00Z", 207, "2026-07-01T00:00:00Z"},
		{"the customer's day", subscribed(p, "2026-07-15T21:00:00Z"), acme, "2026-07-15T21:00:00Z", 1600, "2026-07-31T21:00:00Z"},
		{"a month of 31 days and an hour", subscribed(p, "2026-10-17T10:00:00Z"), sales.Customer{ID: "acme", Timezone: "Europe/Paris"},
			"2026-10-17T10:00:00Z", 1500, "2026-10-31T23:00:00Z"},
		{"the second period", subscribed(p, "2026-07-16T12:00:00Z"), utc, "2026-08-01T00:00:00Z", 0, ""},
		{"changed on the 16th", changed(subscribed(p, "2026-05-01T00:00:00Z"), double, at(t, "2026-07-16T09:00:00Z")), utc, "2026-07-16T09:00:00Z", 1500 + 3200, "2026-08-01T00:00:00Z"},
		{"joined on the 11th, changed on the 16th", changed(subscribed(p, "2026-07-11T00:00:00Z"), double, at(t, "2026-07-16T09:00:00Z")), utc, "2026-07-20T00:00:00Z", 500 + 3200, "2026-08-01T00:00:00Z"},
		{"changed twice on a day", changed(changed(subscribed(p, "2026-05-01T00:00:00Z"), whole, at(t, "2026-07-16T08:00:00Z")), double, at(t, "2026-07-16T09:00:00Z")), utc, "2026-07-16T09:00:00Z", 1500 + 3200, "2026-08-01T00:00:00Z"},
		{"unlimited before", changed(subscribed(unlimited, "2026-05-01T00:00:00Z"), p, at(t, "2026-07-16T09:00:00Z")), utc, "2026-07-16T09:00:00Z", 0, ""},
		{"to a plan without", changed(subscribed(p, "2026-05-01T00:00:00Z"), whole, at(t, "2026-07-16T09:00:00Z")), utc, "2026-07-16T09:00:00Z", 0, ""},
		{"ends with its period", ends(subscribed(p, "2026-05-01T00:00:00Z"), "2026-08-01T00:00:00Z"), utc, "2026-07-16T09:00:00Z", 0, "2026-08-01T00:00:00Z"},
		{"ends on the 10th, in this period", ends(subscribed(p, "2026-05-01T00:00:00Z"), "2026-07-11T00:00:00Z"), utc, "2026-07-05T09:00:00Z", 1000, "2026-07-11T00:00:00Z"},
		{"ends in the next period", ends(subscribed(p, "2026-05-01T00:00:00Z"), "2026-08-11T00:00:00Z"), utc, "2026-07-05T09:00:00Z", 0, "2026-08-01T00:00:00Z"},
	} {
		got := terms(t, c.s, c.customer, c.now, p, double, unlimited, whole)
		limit, due := int64(0), ""
		if len(got.Overrides) == 1 {
			limit = *got.Overrides[0].Limit
		}
		if !got.Due.IsZero() {
			due = got.Due.UTC().Format(time.RFC3339)
		}
		if limit != c.limit || due != c.due || len(got.Overrides) > 1 {
			t.Errorf("%s: %d due %q, want %d due %q; %+v", c.name, limit, due, c.limit, c.due, got.Overrides)
		}
	}
}

func TestAnEndStandsInTheRules(t *testing.T) {
	t.Parallel()
	p := parse[sales.Plan](t, goodPlan)
	s := subscribed(p, "2026-05-01T00:00:00Z")
	end := at(t, "2026-08-01T00:00:00Z")
	s.EndsAt = &end
	for _, r := range terms(t, s, acme, "2026-07-31T20:00:00Z", p).Rules {
		if r.ValidUntil == nil || !r.ValidUntil.Equal(end) {
			t.Errorf("rule %s holds until %v", r.ID, r.ValidUntil)
		}
	}
	if got := terms(t, s, acme, "2026-08-01T00:00:00Z", p); len(got.Rules) != 0 || !got.Due.IsZero() {
		t.Errorf("after its end it stands for %+v", got)
	}
}

// Whatever is changed when: a period's quota is no more than the largest limit;
// one change more to the same numbers changes nothing; what is due is not past.
func TestSharesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Paris", "Pacific/Apia", "America/St_Johns"}).Draw(t, "zone")
		c := sales.Customer{ID: "acme", Timezone: zone}
		now := time.Unix(rapid.Int64Range(1.2e9, 2e9).Draw(t, "start"), 0).UTC()
		versions := map[plan.Version]sales.Plan{}
		var s sales.Subscription
		most := int64(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "phases") {
			n := rapid.Int64Range(1, 1<<53).Draw(t, "limit")
			most = max(most, n)
			text := fmt.Sprintf(`{"id":"p","version":%d,"currency":"EUR","proration":"days","rules":[{"metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":%d}}]}`, i+1, n)
			p := sales.Plan{}
			mustParse(t, text, &p)
			versions[plan.Version{Plan: "p", Number: p.Version}] = plan.NormalizePlan(p)
			if i == 0 {
				s = sales.Subscription{ID: "s", Status: sales.StatusActive}
			} else {
				now = now.Add(time.Duration(rapid.Int64Range(0, 20*86400).Draw(t, "later")) * time.Second)
			}
			s = changed(s, p, now)
		}
		got, err := plan.TermsAt(s, c, versions, now)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Due.IsZero() && !got.Due.After(now) {
			t.Fatalf("due at %s, it is %s", got.Due, now)
		}
		again, err := plan.TermsAt(changed(s, versions[plan.Version{Plan: "p", Number: s.PlanVersion}], now.Add(time.Second)), c, versions, now)
		if err != nil || len(again.Overrides) != len(got.Overrides) || len(got.Overrides) == 1 && *again.Overrides[0].Limit != *got.Overrides[0].Limit {
			t.Fatalf("the same plan again: %+v, %+v, %v", got.Overrides, again.Overrides, err)
		}
		if len(got.Overrides) == 1 && (*got.Overrides[0].Limit < 1 || *got.Overrides[0].Limit > most) {
			t.Fatalf("%d is not between 1 and %d", *got.Overrides[0].Limit, most)
		}
	})
}
