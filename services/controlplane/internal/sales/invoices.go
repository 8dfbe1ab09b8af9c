package sales

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/invoice/render"
	"github.com/sluice-platform/sluice/schemas/sales"
)

type invoicesInput struct {
	api.PageInput
	Customer string `query:"customer" doc:"Only this customer's."`
	Status   string `query:"status" enum:"draft,final" doc:"Only those in this state."`
}

// rendered is an invoice as a file to look at.
type rendered struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	Body               []byte
}

func (s *Handlers) registerInvoices(a *api.API) {
	tags := []string{"invoices"}
	api.Register(a, huma.Operation{OperationID: "list-invoices", Method: http.MethodGet, Path: "/v1/invoices", Tags: tags,
		Summary:     "Invoices, those of the latest periods first",
		Description: "A draft follows what is used until some days after its period; a final one has a number and never changes."}, nil, s.listInvoices)
	api.Register(a, huma.Operation{OperationID: "get-invoice", Method: http.MethodGet, Path: "/v1/invoices/{id}", Tags: tags,
		Summary: "One invoice"}, nil, s.getInvoice)
	api.Register(a, renderedAs(huma.Operation{OperationID: "get-invoice-html", Path: "/v1/invoices/{id}/html",
		Summary: "One invoice, as a page of HTML"}, "text/html"), nil, s.renderer("text/html; charset=utf-8", "html", render.HTML))
	api.Register(a, renderedAs(huma.Operation{OperationID: "get-invoice-pdf", Path: "/v1/invoices/{id}/pdf",
		Summary: "One invoice, as a PDF"}, "application/pdf"), nil, s.renderer("application/pdf", "pdf", render.PDF))
}

// renderedAs describes an operation whose answer is a file.
func renderedAs(op huma.Operation, mediaType string) huma.Operation {
	op.Method, op.Tags = http.MethodGet, []string{"invoices"}
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The invoice.", Content: map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: "string", Format: "binary"}}},
	}}
	return op
}

func (s *Handlers) listInvoices(ctx context.Context, in *invoicesInput) (*struct{ Body api.Page[sales.Invoice] }, error) {
	last, p := api.DecodeCursor("invoice", in.Cursor)
	if p != nil {
		return nil, p
	}
	before, id, p := afterInvoice(last)
	if p != nil {
		return nil, p
	}
	rows, err := s.Store.Pool.Query(ctx, `SELECT document FROM invoices
WHERE ($1 = '' OR customer = $1) AND ($2 = '' OR status = $2) AND ($3::timestamptz IS NULL OR (ends_at, id) < ($3, $4))
ORDER BY ends_at DESC, id DESC LIMIT $5`, in.Customer, in.Status, before, id, in.Limit+1)
	if err != nil {
		return nil, fmt.Errorf("list invoices: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowTo[sales.Invoice])
	if err != nil {
		return nil, fmt.Errorf("list invoices: %w", err)
	}
	page := api.Page[sales.Invoice]{Items: append([]sales.Invoice{}, items...)} // an empty page is [], not null
	if len(items) > in.Limit {
		page.Items = page.Items[:in.Limit]
		end := page.Items[in.Limit-1]
		page.Next = api.EncodeCursor("invoice", end.End.Format(time.RFC3339)+" "+end.ID)
	}
	return &struct{ Body api.Page[sales.Invoice] }{page}, nil
}

// afterInvoice reads where the page before ended; nil is the start.
func afterInvoice(last string) (end *time.Time, id string, p *api.Problem) {
	if last == "" {
		return nil, "", nil
	}
	text, id, found := strings.Cut(last, " ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !found {
		return nil, "", api.Invalid(api.InQuery("cursor", "must be the next of an earlier page of this list"))
	}
	return &at, id, nil
}

func (s *Handlers) getInvoice(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body sales.Invoice }, error) {
	i, err := s.invoice(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &struct{ Body sales.Invoice }{i}, nil
}

func (s *Handlers) invoice(ctx context.Context, id string) (sales.Invoice, error) {
	var (
		i    sales.Invoice
		text []byte
	)
	err := s.Store.Pool.QueryRow(ctx, `SELECT document FROM invoices WHERE id = $1`, id).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return i, api.NotFound()
	}
	if err != nil {
		return i, fmt.Errorf("read invoice: %w", err)
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return i, fmt.Errorf("decode invoice: %w", err)
	}
	return i, nil
}

// renderer answers with what write makes of an invoice.
func (s *Handlers) renderer(mediaType, ending string, write func(io.Writer, sales.Invoice) error) func(context.Context, *struct{ api.KeyInput }) (*rendered, error) {
	return func(ctx context.Context, in *struct{ api.KeyInput }) (*rendered, error) {
		i, err := s.invoice(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := write(&b, i); err != nil {
			return nil, err
		}
		return &rendered{
			ContentType: mediaType, Body: b.Bytes(),
			ContentDisposition: `inline; filename="` + render.Filename(i) + "." + ending + `"`,
		}, nil
	}
}
