package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// listing asks a gate for open reservations, as an operator.
func (r *reserving) listing(token, query string) *httptest.ResponseRecorder {
	r.t.Helper()
	cfg := ReservationsConfig{Tokens: []identify.OperatorToken{{Name: "ops", SHA256: withHash("let-see", keys.Key{}).SHA256}}}
	operators, err := cfg.operators()
	if err != nil {
		r.t.Fatal(err)
	}
	mux := http.NewServeMux()
	(&Service{lister: &lister{gate: r.gates[0].gate, operators: operators}}).AdminRoutes(mux)
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/v1/reservations"+query, nil)
	req.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, req)
	return rec
}

type openPage struct {
	Items []struct {
		reserved
		TenantID, UserID, ApplicationID string
	}
	Next string
}

func (r *reserving) openPage(query string) (p openPage) {
	r.t.Helper()
	rec := r.listing("let-see", query)
	if rec.Code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", query, rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		r.t.Fatalf("%v: %s", err, rec.Body)
	}
	return p
}

// Operators see what is open: whose it is and what it holds, all of it or one
// tenant's, a page at a time.
func TestAnOperatorListsWhatIsOpen(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	if got := r.listing("let-see", ""); got.Body.String() != "{\"items\":[]}\n" {
		t.Errorf("of nothing: %s", got.Body)
	}
	r.send(0, "POST", "", chat("first", 10), "X-User-Id", "u1", "X-Application-Id", "a1").is(t, 201)
	for i := range 4 {
		r.wait(time.Millisecond)
		r.send(0, "POST", "", chat(fmt.Sprint("job-", i), 20)).is(t, 201)
	}
	r.send(0, "POST", "", chat("theirs", 30), "X-Tenant-Id", "globex").is(t, 201)
	r.send(0, "POST", "/job-2/commit", `{"cost":3}`).is(t, 200)
	got := r.openPage("?tenant=acme&limit=1").Items[0]
	if got.TenantID != "acme" || got.UserID != "u1" || got.ApplicationID != "a1" || got.ID != "first" || got.State != "reserved" || got.Reserved != 10 ||
		got.Endpoint != "/llm/v1/chat" || !slices.Equal(got.Metrics, []string{"tokens"}) || !got.ReservedAt.Equal(noon) || got.ExpiresAt.Sub(noon).Seconds() != 60 {
		t.Errorf("the first: %+v", got)
	}
	for tenant, want := range map[string][]string{"acme": {"first", "job-0", "job-1", "job-3"}, "globex": {"theirs"}, "initech": nil} {
		for _, most := range []string{"1", "2", "500"} {
			var ids []string
			for next := "&"; next != ""; {
				p := r.openPage("?limit=" + most + "&tenant=" + tenant + next)
				for _, item := range p.Items {
					ids = append(ids, item.ID)
				}
				if next = ""; p.Next != "" {
					next = "&cursor=" + url.QueryEscape(p.Next)
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s, %s a page: %q, want %q", tenant, most, ids, want)
			}
		}
	}
	var all []string
	for _, item := range r.openPage("").Items {
		all = append(all, item.TenantID+"/"+item.ID)
	}
	slices.Sort(all)
	if want := []string{"acme/first", "acme/job-0", "acme/job-1", "acme/job-3", "globex/theirs"}; !slices.Equal(all, want) {
		t.Errorf("all are %q, want %q", all, want)
	}
}

func TestBadListsAreRefusedByName(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	for _, id := range []string{"a", "b"} {
		r.send(0, "POST", "", chat(id, 10)).is(t, 201)
	}
	next := r.openPage("?tenant=acme&limit=1").Next
	for _, c := range []struct {
		token, query string
		status       int
		says         []string
	}{
		{"", "", 401, []string{"gateway.reservations.tokens"}},
		{"let-see-not", "?limit=0", 401, []string{"gateway.reservations.tokens"}},
		{"let-see", "?limit=0", 400, []string{"limit: must be a whole number from 1 to 500"}},
		{"let-see", "?limit=501", 400, []string{"limit: must be"}},
		{"let-see", "?limit=all", 400, []string{"limit: must be"}},
		{"let-see", "?limit=99999999999999999999", 400, []string{"limit: must be"}},
		{"let-see", "?tenant=a%00", 400, []string{"tenant: must be plain UTF-8"}},
		{"let-see", "?tenant=%ff", 400, []string{"tenant: must be plain UTF-8"}},
		{"let-see", "?tenant=" + strings.Repeat("a", 300), 400, []string{"tenant: must be plain UTF-8"}},
		{"let-see", "?tenant=%zz", 400, []string{"percent escapes"}},
		{"let-see", "?tenant=a&tenant=b&customer=acme", 400, []string{"tenant: must be given once", "customer: is unknown"}},
		{"let-see", "?cursor=" + next, 400, []string{"cursor: must be the next of an earlier page of this list"}},
		{"let-see", "?tenant=acme&cursor=x", 400, []string{"cursor: must be"}},
		{"let-see", "?tenant=acme&cursor=e30", 400, []string{"cursor: must be"}}, // {}
	} {
		got := r.listing(c.token, c.query)
		for _, says := range c.says {
			if got.Code != c.status || !strings.Contains(got.Body.String(), says) {
				t.Errorf("%s by %q: %d %s, want %d and %q", c.query, c.token, got.Code, got.Body, c.status, says)
			}
		}
	}
}

// While nobody knows what is open, it is not said to be nothing.
func TestNothingIsListedWithoutTheStore(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	for _, c := range []struct {
		name   string
		breaks func()
	}{{"lost", r.server.FlushAll}, {"away", r.server.Close}} {
		c.breaks()
		for _, query := range []string{"", "?tenant=acme"} {
			if got := r.listing("let-see", query); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
				t.Errorf("%s%s: %d %s", c.name, query, got.Code, got.Body)
			}
		}
	}
}
