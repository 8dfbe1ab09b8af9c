package event

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// The hand-written encoder says what encoding/json would say.
func TestEncoderAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := usage.Event{
			ID: rapid.String().Draw(t, "id"), TS: time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "ts")).UTC(),
			TenantID: rapid.String().Draw(t, "tenant"), UserID: rapid.String().Draw(t, "user"),
			ApplicationID: rapid.String().Draw(t, "application"), APIKeyHash: rapid.String().Draw(t, "hash"),
			Service: rapid.String().Draw(t, "service"), Endpoint: rapid.String().Draw(t, "endpoint"),
			Method: rapid.String().Draw(t, "method"), Decision: rapid.String().Draw(t, "decision"),
			StatusCode: rapid.Int().Draw(t, "status"), RuleID: rapid.String().Draw(t, "rule"),
			Algo: rapid.String().Draw(t, "algo"), Reason: rapid.String().Draw(t, "reason"),
			Cached: rapid.String().Draw(t, "cached"), Reservation: rapid.String().Draw(t, "reservation"),
			Cost:      rapid.Int64().Draw(t, "cost"),
			LatencyMs: float64(rapid.Int64Range(0, 1e9).Draw(t, "µs")) / 1000,
			Gateway:   rapid.String().Draw(t, "gateway"),
		}
		if rapid.Bool().Draw(t, "reserves") {
			e.ReservationState = &usage.ReservationState{
				Attempt: rapid.Int64().Draw(t, "attempt"), State: rapid.Int64().Draw(t, "state"), EndedAt: rapid.Int64().Draw(t, "ended"),
				Uncharged: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "uncharged"), Record: rapid.String().Draw(t, "record"),
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "charges") {
			c := usage.Charge{
				Counter: rapid.String().Draw(t, "counter"), Metric: rapid.String().Draw(t, "metric"),
				Amount: rapid.Int64().Draw(t, "amount"), Consumed: rapid.Int64().Draw(t, "consumed"),
				Refunded: rapid.Int64().Draw(t, "refunded"), Forfeited: rapid.Int64().Draw(t, "forfeited"),
			}
			c.Pending, c.Refund = rapid.Bool().Draw(t, "pending"), rapid.Bool().Draw(t, "refund")
			if rapid.Bool().Draw(t, "limited") {
				n := rapid.Int64().Draw(t, "limit")
				c.Limit = &n
			}
			if rapid.Bool().Draw(t, "thresholds") {
				points := rapid.SliceOfN(rapid.Int64(), 0, 3)
				c.Thresholds = &rules.Thresholds{Percent: points.Draw(t, "percent"), Absolute: points.Draw(t, "absolute")}
			}
			e.Charges = append(e.Charges, c)
		}
		reference, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var want, got usage.Event
		ours := Append(nil, &e)
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("no JSON: %v: %s", err, ours)
		}
		if err := json.Unmarshal(reference, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %s\nwant %s", ours, reference)
		}
	})
}

func TestEncoderKeepsFieldsAndOrder(t *testing.T) {
	t.Parallel()
	limit := int64(1000)
	e := usage.Event{
		ID: "i", TS: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC), TenantID: "t", UserID: "u", ApplicationID: "a", APIKeyHash: "h", Service: "s", Endpoint: "/e",
		Method: "GET", Decision: "ALLOW", StatusCode: 200, RuleID: "r", Algo: "GCRA", Reason: "x", Cached: "hit", Reservation: "j",
		ReservationState: &usage.ReservationState{Attempt: 1, State: 2, EndedAt: 3, Uncharged: []int64{4}, Record: "{}"}, Cost: 1, LatencyMs: 0.31,
		Charges: []usage.Charge{{Counter: "c", Metric: "m", Amount: 1, Consumed: 2, Refunded: 3, Forfeited: 4, Limit: &limit}},
		Gateway: "g",
	}
	want, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	// encoding/json leaves zero milliseconds out; the length is all that differs.
	want = bytes.Replace(want, []byte("12:00:00Z"), []byte("12:00:00.000Z"), 1)
	if got := Append(nil, &e); !bytes.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestEncoderHasAWordForEveryLatency(t *testing.T) {
	t.Parallel()
	for _, ms := range []float64{0, math.NaN(), math.Inf(1), -1, 0.0004, 12.3456789} {
		if b := Append(nil, &usage.Event{LatencyMs: ms}); !json.Valid(b) {
			t.Errorf("latency %v gives %s", ms, b)
		}
	}
}
