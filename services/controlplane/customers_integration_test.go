//go:build integration

package controlplane_test

import (
	"encoding/json"
	"testing"

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
