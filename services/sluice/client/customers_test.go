package client

import (
	"encoding/json"
	"slices"
	"testing"
)

// Used is net: a reservation that was committed below its cost has charged more
// than the limit, and is not over it.
func TestCustomersAreListedWithWhatTheyUsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"metric":"calls","period":{"id":"202607"},"consumed":1500,"refunded":700,"limit":1000,"remaining":200,"source":"counters"}`: {"acme", "Acme", "calls", "202607", "800", "1000", "200", "counters"},
		`{"metric":"calls","consumed":5,"refunded":9,"source":"checkpoint","period":{"id":"all"}}`:                                    {"acme", "Acme", "calls", "all", "0", "unlimited", "-", "checkpoint"},
		`{"metric":"money","consumed":120,"refunded":20,"granted":90,"balance":-10,"source":"counters","period":{"id":""}}`:           {"acme", "Acme", "money", "-", "100", "prepaid", "-10", "counters"},
	} {
		var c customerUse
		if err := json.Unmarshal([]byte(`{"id":"acme","name":"Acme","usage":[`+text+`]}`), &c); err != nil {
			t.Fatal(err)
		}
		if got := c.lines(); len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("%s: %q", text, got)
		}
	}
	var c customerUse
	c.ID, c.Name = "beta", "Beta"
	if got := c.lines(); len(got) != 1 || !slices.Equal(got[0], []string{"beta", "Beta", "-", "-", "-", "-", "-", "-"}) {
		t.Errorf("%q", got)
	}
}
