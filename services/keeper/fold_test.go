package keeper

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// history is what Redis did to some counters, in its order: the last event of
// a counter carries its final totals.
func history(t *rapid.T) (events []usage.Event, want map[string]totals) {
	want = map[string]totals{}
	for n := range rapid.IntRange(1, 40).Draw(t, "events") {
		counter := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "counter")
		limit := int64(n)
		c := want[counter]
		c.metric, c.limit, c.eventID = "m", &limit, fmt.Sprintf("%04d", n)
		c.chargedAt = noon.Add(time.Duration(n/2) * time.Millisecond)
		c.consumed += rapid.Int64Range(0, 9).Draw(t, "consumed")
		c.refunded += rapid.Int64Range(0, 2).Draw(t, "refunded")
		c.forfeited += rapid.Int64Range(0, 1).Draw(t, "forfeited")
		want[counter] = c
		events = append(events, usage.Event{ID: c.eventID, TS: c.chargedAt, Charges: []usage.Charge{{
			Counter: counter, Metric: "m", Consumed: c.consumed, Refunded: c.refunded, Forfeited: c.forfeited, Limit: &limit}}})
	}
	return events, want
}

func TestFoldIsTheSameInAnyOrderWithAnyDuplicates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events, want := history(t)
		delivered := rapid.Permutation(append(events, rapid.SliceOf(rapid.SampledFrom(events)).Draw(t, "duplicates")...)).Draw(t, "order")
		f := newFold()
		for _, e := range delivered {
			if bad := f.event(e, noon); bad != 0 {
				t.Fatalf("refused %+v", e)
			}
			if rapid.IntRange(0, 9).Draw(t, "failed checkpoint") == 0 {
				counters, oldest := f.take()
				f.giveBack(counters, oldest)
			}
		}
		got, _ := f.take()
		if !maps.EqualFunc(got, want, equal) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		if f.size() != 0 || f.age(noon.Add(time.Hour)) != 0 {
			t.Fatal("the fold is not empty after take")
		}
	})
}

func equal(a, b totals) bool {
	la, lb := a.limit, b.limit
	a.limit, b.limit = nil, nil
	return a == b && (la == nil) == (lb == nil) && (la == nil || *la == *lb)
}

func TestChargesNoGatewayMakesAreRefusedAlone(t *testing.T) {
	t.Parallel()
	f := newFold()
	bad := f.event(usage.Event{ID: "x", TS: noon, Charges: []usage.Charge{
		{Counter: "", Consumed: 1}, {Counter: "a", Consumed: -1}, {Counter: "a\x00", Consumed: 1},
		{Counter: string(make([]byte, 4000)), Consumed: 1}, {Counter: "good", Consumed: 7},
	}}, noon)
	got, _ := f.take()
	if bad != 4 || len(got) != 1 || got["good"].consumed != 7 {
		t.Fatalf("%d refused, kept %v", bad, got)
	}
}

func TestAClockFarAheadDoesNotStayTheNewest(t *testing.T) {
	t.Parallel()
	f := newFold()
	f.event(usage.Event{ID: "x", TS: noon.AddDate(50, 0, 0), Charges: []usage.Charge{{Counter: "a", Metric: "ahead"}}}, noon)
	f.event(usage.Event{ID: "y", TS: noon.Add(time.Hour), Charges: []usage.Charge{{Counter: "a", Metric: "later"}}}, noon.Add(time.Hour))
	if got, _ := f.take(); got["a"].metric != "later" {
		t.Fatalf("kept %+v", got["a"])
	}
}
