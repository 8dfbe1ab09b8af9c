package threshold

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

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

func TestReachedLeavesOutWhatCannotBe(t *testing.T) {
	t.Parallel()
	at := func(limit *int64, thresholds *rules.Thresholds) (names []string) {
		for _, r := range slices.SortedFunc(reached(&usage.Charge{Consumed: maxUnits, Limit: limit, Thresholds: thresholds}), row.compare) {
			names = append(names, r.name())
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

// A charge that shows nothing new costs look-ups and no allocation.
func TestStoredRowsDoNotWaitAgain(t *testing.T) {
	a := New(Options{MaxStored: 10, Registerer: prometheus.NewRegistry()})
	c := usage.Charge{Counter: "c", Metric: "m", Amount: 1, Consumed: 9, Limit: new(int64(10))}
	a.Observe(&c, noon, "1")
	taken := a.take()
	if len(taken) != 1 {
		t.Fatalf("%d wait, want 80 %%", len(taken))
	}
	a.remember(slices.Collect(maps.Keys(taken)))
	if allocs := testing.AllocsPerRun(100, func() { a.Observe(&c, noon, "1") }); a.Waiting() != 0 || allocs != 0 {
		t.Fatalf("%d wait, %v allocations", a.Waiting(), allocs)
	}
	c.Consumed = 10
	a.Observe(&c, noon, "2")
	if a.Waiting() != 1 {
		t.Fatal("a charge that reaches a threshold does not wait")
	}
}

func TestRememberedRowsAreBounded(t *testing.T) {
	t.Parallel()
	a := New(Options{MaxStored: 3, Registerer: prometheus.NewRegistry()})
	for n := range int64(20) {
		a.remember([]row{{counter: "c", limit: n}})
		if len(a.stored) > 3 {
			t.Fatalf("%d rows are remembered", len(a.stored))
		}
	}
}
