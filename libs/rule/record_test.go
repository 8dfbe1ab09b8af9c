package rule

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

var scanSeeds = []string{
	`{"id":"a","version":7,"subject":{"kind":"tenant","value":"*"},"scope":{"service":"s","endpoint":"GET /x"},"metric":"m","limit":{"algorithm":"gcra","limit":30,"window":"1m","burst":10},"mode":"enforce","onStoreLoss":"open","onMissing":"skip"}`,
	`{ "id" : "q" , "limit" : { "kind": "renewing", "period": "month", "timezone": "UTC", "anchorDay": 15, "weekStart": "", "rollover": 5, "overdraft": "once" }, "unlimited": false, "cost": 0, "priority": -3, "name": "n" }`,
	`{"id":"sub_1:m:month","origin":{"plan":"pro","planVersion":2,"subscription":"sub_1"}}`,
	`{}`, `{"scope":{}}`, ` {"unlimited":true} `,
}

// scanNot is what the scanner must leave to encoding/json, right or wrong.
var scanNot = []string{
	``, `null`, `[]`, `{"id":null}`, `{"ID":"a"}`, `{"id":"ä"}`, `{"id":"\u0061"}`, "{\"id\":\"a\nb\"}", `{"id":"a",}`, `{"id":"a"} x`,
	`{"version":1.0}`, `{"version":1e3}`, `{"version":01}`, `{"version":-}`, `{"version":12345678901234567890}`, `{"unlimited":"true"}`,
	`{"validFrom":"2026-01-01T00:00:00Z"}`, `{"limit":{"previous":[]}}`, `{"limit":{"limit":1},"limit":{"burst":2}}`, `{"colour":"red"}`, `{"id":"a"`,
}

func TestScannerGivesUp(t *testing.T) {
	t.Parallel()
	for _, text := range scanSeeds {
		if !scanRule(text, new(scratch)) {
			t.Errorf("gives up on %s", text)
		}
	}
	for _, text := range scanNot {
		if scanRule(text, new(scratch)) {
			t.Errorf("reads %s", text)
		}
	}
}

// What the scanner reads is what encoding/json reads.
func FuzzScanRule(f *testing.F) {
	for _, text := range append(scanSeeds, scanNot...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s scratch
		if !scanRule(text, &s) {
			return
		}
		var want rules.Rule
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%q: encoding/json says %v", text, err)
		}
		if !reflect.DeepEqual(s.rule, want) {
			t.Fatalf("%q: %+v, want %+v", text, s.rule, want)
		}
	})
}
