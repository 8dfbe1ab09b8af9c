package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// raw sends a request line as it is: http.Client would clean the target.
func (s *stand) raw(target string, headers ...string) answer {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	request := "GET " + target + " HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n" + strings.Join(headers, "\r\n") + "\r\n"
	if len(headers) > 0 {
		request += "\r\n"
	}
	if _, err := fmt.Fprint(conn, request); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body := new(strings.Builder)
	if _, err := bufio.NewReader(res.Body).WriteTo(body); err != nil {
		s.t.Fatal(err)
	}
	return answer{Response: res, body: body.String()}
}

func TestPathsAreCleanedMatchedAndForwardedAlike(t *testing.T) {
	t.Parallel()
	cost := int64(7)
	s := newStand(t, standOptions{catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/pay/{id}", Cost: &cost}}},
		{Name: "stripped", Prefix: "/s/t/", StripPrefix: true},
		{Name: "inner", Prefix: "/demo/inner/"},
	}})
	for _, c := range []struct{ target, forwarded, service, endpoint string }{
		{"/demo/x", "/demo/x", "demo", "/demo/x"},
		{"/demo", "/demo", "demo", "/demo"},
		{"/demo/", "/demo/", "demo", "/demo/"},
		{"/demo/x/", "/demo/x/", "demo", "/demo/x/"},
		{"//demo///x", "/demo/x", "demo", "/demo/x"},
		{"/demo/./x/../y", "/demo/y", "demo", "/demo/y"},
		{"/other/../demo/x", "/demo/x", "demo", "/demo/x"},
		{"/%2e%2e/demo/%2e/x", "/demo/x", "demo", "/demo/x"},
		{"/%64emo/%70ay/1", "/demo/pay/1", "demo", "/demo/pay/{id}"},
		{"/demo/pay/a%2Fb", "/demo/pay/a%2Fb", "demo", "/demo/pay/{id}"},
		{"/demo/pay/a%2fb", "/demo/pay/a%2Fb", "demo", "/demo/pay/{id}"},
		{"/demo/pay/1?a=1;b=%zz&c", "/demo/pay/1?a=1;b=%zz&c", "demo", "/demo/pay/{id}"},
		{"/demo/%3F%23%25%20%C3%BC", "/demo/%3F%23%25%20%C3%BC", "demo", "/demo/%3F%23%25%20%C3%BC"},
		{"/demo/a'(b)*[c]", "/demo/a'(b)*%5Bc%5D", "demo", "/demo/a'(b)*%5Bc%5D"},
		{"/demo/inner/x", "/demo/inner/x", "inner", "/demo/inner/x"},
		{"/demo/inner/../x", "/demo/x", "demo", "/demo/x"},
		{"/demo/inner%2F..%2Fx", "/demo/inner%2F..%2Fx", "demo", "/demo/inner%2F..%2Fx"},
		{"/s/t/x", "/x", "stripped", "/s/t/x"},
		{"/s/t/a%2Fb", "/a%2Fb", "stripped", "/s/t/a%2Fb"},
		{"/s/t", "/", "stripped", "/s/t"},
		{"http://elsewhere/demo/x", "/demo/x", "demo", "/demo/x"},
	} {
		a := s.raw(c.target)
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", c.target, a.StatusCode, a.body)
			continue
		}
		if got := s.last().RequestURI; got != c.forwarded {
			t.Errorf("%s arrives as %s, want %s", c.target, got, c.forwarded)
		}
		e := s.event()
		if e.Service != c.service || e.Endpoint != c.endpoint {
			t.Errorf("%s is matched as %s %s, want %s %s", c.target, e.Service, e.Endpoint, c.service, c.endpoint)
		}
		want := int64(1)
		if c.endpoint == "/demo/pay/{id}" {
			want = cost
		}
		if e.Cost != want {
			t.Errorf("%s costs %d, want %d", c.target, e.Cost, want)
		}
	}
}

func TestPathsUnderNoServiceAreNoDecisions(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	for target, want := range map[string]int{
		"/": 404, "/demox": 404, "/demo/../x": 404, "/demo%2Fx": 404, "/demo/%2e%2e/x": 404, "http://elsewhere": 404, "/x": 404,
		strings.Repeat("/a", 4000): 404,
	} {
		a := s.raw(target)
		if a.StatusCode != want {
			t.Errorf("%.40s: %d %s, want %d", target, a.StatusCode, a.body, want)
		}
		a.problem(t)
	}
	if len(s.requests()) != 0 || len(s.events()) != 0 {
		t.Error("a request under no service was forwarded or recorded")
	}
}

func TestServiceWithoutUpstreamsTakesNothing(t *testing.T) {
	t.Parallel()
	none := 0
	s := newStand(t, standOptions{catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: "http://127.0.0.1:1", Weight: &none}}},
	}})
	a := s.get("/demo/x")
	if p := a.problem(t); a.StatusCode != 503 || p.Type != reject.ReducedCapacity || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if len(s.events()) != 0 {
		t.Error("recorded")
	}
}

func TestNothingPassesBeforeTheTablesAreWhole(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	whole := false
	s.gate.tables = func() error {
		if whole {
			return nil
		}
		return errors.New("table rules.v1: no mirror record yet")
	}
	a := s.get("/demo/x")
	if p := a.problem(t); a.StatusCode != 503 || p.Type != reject.ReducedCapacity || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if len(s.requests()) != 0 || len(s.events()) != 0 {
		t.Fatal("a request passed before the tables were whole")
	}
	whole = true
	if a := s.get("/demo/x"); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// HTTP/2 can carry a space in a query. In the request line to a service, and in
// the cache's key, it would end what it is in.
func TestQueryWithASpaceIsRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	for _, query := range []string{" authorized", "q=1 HTTP/1.1", "q= "} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/demo/a", nil)
		req.URL.RawQuery = query
		w := httptest.NewRecorder()
		s.gate.ServeHTTP(w, req)
		if body := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(body, "%20") {
			t.Errorf("%q: %d %s", query, w.Code, body)
		}
	}
	if a := s.get("/demo/a?q=%20"); a.StatusCode != http.StatusOK {
		t.Errorf("an escaped one: %d %s", a.StatusCode, a.body)
	}
}
