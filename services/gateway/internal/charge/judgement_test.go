package charge

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func compiled(t *testing.T, limitJSON string) *rule.Compiled {
	t.Helper()
	var r rules.Rule
	if err := json.Unmarshal([]byte(`{"id":"r","subject":{"kind":"tenant","value":"*"},"metric":"m","limit":`+limitJSON+`}`), &r); err != nil {
		t.Fatal(err)
	}
	c, err := rule.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTightestComesFirst(t *testing.T) {
	t.Parallel()
	rate, quota := compiled(t, `{"algorithm":"fixedWindow","limit":10,"window":"1h"}`), compiled(t, `{"algorithm":"quota","kind":"renewing","limit":0,"period":"month"}`)
	order := []Judgement{
		{Rule: quota, State: limit.State{Never: true}}, // 403
		{Rule: rate, State: limit.State{Limit: 5, Never: true}},
		{Rule: rate, State: limit.State{Limit: 5, RetryAfter: time.Hour}},
		{Rule: rate, State: limit.State{Limit: 5, RetryAfter: time.Second}},
		{Rule: rate, State: limit.State{Allowed: true, Limit: 5, Remaining: 1, Reset: time.Second}},
		{Rule: rate, State: limit.State{Allowed: true, Limit: 5, Remaining: 2, Reset: time.Hour}},
		{Rule: rate, State: limit.State{Allowed: true, Limit: 5, Remaining: 2, Reset: time.Second}},
		{Rule: rate, State: limit.State{Allowed: true, Unlimited: true}},
	}
	for i := range order {
		for j := range order {
			got := tighter(order[i], order[j])
			if (i < j && got >= 0) || (i > j && got <= 0) {
				t.Errorf("%d against %d is %d", i, j, got)
			}
		}
	}
}
