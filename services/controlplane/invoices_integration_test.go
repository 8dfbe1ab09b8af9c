//go:build integration

package controlplane_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	ctlsales "github.com/sluice-platform/sluice/services/controlplane/internal/sales"

	"github.com/sluice-platform/sluice/libs/ticket"
	"github.com/sluice-platform/sluice/schemas/sales"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// invoiced is a world with three months' invoices of acme and one of globex, as
// billing writes them.
func invoiced(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	for _, sql := range []string{
		invoiceSQL("i1", "acme", "2026-05", "2026-06", "final", "INV-2026-000001"),
		invoiceSQL("i2", "acme", "2026-06", "2026-07", "final", "INV-2026-000002"),
		invoiceSQL("i3", "acme", "2026-07", "2026-08", "draft", ""),
		invoiceSQL("i4", "globex", "2026-07", "2026-08", "draft", ""),
	} {
		if _, err := w.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func invoiceSQL(id, customer, from, to, status, number string) string {
	document := `{"id":"` + id + `","number":"` + number + `","customer":"` + customer + `","currency":"EUR","start":"` + from +
		`-01T00:00:00Z","end":"` + to + `-01T00:00:00Z","timezone":"UTC","status":"` + status + `","lines":[],"total":"1.00","finalFrom":"` + to + `-04T00:00:00Z"}`
	return `INSERT INTO invoices (id, customer, currency, starts_at, ends_at, status, number, total, document, updated_at)
VALUES ('` + id + `', '` + customer + `', 'EUR', '` + from + `-01', '` + to + `-01', '` + status + `', nullif('` + number + `', ''), 100, '` + document + `', now())`
}

func TestInvoicesAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w := invoiced(t)
	for query, want := range map[string]string{
		"": "i4 i3 i2 i1", "?customer=acme": "i3 i2 i1", "?status=final": "i2 i1", "?customer=globex&status=final": "", "?customer=nobody": "",
	} {
		for _, limit := range []string{"", "1", "2"} {
			var ids []string
			values, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
			if err != nil {
				t.Fatal(err)
			}
			if limit != "" {
				values.Set("limit", limit)
			}
			for {
				page := decoded[api.Page[sales.Invoice]](t, w.must(t, 200, request{method: "GET", path: "/v1/invoices?" + values.Encode()}))
				for _, i := range page.Items {
					ids = append(ids, i.ID)
				}
				if page.Next == "" {
					break
				}
				values.Set("cursor", page.Next)
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("%s, limit %s: %s, want %s", query, limit, got, want)
			}
		}
	}
}

func TestAnInvoiceAsJSONAndAsFiles(t *testing.T) {
	t.Parallel()
	w := invoiced(t)
	if got := decoded[sales.Invoice](t, w.must(t, 200, request{method: "GET", path: "/v1/invoices/i2"})); got.Number != "INV-2026-000002" || got.Total != "1.00" {
		t.Fatalf("%+v", got)
	}
	page := w.must(t, 200, request{method: "GET", path: "/v1/invoices/i2/html"})
	if !strings.Contains(page.Body.String(), "Invoice INV-2026-000002") || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%v %s", page.Header(), page.Body)
	}
	pdf := w.must(t, 200, request{method: "GET", path: "/v1/invoices/i2/pdf"})
	if !bytes.HasPrefix(pdf.Body.Bytes(), []byte("%PDF-")) || pdf.Header().Get("Content-Disposition") != `inline; filename="INV-2026-000002.pdf"` {
		t.Fatalf("%v", pdf.Header())
	}
	for path, status := range map[string]int{
		"/v1/invoices/none": 404, "/v1/invoices/none/html": 404, "/v1/invoices/none/pdf": 404, "/v1/invoices?status=sent": 400,
		"/v1/invoices?cursor=x": 400, "/v1/invoices?limit=0": 400, "/v1/invoices?tenant=acme": 400,
	} {
		w.must(t, status, request{method: "GET", path: path})
	}
}

func TestPortalLinks(t *testing.T) {
	t.Parallel()
	keys, err := ticket.NewKeys(ticket.Key{ID: "k", Secret: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	c := clockAt(t, "2026-07-16T12:00:00Z")
	w := newWorldWith(t, controlplane.Deps{Now: c.time, Portal: controlplane.Portal{URL: "https://usage.example.com/", Keys: keys}})
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"acme","name":"Acme"}`})
	links := "/v1/customers/acme/portal-links"
	made := decoded[ctlsales.PortalLinkMade](t, w.must(t, 201, request{method: "POST", path: links, body: `{"expiresIn":"72h"}`}))
	u, err := url.Parse(made.URL)
	if err != nil || u.Host != "usage.example.com" || u.Path != "/open" || !made.ExpiresAt.Equal(c.time().Add(72*time.Hour)) {
		t.Fatalf("%+v, %v", made, err)
	}
	got, err := keys.Verify(u.Query().Get("ticket"), ticket.Check{Purpose: ticket.Portal, Now: c.time()})
	if err != nil || got.Subject != "acme" || !got.Expiry.Equal(made.ExpiresAt) {
		t.Fatalf("%+v, %v", got, err)
	}
	if day := decoded[ctlsales.PortalLinkMade](t, w.must(t, 201, request{method: "POST", path: links, body: `{}`})); !day.ExpiresAt.Equal(c.time().Add(24 * time.Hour)) {
		t.Fatalf("%+v", day)
	}
	for _, body := range []string{`{"expiresIn":"1s"}`, `{"expiresIn":"2161h"}`, `{"expiresIn":"soon"}`, `{"expiresIn":72}`, `{"customer":"globex"}`, `[]`, ``} {
		w.must(t, 400, request{method: "POST", path: links, body: body})
	}
	w.must(t, 404, request{method: "POST", path: "/v1/customers/nobody/portal-links", body: `{}`})
	w.must(t, 403, request{method: "POST", path: links, body: `{}`, token: "Bearer " + readOnlyToken})
	none := newWorld(t)
	none.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"acme","name":"Acme"}`})
	none.must(t, 409, request{method: "POST", path: links, body: `{}`})
}

func TestOneCustomersUseAndDays(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.subscribe(t, toPro)
	got := decoded[ctlsales.CustomerUse](t, w.must(t, 200, request{method: "GET", path: "/v1/customers/acme/use"}))
	if got.ID != "acme" || len(got.Usage) == 0 || !strings.HasPrefix(got.Usage[0].Counter, "{t:acme}:t::") {
		t.Fatalf("%+v", got)
	}
	w.must(t, 404, request{method: "GET", path: "/v1/customers/acm/use"})
	days := "/v1/customers/acme/days?metric=calls&from=2026-07-01T00:00:00Z&to="
	if got := decoded[api.Page[ctlsales.DayUse]](t, w.must(t, 200, request{method: "GET", path: days + "2026-08-01T00:00:00Z&timezone=Europe/Istanbul"})); got.Items == nil {
		t.Fatal("no days are null, not []")
	}
	for path, status := range map[string]int{
		days + "2026-06-01T00:00:00Z": 400, days + "2027-08-01T00:00:00Z": 400, days + "soon": 400, days + "2026-08-01T00:00:00Z&timezone=Mars/Base": 400,
		days + "2026-08-01T00:00:00Z&timezone=Local": 400, "/v1/customers/acme/days?metric=calls": 400,
		strings.Replace(days, "acme", "nobody", 1) + "2026-08-01T00:00:00Z": 404,
	} {
		w.must(t, status, request{method: "GET", path: path})
	}
}
