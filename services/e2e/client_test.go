//go:build integration

package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

var client = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 128, MaxConnsPerHost: 2048},
}

// answer is what a server said; code 0 means that it said nothing.
type answer struct {
	code   int
	header http.Header
	body   string
}

func send(method, url string, header map[string]string, body any) answer {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, url, reader)
	if err != nil {
		panic(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// rest calls the control plane as admin.
func (s *stack) rest(method, path string, header map[string]string, body any) answer {
	all := map[string]string{"Authorization": "Bearer " + adminToken}
	for name, value := range header {
		all[name] = value
	}
	return send(method, "http://"+s.control+path, all, body)
}

func (s *stack) mustREST(method, path string, header map[string]string, body any, want int) answer {
	s.t.Helper()
	got := s.rest(method, path, header, body)
	if got.code != want {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, got.code, want, got.body)
	}
	return got
}

var anyVersion = map[string]string{"If-Match": "*"}

// service puts the upstream behind /svc/.
func (s *stack) service() {
	s.t.Helper()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{
		Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: s.upstream.URL}},
		Endpoints: []catalog.Endpoint{{Pattern: "GET /svc/hello"}},
	}, http.StatusCreated)
}

func number(n int64) *int64 { return &n }

// fixed is a rule of so many an hour for each tenant on a path.
func fixed(id, path string, limit int64) rules.Rule {
	return rules.Rule{
		ID: id, Subject: rules.Subject{Kind: rules.SubjectTenant, Value: "*"},
		Scope: rules.Scope{Service: "svc", Endpoint: "GET " + path}, Metric: id,
		Limit: &rules.Limit{Algorithm: rules.AlgorithmFixedWindow, Limit: number(limit), Window: "1h"},
	}
}

// quota is a rule of so many a month for each tenant on a path.
func quota(id, path string, limit int64) rules.Rule {
	r := fixed(id, path, limit)
	r.Limit = &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: number(limit), Period: "month"}
	return r
}

// hit sends one request through a gateway.
func (g *gate) hit(path string, header map[string]string) answer {
	return send("GET", "http://"+g.addr+path, header, nil)
}

func as(tenant string) map[string]string { return map[string]string{"X-Tenant-Id": tenant} }

// decode reads JSON into a T.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
