package gateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// openPattern is served below /debug/<module>/ and at the admin port's root.
const openPattern = "GET /v1/reservations"

// Bounds of a page, in reservations.
const (
	defaultOpen = 100
	mostListed  = 500
)

// lister lists open reservations for operators: whose they are, and what they hold.
type lister struct {
	gate      *gate
	operators identify.Operators
}

// openWish is which page of open reservations is asked for.
type openWish struct {
	tenant string // empty: everybody's
	limit  int
	after  reserve.Spot
}

// openCursor is where a page ended, and of which list.
type openCursor struct {
	Tenant string `json:"t"`
	At     int64  `json:"a"`
	Member string `json:"m"`
}

func (c openCursor) encode() string {
	b, _ := json.Marshal(c) // strings and a number
	return base64.RawURLEncoding.EncodeToString(b)
}

// ServeHTTP implements http.Handler.
func (x *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := x.operators.Admit(r); !ok {
		identify.RefuseOperator(w, "gateway.reservations.tokens")
		return
	}
	wish, mistakes := readOpenWish(r.URL.RawQuery)
	if len(mistakes) > 0 {
		reject.BadQuestion(w, strings.Join(mistakes, "; "))
		return
	}
	open, next, err := x.gate.book.Open(r.Context(), wish.tenant, wish.after, wish.limit)
	if err != nil {
		if !errors.Is(err, limit.ErrUnavailable) && r.Context().Err() == nil {
			x.gate.complain.Say(slog.LevelError, "reservations cannot be listed", "error", err)
		}
		reject.Busy(reject.Reservation, "The counters cannot be reached, or are being restored; ask again.").Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(appendOpen(nil, open, wish.tenant, next)) // a client that went away is not an error
}

// appendOpen writes a page, with the cursor of the next where there is one.
func appendOpen(b []byte, open []reserve.Reservation, tenant string, next reserve.Spot) []byte {
	b = append(b, `{"items":[`...)
	for i := range open {
		if i > 0 {
			b = append(b, ',')
		}
		r := &open[i]
		b = event.AppendString(append(b, `{"tenantId":`...), r.Tenant)
		b = event.AppendOptional(b, `,"userId":`, r.User)
		b = event.AppendOptional(b, `,"applicationId":`, r.Application)
		b = append(appendStanding(append(b, ','), r), '}')
	}
	b = append(b, ']')
	if next != (reserve.Spot{}) {
		b = event.AppendString(append(b, `,"next":`...), openCursor{tenant, next.At, next.Member}.encode())
	}
	return append(b, '}', '\n')
}

// readOpenWish reads a query, and says by name what of it cannot be.
func readOpenWish(raw string) (w openWish, mistakes []string) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return w, []string{"the query has bad percent escapes"}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case name != "tenant" && name != "limit" && name != "cursor":
			mistakes = append(mistakes, name+": is unknown; there are tenant, limit and cursor")
		case len(query[name]) > 1:
			mistakes = append(mistakes, name+": must be given once")
		}
	}
	w.tenant, w.limit = query.Get("tenant"), defaultOpen
	if len(w.tenant) > identify.MaxIdentityBytes || !identify.PlainText(w.tenant) {
		mistakes = append(mistakes, fmt.Sprintf("tenant: must be plain UTF-8 text of at most %d bytes", identify.MaxIdentityBytes))
	}
	if text := query.Get("limit"); text != "" {
		if w.limit, err = strconv.Atoi(text); err != nil || w.limit < 1 || w.limit > mostListed {
			mistakes = append(mistakes, fmt.Sprintf("limit: must be a whole number from 1 to %d", mostListed))
		}
	}
	if text := query.Get("cursor"); text != "" {
		c, ok := decodeOpenCursor(text)
		if !ok || c.Tenant != w.tenant {
			mistakes = append(mistakes, "cursor: must be the next of an earlier page of this list")
		}
		w.after = reserve.Spot{At: c.At, Member: c.Member}
	}
	return w, mistakes
}

func decodeOpenCursor(text string) (c openCursor, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	ok = err == nil && json.Unmarshal(b, &c) == nil && c.At > 0 && c.Member != ""
	return c, ok
}
