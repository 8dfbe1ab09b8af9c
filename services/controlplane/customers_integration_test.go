//go:build integration

package controlplane_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/sales"
)

const goodCustomer = `{"id":"acme","name":"Acme Ltd","timezone":"Europe/Istanbul","currency":"EUR","contact":{"email":"billing@acme.example","address":"1 Road\nTown"}}`

func TestCustomerLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: goodCustomer})
	w.must(t, 409, request{method: "POST", path: "/v1/customers", body: goodCustomer})
	got := w.must(t, 200, request{method: "GET", path: "/v1/customers/acme"})
	var shown sales.Customer
	if err := json.Unmarshal(got.Body.Bytes(), &shown); err != nil || shown.Name != "Acme Ltd" || shown.Contact.Address != "1 Road\nTown" || shown.Version == 0 {
		t.Fatalf("shows %s, %v", got.Body, err)
	}
	put := w.put(t, 200, "/v1/customers/acme", got.Header().Get("ETag"), got.Body.String()) // what GET returns can be PUT back
	w.put(t, 412, "/v1/customers/acme", got.Header().Get("ETag"), goodCustomer)
	w.delete(t, 204, "/v1/customers/acme", put.Header().Get("ETag"))
	w.must(t, 404, request{method: "GET", path: "/v1/customers/acme"})
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: goodCustomer})
	if n := w.count(t, `SELECT count(*) FROM audit WHERE kind = 'customer' AND actor = 'alice'`); n != 4 {
		t.Errorf("the audit log holds %d rows for 4 changes", n)
	}
	if n := w.count(t, `SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d customers left for a topic: none carries them", n)
	}
}

// Units and invoices are of whoever has the id: it is not taken from a customer
// who has some, and nobody gets it who has not.
func TestACustomerWithAccountsStays(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.topUp(t, 201, "order-1", `{"amount":5}`)
	refused := func(t *testing.T, r request, says string) {
		t.Helper()
		if p := s.must(t, 409, r).problem(t); !strings.HasSuffix(p.Type, "has-accounts") || !strings.Contains(p.Detail, says) {
			t.Errorf("%+v", p)
		}
	}
	removal := request{method: "DELETE", path: "/v1/customers/acme", header: anyVersion}
	refused(t, removal, "1 ledger entries, 0 invoices")
	s.must(t, 200, request{method: "GET", path: "/v1/customers/acme"})
	s.topUp(t, 201, "order-1", `{"amount":5}`) // and is answered as before
	s.holds(t, 1, 5)

	s.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"billed","name":"Billed"}`})
	if _, err := s.db.Exec(t.Context(), `INSERT INTO invoices (id, customer, currency, starts_at, ends_at, status, total, document, updated_at)
		VALUES ('i', 'billed', 'EUR', '2026-07-01T00:00:00Z', '2026-08-01T00:00:00Z', 'draft', 0, '{}', now())`); err != nil {
		t.Fatal(err)
	}
	removal.path = "/v1/customers/billed"
	refused(t, removal, "0 ledger entries, 1 invoices")

	// Ids that were given up before this was so.
	if _, err := s.db.Exec(t.Context(), `UPDATE customers SET document = NULL`); err != nil {
		t.Fatal(err)
	}
	audited := s.count(t, `SELECT count(*) FROM audit`)
	refused(t, request{method: "POST", path: "/v1/customers", body: goodCustomer}, "needs a new id")
	refused(t, request{method: "PUT", path: "/v1/customers/billed", body: `{"name":"B"}`, header: map[string]string{"If-None-Match": "*"}}, "needs a new id")
	if n := s.count(t, `SELECT count(*) FROM audit`) - audited; n != 0 {
		t.Errorf("%d audit rows of what was refused", n)
	}
}

// What a subscription that has ended still owes is not lost with its customer: it
// stays until billing has written it down, and as somebody's account after that.
func TestACustomerStaysUntilItIsBilled(t *testing.T) {
	t.Parallel()
	w, now := shop(t)
	s, at := w.subscribe(t, toPro)
	now.set(t, "2026-07-20T06:00:00Z")
	w.delete(t, 204, at, "*")
	now.set(t, "2026-07-20T06:00:30Z") // before the next pass
	audited := w.count(t, `SELECT count(*) FROM audit`)
	refused := func(method string, header map[string]string, why, span string) {
		t.Helper()
		p := w.must(t, 409, request{method: method, path: "/v1/customers/acme", body: `{"name":"Acme"}`, header: header}).problem(t)
		if !strings.HasSuffix(p.Type, ":unbilled") || !strings.Contains(p.Detail, why) || !strings.Contains(p.Detail, "subscription "+s.ID+" to plan pro is still to be invoiced from "+span) ||
			!strings.Contains(p.Detail, "--target=billing") {
			t.Errorf("%s: %+v", method, p)
		}
	}
	refused("DELETE", anyVersion, "the customer stays", "2026-07-16T12:00:00Z to 2026-07-20T06:00:00Z")
	through := func(text string) {
		t.Helper()
		if _, err := w.db.Exec(t.Context(), `INSERT INTO invoiced_subscriptions (subscription, through) VALUES ($1, $2::timestamptz)
			ON CONFLICT (subscription) DO UPDATE SET through = excluded.through`, s.ID, text); err != nil {
			t.Fatal(err)
		}
	}
	through("2026-07-18T00:00:00Z")
	refused("DELETE", anyVersion, "the customer stays", "2026-07-18T00:00:00Z to 2026-07-20T06:00:00Z")
	// An id that was given up before this was so: its next customer would be billed for it.
	if _, err := w.db.Exec(t.Context(), `UPDATE customers SET document = NULL`); err != nil {
		t.Fatal(err)
	}
	refused("PUT", map[string]string{"If-None-Match": "*"}, "needs a new id", "2026-07-18T00:00:00Z to 2026-07-20T06:00:00Z")
	if n := w.count(t, `SELECT count(*) FROM audit`) - audited; n != 0 {
		t.Errorf("%d audit rows of what was refused", n)
	}
	through("2026-08-01T00:00:00Z")
	w.must(t, 201, request{method: "PUT", path: "/v1/customers/acme", body: `{"name":"Acme"}`, header: map[string]string{"If-None-Match": "*"}})
	w.delete(t, 204, "/v1/customers/acme", "*")
}

// Who never could owe anything can go as soon as the subscription has ended,
// whether billing runs or not, and the id is free again. Where one of the plans
// that were held costs, that is for billing to say.
func TestACustomerOfAFreePlanCanGo(t *testing.T) {
	t.Parallel()
	w, now := shop(t)
	free := strings.Replace(goodPlan[:strings.Index(goodPlan, `,
	"prices"`)]+"}", `"pro","name":"Pro","currency":"EUR","timezone":"UTC","proration":"days","baseFee":"49.00"`, `"free","name":"Free","currency":"EUR","baseFee":"0.00"`, 1)
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: free})
	const toFree = `{"customer":"acme","plan":"free"}`
	for range 2 {
		_, at := w.subscribe(t, toFree)
		w.must(t, 409, request{method: "DELETE", path: "/v1/customers/acme", header: anyVersion}) // still subscribed
		now.set(t, now.time().Add(time.Hour).Format(time.RFC3339))
		w.delete(t, 204, at, "*")
		w.delete(t, 204, "/v1/customers/acme", "*")
		w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"acme","name":"Acme"}`})
	}
	s, at := w.subscribe(t, toPro)
	now.set(t, "2026-07-20T06:00:00Z")
	w.put(t, 200, at, "*", toFree)
	now.set(t, "2026-07-21T06:00:00Z")
	w.delete(t, 204, at, "*")
	p := w.must(t, 409, request{method: "DELETE", path: "/v1/customers/acme", header: anyVersion}).problem(t)
	if !strings.HasSuffix(p.Type, ":unbilled") || !strings.Contains(p.Detail, s.ID+" to plan pro") || !strings.Contains(p.Detail, "days of grace") {
		t.Errorf("%+v", p)
	}
}
