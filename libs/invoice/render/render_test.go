package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/sales"
)

func sample() sales.Invoice {
	final := time.Date(2026, 8, 4, 0, 0, 0, 0, time.UTC)
	return sales.Invoice{
		ID: "i1", Number: "INV-2026-000017", Customer: "acme", Currency: "EUR", Timezone: "Europe/Istanbul", Status: sales.InvoiceFinal,
		Payer: sales.Customer{Name: "Ağaoğlu & <b>Söhne</b>", Contact: &sales.Contact{Address: "1 High Street\nIzmir", TaxID: "TR 12"}},
		Start: time.Date(2026, 6, 30, 21, 0, 0, 0, time.UTC), End: time.Date(2026, 7, 31, 21, 0, 0, 0, time.UTC),
		Lines: []sales.InvoiceLine{
			{Text: "calls: used", Quantity: 1500, UnitPrice: "0.01", Amount: "15.00", Consumed: 1530, Refunded: 30},
			{Kind: sales.LineFee, Text: "Pro: fee, 10 of 31 days", Quantity: 10, PeriodFee: "49.00", Amount: "15.81"},
			{Kind: sales.LineFee, Text: "Max: fee, 1 of 31 days", Quantity: 1, Amount: "2.00"},
			{Text: strings.Repeat("a long name ", 30), Quantity: 1, UnitPrice: "1", Amount: "1.00"},
		},
		Total: "33.81", FinalFrom: final, FinalizedAt: &final,
	}
}

func TestHTMLTellsAllAndRunsNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Invoice INV-2026-000017", "Ağaoğlu &amp; &lt;b&gt;Söhne&lt;/b&gt;", "1 High Street<br>Izmir", "2026-07-01 to 2026-07-31 (Europe/Istanbul)",
		"1530 used, 30 refunded", ">1500<", ">0.01<", ">10 days<", ">49.00 a period<", ">1 day<", ">33.81<", "2026-08-04",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	draft := sample()
	draft.Number, draft.FinalizedAt, draft.Lines = "", nil, nil
	b.Reset()
	if err := HTML(&b, draft); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Draft invoice", "becomes final on 2026-08-04", "Nothing yet."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the draft", want)
		}
	}
}

func TestPDF(t *testing.T) {
	t.Parallel()
	many := sample()
	for range 100 {
		many.Lines = append(many.Lines, many.Lines[0])
	}
	draft := sample()
	draft.Number, draft.FinalizedAt = "", nil
	for name, c := range map[string]struct {
		invoice sales.Invoice
		pages   int
	}{"one page": {sample(), 1}, "many": {many, 3}, "draft": {draft, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first, second bytes.Buffer
			for _, b := range []*bytes.Buffer{&first, &second} {
				if err := PDF(b, c.invoice); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.HasPrefix(first.Bytes(), []byte("%PDF-")) || !bytes.Contains(first.Bytes()[first.Len()-10:], []byte("%%EOF")) {
				t.Fatal("no PDF")
			}
			if n := bytes.Count(first.Bytes(), []byte("/Type /Page\n")); n != c.pages {
				t.Errorf("%d pages, not %d", n, c.pages)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("the same invoice gave other bytes")
			}
			if first.Len() > 200_000 {
				t.Errorf("%d bytes", first.Len())
			}
		})
	}
}
