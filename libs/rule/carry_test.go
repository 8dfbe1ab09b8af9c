package rule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// What a rule carries of its earlier calendars is enough: the periods of the
// rule, from now on, are those of a calendar that went through every change.
func TestCarriedCalendarEqualsTheWholeHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"day", "week", "month", "hour"}).Draw(t, "unit")
		now := time.Date(2026, 7, 10, 12, 0, 0, 0, time.UTC)
		var last *rules.Rule
		var history period.Calendar
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			next := drawQuota(t, unit)
			plain, err := period.New(period.Spec{Unit: unit, Zone: next.Limit.Timezone, AnchorDay: next.Limit.AnchorDay, WeekStart: next.Limit.WeekStart})
			if err != nil {
				t.Fatal(err)
			}
			if last == nil {
				history = plain
			} else if history, err = history.Then(plain, now); err != nil {
				t.Fatal(err)
			}
			if err := rule.Carry(last, &next, now); err != nil {
				t.Fatal(err)
			}
			c, err := rule.Compile(next)
			if err != nil {
				t.Fatal(err)
			}
			at := now
			for range 4 {
				want, got := history.At(at), c.Calendar.At(at)
				if want != got {
					t.Fatalf("at %s: %+v\nwant period %s [%s, %s), got %s [%s, %s)", at, next.Limit.Previous, want.Name(), want.Start, want.End, got.Name(), got.Start, got.End)
				}
				at = want.End
			}
			last = &next
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(45*24*time.Hour)/1e9).Draw(t, "later")) * time.Second)
		}
	})
}

func drawQuota(t *rapid.T, unit string) rules.Rule {
	n := int64(10)
	l := &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: &n, Period: unit}
	l.Timezone = rapid.SampledFrom([]string{"", "Europe/Paris", "America/New_York", "Asia/Kathmandu"}).Draw(t, "zone")
	switch unit {
	case "month":
		l.AnchorDay = rapid.SampledFrom([]int{1, 15, 31}).Draw(t, "anchor")
	case "week":
		l.WeekStart = rapid.SampledFrom([]string{"monday", "sunday"}).Draw(t, "start")
	}
	return rule.Normalize(rules.Rule{ID: "q", Subject: rules.Subject{Kind: "tenant", Value: "*"}, Metric: "m", Limit: l})
}

func TestCarryKeepsWhatIsNotACallersToWrite(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 10, 12, 0, 0, 0, time.UTC)
	instant := now.AddDate(10, 0, 0)
	forged := parse(t, quotaRule, `{}`)
	forged.Limit.Since, forged.Limit.Previous = &instant, []rules.Calendar{{Until: instant}}
	next := rule.Normalize(forged)
	if err := rule.Carry(nil, &next, now); err != nil || next.Limit.Since != nil || next.Limit.Previous != nil {
		t.Errorf("a new rule keeps %+v, %v", next.Limit, err)
	}
	if forged.Limit.Since == nil {
		t.Error("the caller's rule was changed")
	}
	rolling := rule.Normalize(parse(t, quotaRule, `{"limit":{"rollover":3}}`))
	if err := rule.Carry(&next, &rolling, now); err != nil || !rolling.Limit.Since.Equal(now) {
		t.Errorf("since is %v, %v", rolling.Limit.Since, err)
	}
	later := rule.Normalize(parse(t, quotaRule, `{"limit":{"rollover":4}}`))
	if err := rule.Carry(&rolling, &later, now.Add(time.Hour)); err != nil || !later.Limit.Since.Equal(now) {
		t.Errorf("since is %v, %v", later.Limit.Since, err)
	}
	// Another period is another counter, at once.
	daily := rule.Normalize(parse(t, quotaRule, `{"limit":{"period":"day","timezone":"Europe/Paris"}}`))
	if err := rule.Carry(&later, &daily, now); err != nil || daily.Limit.Previous != nil || daily.Limit.Since != nil {
		t.Errorf("%+v, %v", daily.Limit, err)
	}
}
