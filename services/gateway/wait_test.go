package gateway

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// Ten thousand clients denied until six come back spread over half a minute
// behind it, about as many every second, and nobody before it.
func TestDeniedClientsComeBackSpread(t *testing.T) {
	t.Parallel()
	const clients = 10_000
	at := time.Date(2026, 7, 15, 17, 50, 0, 0, time.UTC)
	s := newStand(t, standOptions{now: func() time.Time { return at }, trusted: []string{"192.0.2.0/24"}, answers: DefaultConfig().Answers})
	s.putRule(ruleJSON("one", "tenant", "calls", `{"algorithm":"fixedWindow","limit":1,"window":"1h"}`, ""))
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/demo/x", nil)
		r.Header.Set("X-Tenant-Id", "acme")
		w := httptest.NewRecorder()
		s.gate.ServeHTTP(w, r)
		return w
	}
	if first := ask(); first.Code != http.StatusOK {
		t.Fatal(first.Code, first.Body)
	}
	perSecond := map[int]int{}
	for range clients {
		w := ask()
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err != nil || w.Code != http.StatusTooManyRequests {
			t.Fatal(w.Code, w.Header(), err)
		}
		perSecond[wait]++
	}
	const reset, spread = 600, 30
	for wait, n := range perSecond {
		if wait < reset || wait > reset+spread {
			t.Errorf("%d clients come after %d s, the counter resets after %d", n, wait, reset)
		}
	}
	for wait := reset; wait <= reset+spread; wait++ {
		// 323 expected, standard deviation 18.
		if n := perSecond[wait]; n < 200 || n > 450 {
			t.Errorf("%d of %d clients come in second %d", n, clients, wait)
		}
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait  int64
		share float64
		most  int64
	}{
		{1, 0.1, 1}, {9, 0.1, 1}, {10, 0.1, 1}, {11, 0.1, 2}, {100, 0.1, 10}, {299, 0.1, 30}, {300, 0.1, 30}, {31_536_000, 1, 30},
		{5, 1, 5}, {60, 0.001, 1}, {60, 0, 0}, {1 << 60, 0.5, 30},
	} {
		seen := map[int64]bool{}
		for range 2000 {
			id := newDecisionID(noon)
			n := jitter(id, c.wait, c.share)
			if n < 0 || n > c.most {
				t.Fatalf("wait %d, share %v: %d is added, at most %d", c.wait, c.share, n, c.most)
			}
			if jitter(id, c.wait, c.share) != n {
				t.Fatal("one decision has two answers")
			}
			seen[n] = true
		}
		if len(seen) != int(c.most)+1 {
			t.Errorf("wait %d, share %v: only %v are added", c.wait, c.share, seen)
		}
	}
}
