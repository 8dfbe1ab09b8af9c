//go:build integration

package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/schemas/sales"
)

const proPlan = `id: pro
currency: EUR
baseFee: "49.00"
rules:
  - metric: calls
    limit: {algorithm: quota, kind: renewing, limit: 1000}
prices:
  - {metric: calls, model: flat, included: 100, unitPrice: "0.004"}
`

func TestSellingFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	apply := []string{"plans", "apply", "-f", "-"}
	holds(t, s.must(t, proPlan, apply...), "+ create plan pro")
	holds(t, s.must(t, proPlan, apply...), "= unchanged plan pro") // no version for nothing
	holds(t, s.must(t, "", "plans", "list"), "pro", "EUR", "49.00", "month")
	s.refused(t, "rules[0].subject: is not part of a template", strings.Replace(proPlan, "- metric: calls", "- subject: {kind: tenant, value: a}\n    metric: calls", 1), apply...)
	s.refused(t, "baseFee: ", strings.Replace(proPlan, `"49.00"`, `"49.005"`, 1), apply...)

	s.refused(t, "currency: must be a currency", "", "customers", "create", "acme", "--name", "Acme", "--currency", "euro")
	holds(t, s.must(t, "", "customers", "create", "acme", "--name", "Acme", "--currency", "EUR", "--email", "a@acme.example"), `"id": "acme"`, "a@acme.example")
	var sub sales.Subscription
	if err := json.Unmarshal([]byte(s.must(t, "", "subscriptions", "create", "--customer", "acme", "--plan", "pro")), &sub); err != nil || sub.PlanVersion != 1 {
		t.Fatalf("subscribed %+v, %v", sub, err)
	}
	holds(t, s.must(t, "", "customers", "list"), "acme", "calls", "1000", "checkpoint")
	holds(t, s.must(t, "", "customers", "list", "-o", "json"), `"remaining": 1000`)

	// A file of all rules leaves those of subscriptions alone, and so does one that names them.
	ruleFile := "id: mine\nsubject: {kind: tenant, value: '*'}\nmetric: m\nunlimited: true\n"
	holds(t, s.must(t, ruleFile, "rules", "apply", "-f", "-", "--prune"), "+ create rule mine", "0 deleted")
	written := s.must(t, "", "rules", "get", sub.ID+":calls:month")
	holds(t, s.must(t, written, "rules", "apply", "-f", "-"), "1 unchanged")
	s.refused(t, "belongs to subscription "+sub.ID, "", "rules", "delete", sub.ID+":calls:month")

	s.must(t, strings.Replace(proPlan, "1000", "5000", 1), apply...)
	holds(t, s.must(t, "", "plans", "version", "pro", "1"), `"limit": 1000`)
	move := []string{"plans", "move", "pro", "--from", "1", "--to", "2"}
	s.refused(t, "give --all, or --customer", "", move...)
	holds(t, s.must(t, "", append(move, "--all", "--preview")...), "~ move customer acme", "calls: quota 1000/month → quota 5000/month", "nothing was changed")
	s.refused(t, "1 of 2 customers were refused", "", append(move, "--customer", "acme", "--customer", "nobody")...)
	holds(t, s.must(t, "", append(move, "--all")...), "0 moved from version 1 to 2, 0 refused")
	holds(t, s.must(t, "", "subscriptions", "change", sub.ID, "--version", "1"), `"planVersion": 1`)
	holds(t, s.must(t, "", "subscriptions", "change", sub.ID), `"planVersion": 2`)

	holds(t, s.must(t, "", "subscriptions", "end", sub.ID, "--at-period-end"), `"cancelAtPeriodEnd": true`, `"endsAt"`)
	s.refused(t, "409", "", "customers", "delete", "acme")
	holds(t, s.must(t, "", "subscriptions", "end", sub.ID), "ended subscription "+sub.ID)
	holds(t, s.must(t, "", "subscriptions", "list", "--status", "ended", "--customer", "acme"), sub.ID, "pro")
	s.refused(t, "subscription "+sub.ID+" to plan pro is still to be invoiced", "", "customers", "delete", "acme") // no billing runs here
	s.must(t, "", "customers", "create", "beta", "--name", "Beta")
	holds(t, s.must(t, "", "customers", "delete", "beta"), "- delete customer beta")
}
