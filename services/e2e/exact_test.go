//go:build integration

package e2e_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// storm sends n requests from 64 clients to the gateways in turn and counts
// the answers by code.
func (s *stack) storm(n int, path string, header map[string]string) map[int]int {
	var next atomic.Int64
	var mu sync.Mutex
	codes := map[int]int{}
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				code := s.gates[i%2].hit(path, header).code
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return codes
}

// 64 clients on two gateways at one counter: never one too many, never one
// too few.
func TestExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	s := running(t)
	bucket := func(id, algorithm string) rules.Rule {
		r := fixed(id, "/svc/"+id, 60)
		r.Limit = &rules.Limit{Algorithm: algorithm, Limit: number(60), Window: "1m", Burst: number(100)}
		return r
	}
	sliding := fixed("sliding", "/svc/sliding", 100)
	sliding.Limit.Algorithm = rules.AlgorithmSlidingWindow
	for _, rule := range []rules.Rule{
		fixed("fixed", "/svc/fixed", 100), sliding, quota("quota", "/svc/quota", 100),
		bucket("gcra", rules.AlgorithmGCRA), bucket("bucket", rules.AlgorithmTokenBucket),
	} {
		s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	}
	s.awaitEqualAll()
	for _, path := range []string{"/svc/fixed", "/svc/sliding", "/svc/quota"} {
		before := s.served.Load()
		codes := s.storm(1000, path, as("acme"))
		if codes[200] != 100 || codes[429] != 900 {
			t.Errorf("%s: %v, want 100 × 200 and 900 × 429", path, codes)
		}
		if got := s.served.Load() - before; got != 100 {
			t.Errorf("%s: the service saw %d requests, want 100", path, got)
		}
	}
	for _, path := range []string{"/svc/gcra", "/svc/bucket"} {
		start := time.Now()
		codes := s.storm(1000, path, as("acme"))
		most := 100 + int(time.Since(start).Seconds()) + 1
		if codes[200] < 100 || codes[200] > most || codes[200]+codes[429] != 1000 {
			t.Errorf("%s: %v, want 100 to %d × 200 and the rest 429", path, codes, most)
		}
	}
}

// A tenant and its users are counted apart, and a request that one counter
// denies charges none.
func TestTenantAndUserApart(t *testing.T) {
	t.Parallel()
	s := running(t)
	user := fixed("per-user", "/svc/both", 3)
	user.Subject = rules.Subject{Kind: rules.SubjectUser, Value: "*"}
	for _, rule := range []rules.Rule{fixed("per-tenant", "/svc/both", 5), user} {
		s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	}
	s.awaitEqualAll()
	as := func(user string) map[string]string {
		return map[string]string{"X-Tenant-Id": "acme", "X-User-Id": user}
	}
	count := func(user string) (passed int) {
		for i := range 10 {
			if s.gates[i%2].hit("/svc/both", as(user)).code == 200 {
				passed++
			}
		}
		return passed
	}
	if a, b, c := count("ann"), count("ben"), count("cleo"); a != 3 || b != 2 || c != 0 {
		t.Errorf("ann %d, ben %d, cleo %d passed; want 3 (her own limit), 2 (what the tenant had left) and 0", a, b, c)
	}
}
