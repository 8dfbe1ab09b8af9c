package controlplane_test

import "strings"

// goodPlan sells 3100 calls a month, at most 10 a second.
const goodPlan = `{"id":"pro","name":"Pro","currency":"EUR","timezone":"UTC","proration":"days","baseFee":"49.00","rules":[
	{"metric":"calls","limit":{"algorithm":"quota","kind":"renewing","limit":3100}},
	{"metric":"calls","limit":{"algorithm":"gcra","limit":10,"window":"1s"}}],
	"prices":[{"metric":"calls","model":"flat","included":1000,"unitPrice":"0.004"}]}`

func planWith(old, replacement string) string {
	return strings.Replace(goodPlan, old, replacement, 1)
}
