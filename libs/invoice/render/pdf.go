package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/sluice-platform/sluice/schemas/sales"
)

// Lengths in mm, on A4.
const (
	margin    = 20.0
	textWidth = 210 - 2*margin
	lineStep  = 6.0
	font      = "go"
)

// columns are the widths of what, quantity, price and amount.
var columns = [...]float64{textWidth - 34 - 34 - 30, 34, 34, 30}

// PDF writes the invoice as one. Errors are w's, or of texts that no PDF can
// hold.
func PDF(w io.Writer, i sales.Invoice) error {
	d := document{fpdf.New("P", "mm", "A4", "")}
	d.SetMargins(margin, margin, margin)
	d.SetAutoPageBreak(true, margin)
	d.AddUTF8FontFromBytes(font, "", goregular.TTF)
	d.AddUTF8FontFromBytes(font, "B", gobold.TTF)
	d.SetTitle(Title(i), true)
	d.SetProducer("Sluice", true)
	// Not when it was made: the same invoice is to give the same bytes.
	stamp := i.FinalFrom
	if i.FinalizedAt != nil {
		stamp = *i.FinalizedAt
	}
	d.SetCreationDate(stamp.UTC().Truncate(time.Second))
	d.SetModificationDate(stamp.UTC().Truncate(time.Second))
	d.SetCatalogSort(true)
	d.SetFooterFunc(func() {
		d.SetY(-margin + 5)
		d.SetFont(font, "", 8)
		d.CellFormat(textWidth, lineStep, Title(i)+", page "+strconv.Itoa(d.PageNo()), "", 0, "R", false, 0, "")
	})
	d.AddPage()
	d.head(i)
	d.table(i)
	if err := d.Output(w); err != nil {
		return fmt.Errorf("write invoice as PDF: %w", err)
	}
	return nil
}

type document struct{ *fpdf.Fpdf }

func (d document) head(i sales.Invoice) {
	d.SetFont(font, "B", 18)
	d.MultiCell(textWidth, 10, Title(i), "", "L", false)
	d.SetFont(font, "", 10)
	if i.Number == "" {
		d.MultiCell(textWidth, lineStep, "A draft: it follows what is used, and becomes final on "+i.FinalFrom.UTC().Format(time.DateOnly)+".", "", "L", false)
	}
	d.Ln(lineStep)
	who := []string{i.Payer.Name}
	if c := i.Payer.Contact; c != nil {
		who = append(who, c.Name)
		who = append(who, strings.Split(c.Address, "\n")...)
		if c.TaxID != "" {
			who = append(who, "Tax id "+c.TaxID)
		}
	}
	for _, line := range who {
		if line != "" {
			d.MultiCell(textWidth, lineStep, line, "", "L", false)
		}
	}
	d.Ln(lineStep)
	d.field("Customer", i.Customer)
	d.field("Period", Period(i)+" ("+i.Timezone+")")
	if i.FinalizedAt != nil {
		d.field("Date", date(i.FinalizedAt))
	}
	d.Ln(lineStep)
}

func (d document) field(name, value string) {
	const wide = 30
	d.CellFormat(wide, lineStep, name, "", 0, "L", false, 0, "")
	d.MultiCell(textWidth-wide, lineStep, value, "", "L", false)
}

func (d document) table(i sales.Invoice) {
	d.SetFont(font, "B", 10)
	d.row("B", "What", "Quantity", "Price", i.Currency)
	d.SetFont(font, "", 10)
	for _, l := range i.Lines {
		text := l.Text
		if l.Refunded > 0 {
			text += fmt.Sprintf(" (%d used, %d refunded)", l.Consumed, l.Refunded)
		}
		d.row("", text, quantity(l), price(l), l.Amount)
	}
	if len(i.Lines) == 0 {
		d.row("", "Nothing yet.", "", "", "")
	}
	d.SetFont(font, "B", 10)
	d.row("T", "Total", "", "", i.Total)
}

// row writes a line of the table, as high as its text needs.
func (d document) row(border string, cells ...string) {
	text := d.SplitText(cells[0], columns[0]-2)
	height := lineStep * float64(max(1, len(text)))
	if _, page := d.GetPageSize(); d.GetY()+height > page-margin {
		d.AddPage()
	}
	x, y := d.GetXY()
	d.CellFormat(columns[0], height, "", border, 0, "L", false, 0, "")
	for n, part := range text {
		d.SetXY(x, y+float64(n)*lineStep)
		d.CellFormat(columns[0], lineStep, part, "", 0, "L", false, 0, "")
	}
	d.SetXY(x+columns[0], y)
	for n, cell := range cells[1:] {
		d.CellFormat(columns[n+1], height, cell, border, 0, "RT", false, 0, "")
	}
	d.SetXY(x, y+height)
}
