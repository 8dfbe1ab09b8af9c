package portal

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/sluice-platform/sluice/libs/invoice/render"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// entry is a change of a wallet, as GET …/ledger answers.
type entry struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Amount  int64     `json:"amount"`
	Balance int64     `json:"balance"`
	Note    string    `json:"note"`
}

// Change is the amount as the balance saw it.
func (e entry) Change() int64 {
	if e.Kind == "forfeit" {
		return -e.Amount
	}
	return e.Amount
}

// What says the kind to people.
func (e entry) What() string {
	if e.Kind == "forfeit" {
		return "expired"
	}
	return "top-up"
}

// walletHistory is one wallet's newest entries.
type walletHistory struct {
	Metric  string
	Balance int64
	Entries []entry
	// Next is the address of the entries before.
	Next string
}

func (s *Service) topups(v *visit) {
	ctx := v.r.Context()
	var wallets items[wallet]
	if err := s.api.get(ctx, &wallets, nil, "customers", v.customer, "wallets"); s.failed(v, err) {
		return
	}
	metric, cursor := v.r.URL.Query().Get("metric"), v.r.URL.Query().Get("cursor")
	var all []walletHistory
	for _, w := range wallets.Items {
		if metric != "" && w.Metric != metric {
			continue
		}
		query := url.Values{"limit": {"50"}}
		if metric != "" && cursor != "" {
			query.Set("cursor", cursor)
		}
		var ledger items[entry]
		if err := s.api.get(ctx, &ledger, query, "customers", v.customer, "wallets", w.Metric, "ledger"); s.failed(v, err) {
			return
		}
		h := walletHistory{Metric: w.Metric, Balance: w.Balance, Entries: ledger.Items}
		if ledger.Next != "" {
			h.Next = "/topups?" + url.Values{"metric": {w.Metric}, "cursor": {ledger.Next}}.Encode()
		}
		all = append(all, h)
	}
	s.show(v, "topups.html", page{Title: "Top-ups", Content: all})
}

// invoiceList is a page of invoices.
type invoiceList struct {
	Items []sales.Invoice
	Next  string
}

func (s *Service) invoices(v *visit) {
	query := url.Values{"customer": {v.customer}, "limit": {"50"}}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	var found items[sales.Invoice]
	if err := s.api.get(v.r.Context(), &found, query, "invoices"); s.failed(v, err) {
		return
	}
	list := invoiceList{Items: found.Items}
	if found.Next != "" {
		list.Next = "/invoices?" + url.Values{"cursor": {found.Next}}.Encode()
	}
	s.show(v, "invoices.html", page{Title: "Invoices", Content: list})
}

func (s *Service) invoice(v *visit) {
	i, err := s.api.invoice(v.r.Context(), v.customer, v.r.PathValue("id"))
	if s.failed(v, err) {
		return
	}
	var b bytes.Buffer
	if err := render.HTML(&b, i); s.failed(v, err) {
		return
	}
	s.deliver(v, "text/html; charset=utf-8", b.Bytes())
}

func (s *Service) invoicePDF(v *visit) {
	i, err := s.api.invoice(v.r.Context(), v.customer, v.r.PathValue("id"))
	if s.failed(v, err) {
		return
	}
	var b bytes.Buffer
	if err := render.PDF(&b, i); s.failed(v, err) {
		return
	}
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+render.Filename(i)+`.pdf"`)
	s.deliver(v, "application/pdf", b.Bytes())
}

func (s *Service) deliver(v *visit, mediaType string, body []byte) {
	s.metrics.pages.WithLabelValues(resultShown).Inc()
	v.w.Header().Set("Content-Type", mediaType)
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(body) // the browser is gone, and nobody else to tell
}

// failed answers an error, if there is one.
func (s *Service) failed(v *visit, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, errNotFound):
		s.notFound(v)
	default:
		s.away(v, err)
	}
	return true
}
