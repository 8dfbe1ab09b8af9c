//go:build integration

package controlplane_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// rows counts the rows of every table, and what lies in Redis.
func (s *till) rows(t *testing.T) map[string]int {
	t.Helper()
	found, err := s.db.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, table := range tables {
		all[table] = s.count(t, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize())
	}
	keys, err := s.redis.Keys(t.Context(), s.prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all["redis"] = len(keys)
	return all
}

// Money that is wrong in one way each: in its currency, its amount, its metric
// or its time. Each is a 4xx that names the field, and no table has a row more.
func TestBadMoneyIsRefusedByNameAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	plan := func(old, replacement string) request {
		return request{method: "POST", path: "/v1/plans", body: strings.Replace(planWith(old, replacement), `"id":"pro"`, `"id":"bad"`, 1)}
	}
	s.must(t, 201, request{method: "POST", path: "/v1/plans", body: goodPlan})
	s.must(t, 201, request{method: "POST", path: "/v1/plans", body: strings.NewReplacer("EUR", "USD", `"pro"`, `"dollars"`).Replace(goodPlan)})
	_, subscription := s.subscribe(t, toPro)
	s.topUp(t, 201, "known", `{"amount":5}`)
	long := strings.Repeat("9", 400)
	now := time.Now().UTC()
	lastYear := now.AddDate(-1, 0, 0).Format(time.RFC3339)
	day := func(from, to string) request {
		return request{method: "GET", path: fmt.Sprintf("/v1/customers/acme/days?metric=calls&from=%s&to=%s", from, to)}
	}
	elsewhere := func(path string) request {
		r := topUpWith("k", `{"amount":5}`)
		r.path = path
		return r
	}
	moved := func(times string) request {
		return request{method: "PUT", path: subscription, body: `{"customer":"acme","plan":"pro",` + times + `}`, header: anyVersion}
	}
	rule := func(times string) request {
		return request{method: "POST", path: "/v1/rules", body: strings.Replace(prepaidRule, `"id":"reports"`, `"id":"bad",`+times, 1)}
	}
	override := func(end string) request {
		return request{method: "POST", path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"acme"},"metric":"reports","limit":5,"validUntil":"` + end + `"}`}
	}
	customer := func(currency string) request {
		return request{method: "PUT", path: "/v1/customers/acme", body: strings.Replace(goodCustomer, "EUR", currency, 1), header: anyVersion}
	}
	for name, c := range map[string]struct {
		is          request
		status      int
		field, says string
	}{
		"top-up of half a unit":          {topUpWith("k", `{"amount":0.5}`), 400, "amount", "whole number"},
		"top-up below nothing":           {topUpWith("k", `{"amount":-5}`), 400, "amount", "1 to"},
		"top-up of 2^53":                 {topUpWith("k", `{"amount":9007199254740992}`), 400, "amount", "1 to 9007199254740991"},
		"top-up past 2^53 with before":   {topUpWith("k", `{"amount":9007199254740990}`), 400, "amount", "with 5 granted before"},
		"top-up of 400 digits":           {topUpWith("k", `{"amount":`+long+`}`), 400, "amount", "whole number"},
		"top-up in a currency":           {topUpWith("k", `{"amount":5,"currency":"USD"}`), 400, "currency", "is not a field"},
		"top-up without a key":           {request{method: "POST", path: topUpPath, body: `{"amount":5}`}, 400, "Idempotency-Key", "must be given"},
		"top-up of a metric nobody has":  {elsewhere("/v1/customers/acme/wallets/nothing/topups"), 404, "metric", "nothing is none"},
		"top-up of a renewing quota":     {elsewhere("/v1/customers/acme/wallets/calls/topups"), 404, "metric", "calls is none"},
		"top-up of nobody":               {elsewhere("/v1/customers/nobody/wallets/reports/topups"), 404, "id", "customer"},
		"top-up by last year's clock":    {topUpWith("k", `{"amount":5,"expiresAt":"`+lastYear+`"}`), 400, "expiresAt", "in the future"},
		"top-up by a clock at zero":      {topUpWith("k", `{"amount":5,"expiresAt":"0001-01-01T00:00:00Z"}`), 400, "expiresAt", "given is 0001-01-01T00:00:00Z"},
		"top-up by zero of a zone":       {topUpWith("k", `{"amount":5,"expiresAt":"0001-01-01T02:00:00+02:00"}`), 400, "expiresAt", "in the future"},
		"top-up just after zero":         {topUpWith("k", `{"amount":5,"expiresAt":"0001-01-01T00:00:00.0000004Z"}`), 400, "expiresAt", "in the future"},
		"rule that ended in the year 1":  {rule(`"validUntil":"0001-01-01T00:00:00Z"`), 400, "validUntil", "1970 to 9999"},
		"override until the year 1":      {override("0001-01-01T00:00:00Z"), 400, "validUntil", "1970 to 9999"},
		"subscription since the year 1":  {request{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro","startedAt":"0001-01-01T00:00:00Z"}`}, 400, "startedAt", "leave it out"},
		"subscription until the year 1":  {moved(`"endsAt":"0001-01-01T00:00:00Z"`), 400, "endsAt", "there is none"},
		"key until the year 1":           {request{method: "POST", path: "/v1/keys", body: `{"tenantId":"acme","expiresAt":"0001-01-01T00:00:00Z"}`}, 400, "expiresAt", ""},
		"top-up into the next century":   {topUpWith("k", `{"amount":5,"expiresAt":"2226-01-01T00:00:00Z"}`), 400, "expiresAt", "at the latest (controlplane.maxAhead), or be left out; given is 2226-01-01T00:00:00Z"},
		"top-up for no time":             {topUpWith("k", `{"amount":5,"expiresIn":"-720h"}`), 400, "expiresIn", "1s to 87600h"},
		"top-up for a century":           {topUpWith("k", `{"amount":5,"expiresIn":"876000h"}`), 400, "expiresIn", "given is \"876000h\""},
		"top-up with two ends":           {topUpWith("k", `{"amount":5,"expiresIn":"720h","expiresAt":"`+nextYear+`"}`), 400, "expiresIn", "left out where expiresAt"},
		"rule that ended last year":      {rule(`"validUntil":"` + lastYear + `"`), 400, "validUntil", "given is " + lastYear},
		"rule into the next century":     {rule(`"validUntil":"2226-01-01T00:00:00Z"`), 400, "validUntil", "at the latest"},
		"rule from the next century on":  {rule(`"validFrom":"2226-01-01T00:00:00Z"`), 400, "validFrom", "at the latest"},
		"override that ended last year":  {override(lastYear), 400, "validUntil", "clocks may be off by 15m0s (controlplane.maxClockSkew); given is " + lastYear},
		"override for a century":         {override("2226-01-01T00:00:00Z"), 400, "validUntil", "at the latest"},
		"subscription since last year":   {request{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro","startedAt":"` + lastYear + `"}`}, 400, "startedAt", "leave it out"},
		"subscription until next year":   {request{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro","endsAt":"` + nextYear + `"}`}, 400, "endsAt", "leave it out"},
		"subscription put before itself": {moved(`"startedAt":"` + lastYear + `"`), 400, "startedAt", "given is " + lastYear},
		"subscription put to end":        {moved(`"endsAt":"` + nextYear + `"`), 400, "endsAt", "there is none"},
		"plan in a currency of none":     {plan(`EUR`, `XXX`), 400, "currency", "ISO 4217"},
		"plan in small letters":          {plan(`EUR`, `eur`), 400, "currency", "ISO 4217"},
		"plan of a fee below nothing":    {plan(`49.00`, `-1.00`), 400, "baseFee", ""},
		"plan of half a cent":            {plan(`49.00`, `0.005`), 400, "baseFee", "2 behind"},
		"plan of half a yen":             {plan(`"EUR","timezone":"UTC","proration":"days","baseFee":"49.00"`, `"JPY","baseFee":"0.5"`), 400, "baseFee", "0 behind the point for JPY"},
		"plan of 400 digits":             {plan(`49.00`, long), 400, "baseFee", ""},
		"plan of 2^53 cents":             {plan(`49.00`, `90071992547409.92`), 400, "baseFee", ""},
		"plan with a price below 0":      {plan(`0.004`, `-0.004`), 400, "prices[0].unitPrice", ""},
		"plan with a price as a number":  {plan(`"0.004"`, `0.004`), 400, "prices[0].unitPrice", "string"},
		"plan including half a unit":     {plan(`"included":1000`, `"included":0.5`), 400, "prices[0].included", "whole number"},
		"plan including past 2^53":       {plan(`"included":1000`, `"included":9007199254740993`), 400, "prices[0].included", "0 to 9007199254740992"},
		"plan selling past 2^53":         {plan(`3100`, `9007199254740993`), 400, "rules[0].limit.limit", "must be 0 to"},
		"plan pricing what it has not":   {plan(`"prices":[{"metric":"calls"`, `"prices":[{"metric":"nothing"`), 400, "prices[0].metric", ""},
		"customer who pays in euros":     {customer("USD"), 409, "currency", "must be EUR"},
		"customer of a currency of none": {customer("XAU"), 400, "currency", "ISO 4217"},
		"subscription in dollars":        {request{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"dollars"}`}, 400, "plan", "must be priced in EUR"},
		"subscription of version 2^53":   {request{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro","planVersion":9007199254740992}`}, 400, "planVersion", ""},
		"use until before it began":      {day(nextYear, lastYear), 400, "to", "after from"},
		"use of two years":               {day(lastYear, nextYear), 400, "to", "368 days"},
		"invoices in no state":           {request{method: "GET", path: "/v1/invoices?status=paid"}, 400, "status", "one of"},
		"link that has expired":          {request{method: "POST", path: "/v1/customers/acme/portal-links", body: `{"expiresIn":"-1h"}`}, 400, "expiresIn", "1m to 2160h"},
		"link for a year":                {request{method: "POST", path: "/v1/customers/acme/portal-links", body: `{"expiresIn":"8760h"}`}, 400, "expiresIn", "1m to 2160h"},
	} {
		before := s.rows(t)
		got := c.is.do(t, s)
		p := got.problem(t)
		if got.Code != c.status || len(p.Errors) == 0 || p.Errors[0].Field != c.field || !strings.Contains(p.Errors[0].Message, c.says) {
			t.Errorf("%s: %d %+v", name, got.Code, p)
		}
		if after := s.rows(t); !maps.Equal(before, after) {
			t.Errorf("%s: rows were %v, are %v", name, before, after)
		}
	}
	s.holds(t, 1, 5)
}
