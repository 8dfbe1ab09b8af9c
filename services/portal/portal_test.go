package portal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/ticket"
	"github.com/sluice-platform/sluice/schemas/sales"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// control is a control plane that answers from a table and notes what it was
// asked. The portal against the real one is in services/e2e.
type control struct {
	mu      sync.Mutex
	asked   []string
	answers map[string]any // by path; absent is 404
	broken  bool
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.RequestURI())
	answer, found := c.answers[r.URL.EscapedPath()]
	switch {
	case r.Header.Get("Authorization") != "Bearer reader":
		w.WriteHeader(http.StatusUnauthorized)
	case c.broken:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !found:
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(answer) // the test sees what is missing
	}
}

func (c *control) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.asked...)
}

func (c *control) breakDown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
}

type stand struct {
	*Service
	control *control
	keys    *ticket.Keys
}

func newStand(t *testing.T) *stand {
	t.Helper()
	keys, err := ticket.NewKeys(ticket.Key{ID: "new", Secret: bytes.Repeat([]byte{2}, 32)}, ticket.Key{ID: "old", Secret: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	start, end := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	c := &control{answers: map[string]any{
		"/v1/customers/acme/use": map[string]any{"id": "acme", "name": "Acme <&> Co", "usage": []any{map[string]any{
			"metric": "calls", "counter": "c1", "consumed": 8500, "refunded": 500, "limit": 10000, "remaining": 2000,
			"period": map[string]any{"start": start, "end": end},
		}}},
		"/v1/customers/acme/days": map[string]any{"items": []any{
			map[string]any{"day": "2026-07-02", "counter": "c1", "amount": 3000}, map[string]any{"day": "2026-07-20", "counter": "c1", "amount": 5000},
			map[string]any{"day": "2026-07-20", "counter": "another", "amount": 77},
		}},
		"/v1/customers/acme/wallets":            map[string]any{"items": []any{map[string]any{"metric": "sms", "balance": -1234567, "grants": []any{}}}},
		"/v1/customers/acme/wallets/sms/ledger": map[string]any{"items": []any{map[string]any{"at": noon, "kind": "topup", "amount": 50, "balance": 80, "note": "order 7"}, map[string]any{"at": noon, "kind": "forfeit", "amount": 9, "balance": 71}}, "next": "n1"},
		"/v1/invoices":                          map[string]any{"items": []any{invoiceOf("acme")}},
		"/v1/invoices/i1":                       invoiceOf("acme"),
		"/v1/invoices/i2":                       invoiceOf("globex"),
	}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.API.URL, cfg.API.Token, cfg.URL = server.URL, "reader", "https://usage.example.com"
	s, err := New(cfg, Deps{Keys: keys, Now: func() time.Time { return noon }, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return &stand{s, c, keys}
}

func invoiceOf(customer string) sales.Invoice {
	return sales.Invoice{ID: "i1", Number: "INV-2026-000001", Customer: customer, Currency: "EUR", Total: "12.00", Timezone: "UTC", Start: noon, End: noon.Add(time.Hour)}
}

func (s *stand) ticket(t *testing.T, keys *ticket.Keys, purpose, customer string, life time.Duration) string {
	t.Helper()
	text, err := keys.Sign(ticket.Ticket{Purpose: purpose, Subject: customer, Expiry: noon.Add(life)})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask sends a request with a ticket in the cookie.
func (s *stand) ask(method, path, cookie, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: cookieName, Value: cookie})
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestALinkOpensAnAccount(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	text := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	opened := s.ask("GET", "/open?ticket="+url.QueryEscape(text), "", "")
	cookies := opened.Result().Cookies()
	if opened.Code != http.StatusSeeOther || opened.Header().Get("Location") != "/" || len(cookies) != 1 {
		t.Fatalf("%d to %q, %d cookies", opened.Code, opened.Header().Get("Location"), len(cookies))
	}
	if c := cookies[0]; !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Value != text || !c.Expires.Equal(noon.Add(time.Hour)) {
		t.Fatalf("cookie %+v", c)
	}
	got := s.ask("GET", "/", text, "")
	for _, want := range []string{"Acme &lt;&amp;&gt; Co", "8\u202f000 of 10\u202f000", "2\u202f000 left", "2026-07-01 to 2026-07-31", "<svg", "−1\u202f234\u202f567 left", "<td>2026-07-20</td><td class=\"n\">5\u202f000</td><td class=\"n\">8\u202f000</td>"} {
		if !strings.Contains(got.Body.String(), want) {
			t.Errorf("no %q in\n%s", want, got.Body)
		}
	}
	if strings.Contains(got.Body.String(), "<script") || strings.Contains(got.Body.String(), text) || strings.Contains(got.Body.String(), "2026-07-24") {
		t.Error("the page holds a script, the ticket or the future")
	}
	for header, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"} {
		if got.Header().Get(header) != want {
			t.Errorf("%s is %q", header, got.Header().Get(header))
		}
	}
}

// A quota's month is that of its own zone, whatever the customer's is: by the
// customer's clock it would begin on the day before.
func TestAQuotasMonthIsItsOwnZones(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	month := map[string]any{"start": time.Date(2026, 7, 1, 0, 0, 0, 0, zone), "end": time.Date(2026, 8, 1, 0, 0, 0, 0, zone), "timezone": "Asia/Tokyo"}
	account := map[string]any{"id": "acme", "name": "Acme", "timezone": "America/Lima", "usage": []any{map[string]any{
		"metric": "calls", "counter": "c1", "consumed": 8000, "limit": 10000, "remaining": 2000, "period": month,
	}}}
	s.control.answers["/v1/customers/acme/use"] = account
	text := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	if got := s.ask("GET", "/", text, "").Body.String(); !strings.Contains(got, "2026-07-01 to 2026-07-31 (Asia/Tokyo)") {
		t.Errorf("the month is shown as in\n%s", got)
	}
	if asked := strings.Join(s.control.calls(), " "); !strings.Contains(asked, "timezone=Asia%2FTokyo") {
		t.Errorf("the chart's days are asked for by %s", asked)
	}
	account["timezone"] = "Asia/Tokyo"
	if got := s.ask("GET", "/", text, "").Body.String(); !strings.Contains(got, "2026-07-01 to 2026-07-31</p>") {
		t.Errorf("the customer's own zone is named in\n%s", got)
	}
}

// Forged, expired, for something else or another's: 403, and nothing is asked.
func TestBadTicketsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	others, err := ticket.NewKeys(ticket.Key{ID: "new", Secret: bytes.Repeat([]byte{9}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	good := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	for name, text := range map[string]string{
		"none": "", "nonsense": "nonsense", "cut short": good[:len(good)-2],
		"forged":            s.ticket(t, others, ticket.Portal, "acme", time.Hour),
		"expired":           s.ticket(t, s.keys, ticket.Portal, "acme", -time.Hour),
		"for another thing": s.ticket(t, s.keys, "waitingroom", "acme", time.Hour),
		"two in one":        good + good,
		"for a year":        s.ticket(t, s.keys, ticket.Portal, "acme", 365*24*time.Hour),
		"for ever":          s.ticket(t, s.keys, ticket.Portal, "acme", 100*365*24*time.Hour),
	} {
		for _, path := range []string{"/", "/topups", "/invoices", "/invoices/i1", "/invoices/i1/pdf", "/anything", "/open?ticket=" + url.QueryEscape(text)} {
			if got := s.ask("GET", path, text, ""); got.Code != http.StatusForbidden || len(got.Result().Cookies()) != 0 {
				t.Errorf("%s: %s answers %d", name, path, got.Code)
			}
		}
	}
	if asked := s.control.calls(); len(asked) != 0 {
		t.Fatalf("asked %q", asked)
	}
}

func TestTwoKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	old, err := ticket.NewKeys(ticket.Key{ID: "old", Secret: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	text := s.ticket(t, old, ticket.Portal, "acme", time.Hour)
	if got := s.ask("GET", "/", text, ""); got.Code != http.StatusOK {
		t.Fatalf("the older key's link answers %d", got.Code)
	}
	if err := s.keys.Replace(ticket.Key{ID: "new", Secret: bytes.Repeat([]byte{2}, 32)}); err != nil {
		t.Fatal(err)
	}
	if got := s.ask("GET", "/", text, ""); got.Code != http.StatusForbidden {
		t.Fatalf("a dropped key's link answers %d", got.Code)
	}
}

// Whatever customer a request names, it is the ticket's that is asked for.
func TestTheTicketSaysWhoseAccountItIs(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	text := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	for _, path := range []string{"/?customer=globex", "/topups?customer=globex&tenant=globex", "/invoices?customer=globex", "/invoices/i1?customer=globex"} {
		if got := s.ask("GET", path, text, `{"customer":"globex"}`); got.Code != http.StatusOK {
			t.Errorf("%s answers %d", path, got.Code)
		}
	}
	for _, path := range []string{"/customers/globex", "/invoices/i2", "/invoices/i2/pdf", "/invoices/..", "/invoices/nobody's"} {
		if got := s.ask("GET", path, text, ""); got.Code == http.StatusOK || got.Code >= 500 {
			t.Errorf("%s answers %d", path, got.Code)
		}
	}
	for _, asked := range s.control.calls() {
		if strings.Contains(asked, "globex") {
			t.Errorf("asked %s", asked)
		}
	}
}

func TestHistoryAndInvoices(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	text := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	for path, wants := range map[string][]string{
		"/topups":      {"top-up: order 7", "&#43;50", "expired", "−9", "/topups?cursor=n1&amp;metric=sms"},
		"/invoices":    {"INV-2026-000001", "12.00 EUR", "/invoices/i1/pdf"},
		"/invoices/i1": {"Invoice INV-2026-000001"},
	} {
		got := s.ask("GET", path, text, "")
		for _, want := range wants {
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s answers %d without %q:\n%s", path, got.Code, want, got.Body)
			}
		}
	}
	pdf := s.ask("GET", "/invoices/i1/pdf", text, "")
	if pdf.Header().Get("Content-Type") != "application/pdf" || !strings.HasPrefix(pdf.Body.String(), "%PDF-") ||
		pdf.Header().Get("Content-Disposition") != `attachment; filename="INV-2026-000001.pdf"` {
		t.Fatalf("%v", pdf.Header())
	}
	if got := s.ask("GET", "/topups?metric=sms&cursor=n1", text, ""); got.Code != http.StatusOK {
		t.Fatal(got.Code)
	}
	if asked := s.control.calls(); !strings.Contains(asked[len(asked)-1], "cursor=n1") {
		t.Fatalf("asked %s", asked[len(asked)-1])
	}
}

func TestControlPlaneAway(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	text := s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour)
	delete(s.control.answers, "/v1/customers/acme/days")
	if got := s.ask("GET", "/", text, ""); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "chart cannot be shown") {
		t.Errorf("without charts: %d", got.Code)
	}
	if got := s.ask("GET", "/", s.ticket(t, s.keys, ticket.Portal, "gone", time.Hour), ""); got.Code != http.StatusNotFound {
		t.Errorf("a customer who is gone: %d", got.Code)
	}
	s.control.breakDown()
	for _, path := range []string{"/", "/topups", "/invoices", "/invoices/i1"} {
		if got := s.ask("GET", path, text, ""); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s answers %d", path, got.Code)
		}
	}
}

func TestLeaveForgetsTheTicket(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	got := s.ask("POST", "/leave", s.ticket(t, s.keys, ticket.Portal, "acme", time.Hour), "")
	if c := got.Result().Cookies(); got.Code != http.StatusOK || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Fatalf("%d %+v", got.Code, c)
	}
	if got := s.ask("GET", "/style.css", "", ""); got.Code != http.StatusOK || got.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Fatal(got.Code)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"no address": func(c *Config) { c.Listen = "" }, "no url": func(c *Config) { c.URL = "" }, "a password": func(c *Config) { c.URL = "http://u:p@host" },
		"no api": func(c *Config) { c.API.URL = "controlplane:8088" }, "no time": func(c *Config) { c.API.Timeout = 0 }, "leeway": func(c *Config) { c.Leeway = 2 * time.Hour },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg, Deps{Keys: new(ticket.Keys)}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := New(DefaultConfig(), Deps{}); err == nil {
		t.Error("without keys: made")
	}
}
