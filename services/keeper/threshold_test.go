package keeper

import (
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func TestPercentIsTheLeastUseThatReachesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, percent, want int64 }{
		{100, 80, 80}, {1000, 100, 1000}, {3, 50, 2}, {1, 80, 1}, {7, 100, 7}, {10, 1, 1}, {101, 80, 81},
		{maxUnits, 80, 7205759403792794}, {maxUnits, maxPercent, 10 * maxUnits}, {99, 33, 33},
	} {
		got := percentOf(c.limit, c.percent)
		if got != c.want {
			t.Errorf("%d %% of %d lies at %d, not %d", c.percent, c.limit, got, c.want)
		}
	}
}

func TestPointsAscendAndLeaveOutWhatCannotBe(t *testing.T) {
	t.Parallel()
	at := func(limit *int64, thresholds *rules.Thresholds) (names []string) {
		for _, p := range pointsOf(&usage.Charge{Limit: limit, Thresholds: thresholds}) {
			names = append(names, p.name())
		}
		return names
	}
	mixed := &rules.Thresholds{Percent: []int64{100, 50, 0, -5, maxPercent + 1}, Absolute: []int64{700, 5, 0, maxUnits + 1}}
	for name, c := range map[string]struct{ got, want []string }{
		"default":           {at(new(int64(10)), nil), []string{"80%", "100%"}},
		"mixed":             {at(new(int64(1000)), mixed), []string{"5", "50%", "700", "100%"}},
		"unlimited":         {at(nil, mixed), []string{"5", "700"}},
		"limit of 0":        {at(new(int64(0)), mixed), []string{"5", "700"}},
		"none":              {at(new(int64(10)), &rules.Thresholds{}), nil},
		"default unlimited": {at(nil, nil), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, not %q", name, c.got, c.want)
		}
	}
}

func TestCountersSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	for counter, want := range map[string]struct {
		kind, value, period string
		shadow              bool
	}{
		"{t:acme}:t::reports:quota:month:202607":                      {"tenant", "acme", "month:202607", false},
		"{t:a%3Ab}:u:u%201:reports:quota:day@Europe/Paris:20260329":   {"user", "a:b/u 1", "day@Europe/Paris:20260329", false},
		"{t:acme}:a:app:reports:quota-shadow:month:202607":            {"application", "acme/app", "", true},
		"{t:acme}:k:key-1:quota-shadow:quota:never:all":               {"apiKey", "key-1", "never:all", false},
		"{s:pay}:s::reports:quota:month:202607":                       {"service", "pay", "month:202607", false},
		"{s:pay}:e:GET%20/pay/%7Bid%7D:reports:quota:hour:2026072314": {"endpoint", "pay GET /pay/{id}", "hour:2026072314", false},
		"{-}:t::reports:quota:month:202607":                           {"tenant", "", "month:202607", false},
		"{t:acme}:t::reports:quota":                                   {"tenant", "acme", "", false},
		"{t:a%00%FF}:t::reports:quota":                                {"tenant", "a\uFFFD\uFFFD", "", false},
		"no counter at all":                                           {"", "no counter at all", "", false},
	} {
		s := subjectOf(counter)
		if s.Kind != want.kind || s.Value != want.value {
			t.Errorf("%s: subject %+v", counter, s)
		}
		if !want.shadow && calendarOf(counter) != want.period {
			t.Errorf("%s: period %q", counter, calendarOf(counter))
		}
		if shadowed(counter) != want.shadow {
			t.Errorf("%s: shadowed %v", counter, !want.shadow)
		}
	}
}

// Whatever is settled costs a look-up and no more.
func TestSettledChargeDoesNotWaitAgain(t *testing.T) {
	w := newWatch(10)
	e := usage.Event{ID: "1", TS: noon, Charges: []usage.Charge{{Counter: "c", Metric: "m", Amount: 1, Consumed: 5, Limit: new(int64(10))}}}
	w.event(&e)
	if w.size() != 1 {
		t.Fatal("a counter seen first does not wait")
	}
	for a := range w.take() {
		w.settled(a, 8, false)
	}
	if allocs := testing.AllocsPerRun(100, func() { w.event(&e) }); w.size() != 0 || allocs != 0 {
		t.Fatalf("%d wait, %v allocations", w.size(), allocs)
	}
	e.Charges[0].Consumed = 8
	w.event(&e)
	if w.size() != 1 {
		t.Fatal("a charge that reaches a threshold does not wait")
	}
}

func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	w := newWatch(3)
	for n := range int64(20) {
		w.settled(arming{counter: string(rune('a' + n%5)), limit: n}, 1, false)
		if len(w.marks) > 3 {
			t.Fatalf("%d counters have marks", len(w.marks))
		}
	}
	for n := range int64(20) {
		w.settled(arming{counter: "a", limit: n}, 1, false)
	}
	if n := len(w.marks["a"]); n != maxMarks {
		t.Fatalf("%d marks of one counter", n)
	}
}
