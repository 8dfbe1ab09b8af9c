package render

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/schemas/sales"
)

//go:embed invoice.html
var page string

var pageTemplate = template.Must(template.New("invoice").Funcs(template.FuncMap{
	"period": Period,
	"date":   date,
	"lines":  func(text string) []string { return strings.Split(text, "\n") },
	"title":  Title,

	"quantity": quantity,
	"price":    price,
}).Parse(page))

// HTML writes a whole page, styled by itself. Errors are w's.
func HTML(w io.Writer, i sales.Invoice) error {
	if err := pageTemplate.Execute(w, i); err != nil {
		return fmt.Errorf("write invoice as HTML: %w", err)
	}
	return nil
}

// Title is what the invoice is called: by its number, and before it has one as
// what it is.
func Title(i sales.Invoice) string {
	if i.Number == "" {
		return "Draft invoice"
	}
	return "Invoice " + i.Number
}

// Filename is the name of its file, without an ending.
func Filename(i sales.Invoice) string {
	if i.Number == "" {
		return "draft-" + i.ID
	}
	return i.Number
}

// Period is the invoice's as people write it: its first day and its last one,
// by the clock of its zone.
func Period(i sales.Invoice) string { return first(i) + " to " + last(i) }

func first(i sales.Invoice) string { return local(i, i.Start) }

func last(i sales.Invoice) string { return local(i, i.End.Add(-time.Nanosecond)) }

func local(i sales.Invoice, t time.Time) string {
	zone, err := time.LoadLocation(i.Timezone)
	if err != nil {
		zone = time.UTC
	}
	return t.In(zone).Format(time.DateOnly)
}

// quantity is units, or of a fee the days it is for, and says so.
func quantity(l sales.InvoiceLine) string {
	switch {
	case l.Kind != sales.LineFee:
		return strconv.FormatInt(l.Quantity, 10)
	case l.Quantity == 1:
		return "1 day"
	}
	return fmt.Sprintf("%d days", l.Quantity)
}

// price is of one unit, or of a fee what the whole period costs.
func price(l sales.InvoiceLine) string {
	if l.PeriodFee != "" {
		return l.PeriodFee + " a period"
	}
	return l.UnitPrice
}

func date(t *time.Time) string { return t.UTC().Format(time.DateOnly) }
